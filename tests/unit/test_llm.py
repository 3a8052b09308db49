"""The chat model over real HTTP: what is sent, what is understood, and how each failure is named."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from app import config, errors
from app.providers import llm
from tests.model_stub import ModelStub, Reply, fails, says

SCHEMA: dict[str, Any] = {"type": "object", "required": ["facts"], "properties": {"facts": {"type": "array"}}}
TEA = {"facts": ["likes tea"]}
KEY = "sk-verysecretkey0123456789"
SECRET = "the safe opens with 4711 and nobody else knows"


@pytest.fixture
async def stub() -> AsyncIterator[ModelStub]:
    with ModelStub() as stub:
        yield stub


@pytest.fixture
async def model(stub: ModelStub) -> AsyncIterator[llm.ChatModel]:
    model = llm.ChatModel(stub.url, "stub", api_key=KEY, timeout_s=5)
    yield model
    await model.close()


async def ask(model: llm.ChatModel, user: str = SECRET) -> Any:
    return await model.complete_json("You answer in JSON.", user, schema=SCHEMA, name="facts")


# What is sent


async def test_a_request_carries_model_key_schema_and_temperature_zero(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says(TEA))
    assert await ask(model) == TEA
    (asked,) = stub.requests
    assert stub.paths == ["/v1/chat/completions"]
    assert stub.headers[0]["authorization"] == f"Bearer {KEY}"
    assert asked["model"] == "stub"
    assert asked["temperature"] == 0
    assert asked["max_tokens"] > 0
    assert asked["response_format"]["json_schema"] == {"name": "facts", "strict": True, "schema": SCHEMA}
    assert [turn["role"] for turn in asked["messages"]] == ["system", "user"]


async def test_without_a_key_no_authorization_is_sent(stub: ModelStub) -> None:
    stub.then(says(TEA))
    model = llm.ChatModel(stub.url, "stub")
    await ask(model)
    await model.close()
    assert "authorization" not in stub.headers[0]


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/"])
async def test_the_base_url_may_end_as_people_write_it(stub: ModelStub, ending: str) -> None:
    stub.then(says(TEA))
    model = llm.ChatModel(f" {stub.url}{ending}", "stub")
    await ask(model)
    await model.close()
    assert stub.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize("status", [400, 404, 422, 501, 500])
async def test_a_server_without_json_schema_gets_json_object_from_then_on(
    stub: ModelStub, model: llm.ChatModel, status: int
) -> None:
    stub.refused = {"json_schema": "This response_format type is unavailable now"}
    stub.refusal_status = status
    stub.default = says(TEA)
    assert await ask(model) == TEA
    assert await ask(model) == TEA
    formats = [asked["response_format"]["type"] for asked in stub.requests]
    assert formats == ["json_schema", "json_object", "json_object"]
    assert '"required": ["facts"]' in stub.requests[1]["messages"][0]["content"], "the schema has to be said in words"


async def test_a_server_that_knows_no_response_format_gets_plain_requests(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    stub.refused = {"response_format": "Extra inputs are not permitted"}
    stub.default = says(TEA)
    assert await ask(model) == TEA
    assert await ask(model) == TEA
    assert ["response_format" in asked for asked in stub.requests] == [True, True, False, False]


async def test_a_reasoning_model_gets_no_temperature_and_its_own_name_for_the_limit(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    stub.refused = {
        "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    }
    stub.default = says(TEA)
    assert await ask(model) == TEA
    last = stub.requests[-1]
    assert "temperature" not in last
    assert "max_tokens" not in last
    assert last["max_completion_tokens"] > 0
    assert last["response_format"]["type"] == "json_schema"


async def test_a_refusal_of_something_else_does_not_change_the_form_for_later(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    stub.default = fails(400, "This model's maximum context length is 4096 tokens")
    with pytest.raises(errors.ModelRefused, match="maximum context length"):
        await ask(model)
    asked_before = len(stub.requests)
    stub.default = says(TEA)
    await ask(model)
    assert stub.requests[asked_before]["response_format"]["type"] == "json_schema"


async def test_refusals_without_end_end(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = fails(400, "response_format, max_tokens, max_completion_tokens and temperature are all wrong")
    with pytest.raises(errors.ModelRefused):
        await ask(model)
    assert len(stub.requests) <= 6


# What is understood


async def test_content_in_parts_is_joined(stub: ModelStub, model: llm.ChatModel) -> None:
    reply = says("")
    reply.body["choices"][0]["message"]["content"] = [
        {"type": "text", "text": '{"facts":'},
        {"type": "text", "text": '["likes tea"]}'},
    ]
    stub.then(reply)
    assert await ask(model) == TEA


@pytest.mark.parametrize(
    "bad", ["", "I cannot see any facts here.", '{"fact":"x"}', '{"facts":["likes tea","likes cof']
)
async def test_a_bad_answer_is_asked_for_once_more_with_the_reason(
    stub: ModelStub, model: llm.ChatModel, bad: str
) -> None:
    stub.then(says(bad), says(TEA))
    assert await ask(model) == TEA
    turns = stub.requests[1]["messages"]
    assert turns[:2] == stub.requests[0]["messages"]
    assert turns[-1]["role"] == "user"
    assert "could not be used" in turns[-1]["content"]
    assert all(turn["content"] for turn in turns), "an empty turn would itself be refused"
    assert not bad or turns[2] == {"role": "assistant", "content": bad}


@pytest.mark.parametrize(
    ("content", "finish", "reason"),
    [
        ("", "stop", "empty"),
        (None, "stop", "empty"),
        ("think>\nlong text only", "stop", "no_json"),
        ('{"facts":7}', "stop", "wrong_shape"),
        ('{"facts":["likes tea","likes cof', "length", "cut"),
        ("", "length", "cut"),
        ('{"facts":[', "stop", "cut"),
    ],
)
async def test_an_answer_that_stays_bad_is_refused_with_its_reason(
    stub: ModelStub, model: llm.ChatModel, content: str | None, finish: str, reason: str
) -> None:
    stub.default = says(content, finish=finish, reasoning_content='{"facts":["the user likes tea"]}')
    with pytest.raises(errors.ModelRefused) as caught:
        await ask(model)
    assert len(stub.requests) == 2
    assert caught.value.details["reason"] == reason
    assert caught.value.retryable
    assert "tea" not in caught.value.message


async def test_an_answer_broken_off_twice_keeps_its_complete_items(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = says('{"facts":["likes tea","likes cof')
    assert await ask(model) == TEA
    assert len(stub.requests) == 2


async def test_after_a_cut_the_second_request_has_no_limit_of_ours(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says("", finish="length"), says(TEA))
    assert await ask(model) == TEA
    assert ["max_tokens" in asked for asked in stub.requests] == [True, False]


async def test_a_model_that_declines_is_refused(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says(None, refusal="I can't help with that."))
    with pytest.raises(errors.ModelRefused, match="declined"):
        await ask(model)


# Failures


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
async def test_a_busy_or_broken_endpoint_is_unavailable(stub: ModelStub, model: llm.ChatModel, status: int) -> None:
    stub.default = fails(status, SECRET, Retry_After="7")
    with pytest.raises(errors.ModelUnavailable, match=str(status)) as caught:
        await ask(model)
    assert caught.value.retry_after_s == 7
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0), ("99999999999999", 3600), ("soon", None), ("-1", None), ("²", None)]
)
async def test_a_retry_after_is_believed_within_reason(
    stub: ModelStub, model: llm.ChatModel, value: str, seconds: int | None
) -> None:
    stub.default = fails(429, Retry_After=value)
    with pytest.raises(errors.ModelUnavailable) as caught:
        await ask(model)
    assert caught.value.retry_after_s == seconds


async def test_a_retry_after_may_be_a_date(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = fails(503, Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    with pytest.raises(errors.ModelUnavailable) as caught:
        await ask(model)
    assert caught.value.retry_after_s is not None
    assert 80 <= caught.value.retry_after_s <= 91


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "MEMORYD_LLM_API_KEY"),
        (403, "MEMORYD_LLM_API_KEY"),
        (404, "MEMORYD_LLM_MODEL"),
        (302, "MEMORYD_LLM_BASE_URL"),
    ],
)
async def test_a_wrong_setting_is_named(stub: ModelStub, model: llm.ChatModel, status: int, hint: str) -> None:
    stub.default = fails(status, "model 'stub' not found, try pulling it first", Location=f"{stub.url}/elsewhere")
    with pytest.raises(errors.ModelRefused, match=hint) as caught:
        await ask(model)
    assert "try pulling it first" in caught.value.message
    assert len(stub.requests) == 1, "neither repeated nor redirected"


async def test_a_key_of_no_known_form_is_not_repeated_either(stub: ModelStub) -> None:
    model = llm.ChatModel(stub.url, "stub", api_key="plain key 42")
    stub.default = fails(401, "no such key: plain key 42")
    with pytest.raises(errors.ModelRefused, match="no such key") as caught:
        await ask(model)
    await model.close()
    assert "42" not in str(caught.value)


async def test_no_error_repeats_the_key_or_the_prompt(stub: ModelStub, model: llm.ChatModel) -> None:
    for words in (f"Incorrect API key provided: {KEY}", f"Invalid input: {SECRET}", "Bearer abcdefghijkl is bad"):
        stub.default = fails(401, words)
        with pytest.raises(errors.ModelRefused) as caught:
            await ask(model)
        assert KEY not in str(caught.value)
        assert "4711" not in str(caught.value)
        assert "abcdefghijkl" not in str(caught.value)


@pytest.mark.parametrize("fault", ["hang", "drip"])
async def test_an_answer_that_takes_too_long_is_unavailable(stub: ModelStub, fault: Any) -> None:
    stub.default = Reply(fault=fault)
    model = llm.ChatModel(stub.url, "stub", timeout_s=0.2)
    with pytest.raises(errors.ModelUnavailable, match=r"0\.2 s"):
        await ask(model)
    await model.close()


async def test_a_connection_that_breaks_is_unavailable(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = Reply(fault="drop")
    with pytest.raises(errors.ModelUnavailable, match="cannot be reached"):
        await ask(model)


async def test_an_address_where_nobody_listens_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        model = llm.ChatModel(f"http://127.0.0.1:{free.getsockname()[1]}/v1", "stub", api_key=KEY)
        with pytest.raises(errors.ModelUnavailable) as caught:
            await ask(model)
        await model.close()
    assert KEY not in str(caught.value)


async def test_an_answer_without_end_is_not_read_to_the_end(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = Reply(body=b" " * (llm.MAX_ANSWER_BYTES + 1))
    with pytest.raises(errors.ModelRefused, match="longer than"):
        await ask(model)


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"", b"null", b"[]", b"{}", b'{"choices":[]}', b'{"choices":[{"text":"x"}]}', b"[" * 100_000, b"\xff"],
)
async def test_what_is_no_completion_is_refused(stub: ModelStub, model: llm.ChatModel, body: bytes) -> None:
    stub.default = Reply(body=body)
    with pytest.raises(errors.ModelRefused, match="MEMORYD_LLM_BASE_URL"):
        await ask(model)


async def test_an_error_that_comes_as_a_success_is_refused(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = Reply(body={"error": {"message": "provider returned an error", "code": 502}})
    with pytest.raises(errors.ModelRefused, match="provider returned an error"):
        await ask(model)


# Settings


async def test_check_asks_for_a_word_and_takes_any(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says("", finish="length"))
    await model.check()
    stub.then(fails(401))
    with pytest.raises(errors.ModelRefused):
        await model.check()


async def test_a_description_names_model_and_place_without_the_password() -> None:
    model = llm.ChatModel("https://me:secret@models.example/v1/?key=x", "small", api_key=KEY)
    assert model.describe() == "small at https://models.example/v1"
    await model.close()


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://x/v1", "", "http://", "http://[::1/v1", "http://x:notaport/v1"]
)
def test_a_base_url_that_cannot_work_is_a_setup_error(url: str) -> None:
    with pytest.raises(errors.SetupError, match="MEMORYD_LLM_BASE_URL"):
        llm.ChatModel(url, "stub")


def test_a_key_that_no_header_can_carry_is_a_setup_error() -> None:
    with pytest.raises(errors.SetupError, match="MEMORYD_LLM_API_KEY"):
        llm.ChatModel("http://127.0.0.1:1/v1", "stub", api_key="schlüssel")


def test_half_of_a_setting_names_the_other_half() -> None:
    nothing = {"llm_base_url": None, "llm_model": None, "llm_api_key": None}
    assert llm.open_llm(config.Settings(**nothing)) is None  # type: ignore[arg-type]
    with pytest.raises(errors.SetupError, match="MEMORYD_LLM_MODEL"):
        llm.open_llm(config.Settings(**nothing | {"llm_base_url": "http://127.0.0.1:1/v1"}))  # type: ignore[arg-type]
    with pytest.raises(errors.SetupError, match="MEMORYD_LLM_BASE_URL"):
        llm.open_llm(config.Settings(**nothing | {"llm_model": "stub"}))  # type: ignore[arg-type]
