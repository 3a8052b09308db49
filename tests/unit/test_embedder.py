"""The embedded model, and every way in which an embedding endpoint can answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import numpy as np
import pytest

from app import config, errors
from app.providers import embedder


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[embedder.EmbeddedModel]:
    made = embedder.EmbeddedModel()
    yield made
    await made.close()


async def test_rows_are_unit_vectors_in_the_order_of_the_texts(model: embedder.EmbeddedModel) -> None:
    texts = ["a long sentence about cats that sleep on the warm roof", "tea", "我喜欢喝茶"]
    rows = await model.embed(texts)
    assert rows.shape == (3, model.dims)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    for text, row in zip(texts, rows, strict=True):
        assert np.argmax(rows @ await model.embed_query(text)) == texts.index(text)
        assert np.allclose((await model.embed([text]))[0], row, atol=1e-3)


async def test_what_means_the_same_is_nearer_in_two_languages(model: embedder.EmbeddedModel) -> None:
    tea, near, far = await model.embed(["I like drinking tea", "我喜欢喝茶", "The train to Riga was late"])
    assert tea @ near > tea @ far


async def test_a_long_text_is_found_by_its_beginning(model: embedder.EmbeddedModel) -> None:
    beginning = "The blue van was sold to Oskar in Tartu."
    long = beginning + " " + "Nothing of note happened on that day, as usual. " * 20_000
    rows = await model.embed([long, "The green boat was lent to Maria.", "Nothing of note happened."])
    query = await model.embed_query("Who bought the blue van?")
    assert rows[0] @ query > rows[1] @ query


async def test_queries_that_come_together_get_the_vectors_that_they_get_alone() -> None:
    texts = [f"Who bought {thing}?" for thing in ("the blue van", "a house", "兄の自転車", "nothing " * 60)] * 5
    made, alone = embedder.EmbeddedModel(), embedder.EmbeddedModel()
    together = await asyncio.gather(*(made.embed_query(text) for text in texts))
    for text, vector in zip(texts, together, strict=True):
        assert (vector == await alone.embed_query(text)).all()
    await made.close()
    await alone.close()


async def test_a_failing_engine_is_everybodys_error_and_the_next_query_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = embedder.EmbeddedModel()

    def broken(_texts: list[str]) -> list[object]:
        raise RuntimeError("the engine broke")

    with monkeypatch.context() as patch:
        patch.setattr(made, "_of_queries", broken)
        failed = await asyncio.gather(*(made.embed_query(f"query {n}") for n in range(20)), return_exceptions=True)
    assert {str(error) for error in failed} == {"the engine broke"}
    assert (await made.embed_query("query 1")).shape == (made.dims,)
    await made.close()


async def test_whoever_gives_up_takes_nothing_from_the_others() -> None:
    made = embedder.EmbeddedModel()
    impatient = asyncio.create_task(made.embed_query("the same"))
    patient = asyncio.create_task(made.embed_query("the same"))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).shape == (made.dims,)
    await made.close()


async def test_an_equal_query_gets_the_very_same_vector(model: embedder.EmbeddedModel) -> None:
    assert await model.embed_query("where is the key") is await model.embed_query("where is the key")


async def test_no_texts_give_no_rows(model: embedder.EmbeddedModel) -> None:
    assert (await model.embed([])).shape == (0, model.dims)


@pytest.mark.parametrize(
    "text", ["<|fim_prefix|>", "<s></s><unk><pad><mask>", "[CLS][SEP][MASK][PAD]", "{}{0}{user}", "%(x)s $HOME", "[[[["]
)
async def test_texts_of_special_tokens_and_brackets_are_found_by_themselves(
    model: embedder.EmbeddedModel, text: str
) -> None:
    rows = await model.embed([text, "has a red bike", "The train to Riga was late"])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    assert np.argmax(rows @ await model.embed_query(text)) == 0


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_text_is_never_embedded(model: embedder.EmbeddedModel, text: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        await model.embed(["fine", text])


def test_a_cpu_without_the_instructions_is_recognised() -> None:
    assert embedder.missing_cpu_flags("model name : x\nflags\t\t: fpu avx fma f16c\n") == {"avx2"}
    assert embedder.missing_cpu_flags("flags : fpu avx2 fma f16c sse") == set()
    assert embedder.missing_cpu_flags("Features : asimd") == set()


# The endpoint


def endpoint(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> embedder.EndpointEmbedder:
    return embedder.EndpointEmbedder(
        "http://127.0.0.1:9/v1/", "some-model", transport=httpx.MockTransport(answer), **options
    )


def rows_for(request: httpx.Request, *, dims: int = 3) -> list[dict[str, Any]]:
    texts = json.loads(request.content)["input"]
    return [{"index": index, "embedding": [float(len(text))] + [1.0] * (dims - 1)} for index, text in enumerate(texts)]


async def test_the_endpoint_is_asked_in_batches_and_rows_follow_the_index() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"data": rows_for(request)[::-1]})

    made = endpoint(answer, batch=2, api_key="secret")
    rows = await made.embed(["a", "bb", "ccc", "dddd", "eeeee"])
    assert [str(request.url) for request in seen] == ["http://127.0.0.1:9/v1/embeddings"] * 3
    assert seen[0].headers["authorization"] == "Bearer secret"
    assert json.loads(seen[0].content)["model"] == "some-model"
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert list(np.argsort(rows[:, 0])) == [0, 1, 2, 3, 4]


async def test_dimensions_are_learnt_from_the_first_answer_and_must_stay() -> None:
    dims = iter([3, 4])
    made = endpoint(lambda request: httpx.Response(200, json={"data": rows_for(request, dims=next(dims))}))
    assert made.dims == 0
    await made.check()
    assert made.dims == 3
    with pytest.raises(errors.EmbedderRefused, match="other dimensions than 3"):
        await made.embed_query("x")


BAD = {
    "no data": {"object": "list"},
    "not an object": [1],
    "too few": {"data": []},
    "twice the same index": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
    "a text": {"data": [{"index": 0, "embedding": ["x"]}, {"index": 1, "embedding": ["y"]}]},
    "null": {"data": [{"index": 0, "embedding": None}, {"index": 1, "embedding": [1.0]}]},
    "unequal lengths": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]},
    "empty vectors": {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]},
    "zeros": {"data": [{"index": 0, "embedding": [0.0, 0.0]}, {"index": 1, "embedding": [1.0, 0.0]}]},
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
async def test_an_answer_that_cannot_be_used_is_refused(body: Any) -> None:
    with pytest.raises(errors.EmbedderRefused):
        await endpoint(lambda _: httpx.Response(200, json=body)).embed(["a", "b"])


@pytest.mark.parametrize(
    "text", ['{"data":[{"index":0,"embedding":[NaN,1]}]}', '{"data":[{"index":0,"embedding":[1e999]}]}', "<html>"]
)
async def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    with pytest.raises(errors.EmbedderRefused):
        await endpoint(lambda _: httpx.Response(200, text=text)).embed(["a"])


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_an_endpoint_in_trouble_is_unavailable_and_says_when(status: int) -> None:
    made = endpoint(lambda _: httpx.Response(status, headers={"retry-after": "7"}, text="private input"))
    with pytest.raises(errors.EmbedderUnavailable) as caught:
        await made.check()
    assert caught.value.retry_after_s == 7
    assert "private" not in caught.value.message


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_refused_request_is_not_worth_a_retry(status: int) -> None:
    with pytest.raises(errors.EmbedderRefused, match=str(status)):
        await endpoint(lambda _: httpx.Response(status)).check()


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError])
async def test_a_silent_endpoint_is_unavailable(error: type[httpx.TransportError]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("x", request=request)

    with pytest.raises(errors.EmbedderUnavailable):
        await endpoint(answer).embed_query("a")


async def test_the_settings_choose_the_endpoint_and_want_its_model() -> None:
    with pytest.raises(errors.SetupError, match="MEMORYD_EMBEDDER_MODEL"):
        embedder.open_embedder(config.Settings(embedder_base_url="http://127.0.0.1:9/v1"))
    made = embedder.open_embedder(config.Settings(embedder_base_url="http://127.0.0.1:9/v1", embedder_model="m"))
    assert (made.model, made.describe()) == ("m", "m at 127.0.0.1")
    await made.close()
