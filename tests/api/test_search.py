"""POST /v3/memories/search/."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from app import errors
from app.model import ProjectSettings
from app.runtime import Runtime
from app.store.db import Conn
from tests import factories, fakes

SEARCH = "/v3/memories/search/"


async def add(client: httpx.AsyncClient, *texts: str, **body: Any) -> list[str]:
    owners = {} if {"user_id", "agent_id", "app_id", "run_id"} & set(body) else {"user_id": "u1"}
    messages = [{"role": "user", "content": text} for text in texts]
    answer = await client.post("/v3/memories/add/", json={"messages": messages, "infer": False, **owners, **body})
    assert answer.status_code == 200, answer.text
    return [result["id"] for result in answer.json()["results"]]


async def search(client: httpx.AsyncClient, query: str, **body: Any) -> list[dict[str, Any]]:
    answer = await client.post(SEARCH, json={"query": query, "filters": {"user_id": "u1"}, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


async def test_hit_is_the_memory_with_score_and_breakdown(client: httpx.AsyncClient) -> None:
    (memory_id,) = await add(client, "parks the blue van on level 3", run_id="r1", user_id="u1")
    (hit,) = await search(client, "blue van", filters={"AND": [{"user_id": "u1"}, {"run_id": "r1"}]})
    memory = (await client.get(f"/v1/memories/{memory_id}/")).json()
    assert {name: hit[name] for name in memory} == memory
    assert set(hit) - set(memory) == {"score", "score_breakdown"}
    assert 0 <= hit["score"] <= 1
    assert set(hit["score_breakdown"]) == {"semantic", "bm25", "entity"}


async def test_hits_come_best_first(client: httpx.AsyncClient) -> None:
    await add(client, "likes green tea", "has a red bike", "works at a bakery")
    hits = await search(client, "green tea", threshold=0)
    assert hits[0]["memory"] == "likes green tea"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


async def test_answer_says_how_likely_it_is_one_and_keeps_quiet_below_the_confidence_asked_for(
    client: httpx.AsyncClient,
) -> None:
    await add(client, "parks the blue van on level 3", "has a red bike")
    body = {"query": "Who parks the blue van on level 3?", "filters": {"user_id": "u1"}, "threshold": 0}
    sure = (await client.post(SEARCH, json={**body, "min_confidence": 0.5})).json()
    unsure = (await client.post(SEARCH, json={**body, "query": "zebra", "min_confidence": 0.95})).json()
    assert 0.5 <= sure["answerable"] <= 1
    assert len(sure["results"]) == 2
    assert 0 <= unsure["answerable"] < 0.95
    assert unsure["results"] == []
    nobody = (await client.post(SEARCH, json={**body, "filters": {"user_id": "nobody"}})).json()
    assert nobody == {"results": [], "answerable": 0}


async def test_equal_queries_have_equal_answers(client: httpx.AsyncClient) -> None:
    await add(client, *(f"likes tea number {number}" for number in range(30)))
    body = {"query": "Which tea?", "filters": {"user_id": "u1"}, "threshold": 0, "top_k": 30}
    answers = [(await client.post(SEARCH, json=body)).json() for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]["results"]) == 30


async def test_space_around_a_query_does_not_matter(client: httpx.AsyncClient) -> None:
    await add(client, "parks the blue van on level 3", "has a red bike")
    assert await search(client, "  blue van \n", threshold=0) == await search(client, "blue van", threshold=0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Filters are required and cannot be empty."),
        ({"query": "x"}, "user_id"),
        ({"query": "x", "filters": {}}, "Filters are required"),
        ({"query": "x", "user_id": "u1"}, "belongs into filters"),
        ({"query": "x", "user_id": "u1", "filters": {"user_id": "u1"}}, "belongs into filters"),
        ({"filters": {"user_id": "u1"}}, "query"),
        ({"query": "", "filters": {"user_id": "u1"}}, "query"),
        ({"query": "   ", "filters": {"user_id": "u1"}}, "query"),
        ({"query": "\n\t", "filters": {"user_id": "u1"}}, "query"),
        ({"query": None, "filters": {"user_id": "u1"}}, "query"),
        ({"query": 5, "filters": {"user_id": "u1"}}, "query"),
        ({"query": "a\0", "filters": {"user_id": "u1"}}, "U+0000"),
        ({"query": "x" * (2**20 + 1), "filters": {"user_id": "u1"}}, "MEMORYD_MAX_MESSAGE_BYTES"),
        ({"query": "x", "filters": {"user_id": "u1"}, "min_confidence": 1.5}, "min_confidence"),
        ({"query": "x", "filters": {"user_id": "u1"}, "top_k": 0}, "top_k"),
        ({"query": "x", "filters": {"user_id": "u1"}, "top_k": 1001}, "top_k"),
        ({"query": "x", "filters": {"user_id": "u1"}, "top_k": True}, "top_k"),
        ({"query": "x", "filters": {"user_id": "u1"}, "top_k": 1.5}, "top_k"),
        ({"query": "x", "filters": {"user_id": "u1"}, "threshold": 1.1}, "threshold"),
        ({"query": "x", "filters": {"user_id": "u1"}, "threshold": -0.1}, "threshold"),
        ({"query": "x", "filters": {"user_id": "u1"}, "threshold": "high"}, "threshold"),
        ({"query": "x", "filters": {"user_id": "u1"}, "reference_date": "soon"}, "reference_date"),
        ({"query": "x", "filters": {"user_id": "u1"}, "rerank": "perhaps"}, "rerank"),
        ({"query": "x", "filters": {"NOT": {"user_id": "u1"}}}, "user_id"),
    ],
)
async def test_search_that_cannot_be_honoured_is_refused_by_name(
    client: httpx.AsyncClient, body: dict[str, Any], words: str
) -> None:
    answer = await client.post(SEARCH, json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert answer.json()["error"] == answer.json()["detail"]


@pytest.mark.parametrize(
    "query",
    [
        "the of and", "?!", "'", '"', "%", "a & b | !c <-> (d", "Jane Roe <jane@mail.example>", "https://a.example/x?y=1#z",
        "+00 (0)1 234-5", "Cannot read config file: /etc/имя\\путь", "Ошибка: (500)!", "周末吃什么", "<|fim_prefix|>", "{}{0}",
        "%(x)s $HOME", "\u202e", "👩‍👩‍👧", "x " * 5000,
    ],
)  # fmt: skip
async def test_any_text_is_a_query(client: httpx.AsyncClient, query: str) -> None:
    await add(client, "contact is Jane Roe <jane@mail.example>", "周末吃夜宵", "has a red bike")
    assert len(await search(client, query, threshold=0)) <= 3


async def test_rare_token_and_chinese_query_find_their_memory(client: httpx.AsyncClient) -> None:
    await add(client, "has a red bike", "the ticket is ZX-4471-Q", "周末吃夜宵")
    assert (await search(client, "ZX-4471-Q"))[0]["memory"] == "the ticket is ZX-4471-Q"
    # The vectors of the tests know nothing of Chinese, so the keyword arm alone tells which one it is.
    best = max(await search(client, "夜宵"), key=lambda hit: hit["score_breakdown"]["bm25"])
    assert best["memory"] == "周末吃夜宵"


async def test_top_k_of_the_project_is_the_default(client: httpx.AsyncClient, runtime: Runtime, conn: Conn) -> None:
    await add(client, *(f"tea number {number}" for number in range(30)))
    assert len(await search(client, "tea", threshold=0)) == 20
    assert len(await search(client, "tea", threshold=0, top_k=25)) == 25
    hosted = await factories.make_project(conn, settings=ProjectSettings(compatibility="hosted"))
    client.headers["Authorization"] = f"Token {await factories.make_key(runtime, hosted)}"
    await add(client, *(f"tea number {number}" for number in range(30)))
    assert len(await search(client, "tea", threshold=0)) == 10


async def test_higher_threshold_gives_a_subset(client: httpx.AsyncClient) -> None:
    await add(client, "likes green tea", "green bike", "works at a bakery", "tea", "green tea shop")
    found = {cut: {hit["id"] for hit in await search(client, "green tea", threshold=cut)} for cut in (0, 0.3, 0.9)}
    assert found[0.9] <= found[0.3] <= found[0]
    assert len(found[0]) == 5


async def test_search_is_null_scoped_as_the_project_says(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn
) -> None:
    await add(client, "likes tea", user_id="u1", run_id="r1")
    assert await search(client, "tea") == []
    hosted = await factories.make_project(conn, settings=ProjectSettings(compatibility="hosted"))
    client.headers["Authorization"] = f"Token {await factories.make_key(runtime, hosted)}"
    await add(client, "likes tea", user_id="u1", run_id="r1")
    assert len(await search(client, "tea")) == 1


async def test_metadata_beside_the_filters_narrows(client: httpx.AsyncClient) -> None:
    await add(client, "red invoice", metadata={"team": "red"})
    await add(client, "blue invoice", metadata={"team": "blue"})
    assert [hit["memory"] for hit in await search(client, "invoice", metadata={"team": "red"})] == ["red invoice"]


async def test_expired_memory_is_found_when_asked_for(client: httpx.AsyncClient) -> None:
    await add(client, "likes tea", expiration_date="2020-01-01")
    assert await search(client, "tea") == []
    assert len(await search(client, "tea", show_expired=True)) == 1


async def test_fields_keep_the_id(client: httpx.AsyncClient) -> None:
    (memory_id,) = await add(client, "likes tea")
    (hit,) = await search(client, "tea", fields=["memory", "score"])
    assert (set(hit), hit["id"]) == ({"id", "memory", "score"}, memory_id)


async def test_deleted_memory_is_not_found(client: httpx.AsyncClient) -> None:
    (memory_id,) = await add(client, "parks the blue van on level 3")
    await client.delete(f"/v1/memories/{memory_id}/")
    assert await search(client, "blue van", threshold=0) == []


async def test_fields_of_other_clients_are_ignored(client: httpx.AsyncClient) -> None:
    await add(client, "likes tea")
    ignored = {
        "output_format": "v1.1",
        "source": "CLI",
        "keyword_search": True,
        "enable_graph": False,
        "apiKey": "m0-x",
    }
    assert len(await search(client, "tea", rerank=True, **ignored)) == 1


async def test_silent_embedder_is_503_while_lists_still_answer(
    client: httpx.AsyncClient, embedder: fakes.FakeEmbedder
) -> None:
    await add(client, "likes tea")
    embedder.failures = [errors.EmbedderUnavailable()]
    answer = await client.post(SEARCH, json={"query": "tea", "filters": {"user_id": "u1"}})
    assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
    assert (await client.post("/v3/memories/", json={"filters": {"user_id": "u1"}})).json()["count"] == 1


async def test_useless_embedder_is_502(client: httpx.AsyncClient, runtime: Runtime) -> None:
    await add(client, "likes tea")

    class Useless(fakes.FakeEmbedder):
        async def embed_query(self, text: str) -> Any:
            raise errors.EmbedderRefused

    from app.api import create_app

    app = create_app(replace(runtime, embedder=Useless()))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://memoryd.test", headers=client.headers
    ) as other:
        answer = await other.post(SEARCH, json={"query": "tea", "filters": {"user_id": "u1"}})
    assert answer.status_code == 502
