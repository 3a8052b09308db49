"""The first two generations of routes: the verbs of the third, in the shapes of their time."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from app.api import legacy
from app.model import Project, ProjectSettings
from app.runtime import Runtime
from app.store import orgs
from app.store.db import Conn
from tests import factories, fakes

V1 = "/v1/memories/"
V2 = "/v2/memories/"
SEARCH_1 = "/v1/memories/search/"
SEARCH_2 = "/v2/memories/search/"


async def add(client: httpx.AsyncClient, text: str = "A", **body: Any) -> str:
    owners = {} if {"user_id", "agent_id", "app_id", "run_id"} & set(body) else {"user_id": "u1"}
    answer = await client.post("/v3/memories/add/", json={"messages": text, "infer": False, **owners, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"][0]["id"]


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["memory"] for item in items]


# Add


async def test_first_add_answers_an_array_that_names_the_event(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    answer = await client.post(V1, json={"messages": "I moved to Lisbon.", "user_id": "u1", "version": "v1"})
    (row,) = answer.json()
    assert (row["status"], row["message"]) == (
        "PENDING",
        "Memory processing has been queued for background execution",
    )
    await queue.drain(runtime)
    assert (await client.get(f"/v1/event/{row['event_id']}/")).json()["status"] == "SUCCEEDED"
    assert len((await client.get(V1, params={"user_id": "u1"})).json()) == 1


@pytest.mark.parametrize("options", [{"version": "v2"}, {"async_mode": True}, {}])
async def test_first_add_answers_an_object_for_v1_1(client: httpx.AsyncClient, options: dict[str, Any]) -> None:
    body = {"messages": "I moved.", "user_id": "u1", "output_format": "v1.1", **options}
    answer = (await client.post(V1, json=body)).json()
    assert [row["status"] for row in answer["results"]] == ["PENDING"]
    assert answer["relations"] == []


async def test_first_add_without_inference_answers_what_was_stored(client: httpx.AsyncClient) -> None:
    said = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
    body = {"messages": said, "user_id": "u1", "infer": False}
    (row,) = (await client.post(V1, json=body)).json()
    assert (row["event"], row["memory"], row["data"]) == ("ADD", "A", {"memory": "A"})
    answer = (await client.post(V1, json={**body, "output_format": "v1.1"})).json()
    assert (answer["results"], answer["relations"]) == ([], [])  # stored before
    assert [skipped["index"] for skipped in answer["skipped"]] == [1]


async def test_first_add_waits_for_the_outcome_when_it_is_asked_to(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    body = {"messages": "I moved to Lisbon.", "user_id": "u1", "async_mode": False}
    answer, _ = await asyncio.gather(client.post(V1, json=body), _work(runtime, queue))
    (row,) = answer.json()
    assert row["event"] == "ADD"
    assert "Lisbon" in row["memory"]


async def _work(runtime: Runtime, queue: fakes.RecordingQueue) -> None:
    async with asyncio.timeout(30):
        while not queue.rung:  # noqa: ASYNC110 - the other side is a request
            await asyncio.sleep(0.01)
    await queue.drain(runtime)


async def test_first_add_that_waits_in_vain_names_the_event(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legacy, "WAIT_S", 0.05)
    (row,) = (await client.post(V1, json={"messages": "I moved.", "user_id": "u1", "async_mode": False})).json()
    assert row["status"] == "PENDING"


@pytest.mark.parametrize("body", [{}, {"messages": "A"}, {"user_id": "u1"}, {"messages": [], "user_id": "u1"}])
async def test_first_add_refuses_in_the_shape_of_adds(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    answer = await client.post(V1, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "400 Bad Request"
    assert answer.json()["details"]["message"] == answer.json()["detail"]


# First list


async def test_first_list_is_an_array_newest_first(client: httpx.AsyncClient) -> None:
    await add(client, "old", timestamp=1_600_000_000)
    await add(client, "new")
    answer = (await client.get(V1, params={"user_id": "u1"})).json()
    assert texts(answer) == ["new", "old"]
    assert answer[0]["session_id"] is None


async def test_first_list_is_a_page_only_with_both_parameters(client: httpx.AsyncClient) -> None:
    for text in "ABC":
        await add(client, text)
    page = (await client.get(V1, params={"user_id": "u1", "page": 2, "page_size": 2, "limit": 1})).json()
    assert (page["count"], len(page["results"])) == (3, 1)
    assert page["previous"].startswith("http://memoryd.test/v1/memories/?user_id=u1")
    assert (await client.get(V1, params={"user_id": "u1", "page": 3, "page_size": 2})).json() == {
        "detail": "Invalid page."
    }
    for query, expected in (({"page_size": 2}, 2), ({"limit": 1}, 1), ({"page": 1}, 3), ({"page": 9}, 0)):
        answer = (await client.get(V1, params={"user_id": "u1", **query})).json()
        assert isinstance(answer, list)
        assert len(answer) == expected


async def test_first_list_with_a_graph_adds_relations_unless_it_is_a_page(client: httpx.AsyncClient) -> None:
    await add(client)
    asked = {"user_id": "u1", "output_format": "v1.1", "enable_graph": "true"}
    assert (await client.get(V1, params=asked)).json()["relations"] == []
    assert "relations" not in (await client.get(V1, params={**asked, "page": 1, "page_size": 5})).json()
    assert isinstance((await client.get(V1, params={**asked, "enable_graph": "false"})).json(), list)


@pytest.mark.parametrize("query", ["", "?org_id=&project_id=", "?metadata=%7B%22a%22%3A1%7D", "?page=1&page_size=5"])
async def test_first_list_without_an_owner_is_refused_by_a_bare_array(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(V1 + query)
    assert answer.status_code == 400
    assert answer.json() == ["One of the filters: app_id, user_id, agent_id, run_id is required!"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": 201}, "limit must be <= 200"),
        ({"limit": "x"}, "limit"),
        ({"page": 0}, "page"),
        ({"page_size": 201, "page": 1}, "page_size must be <= 200"),
        ({"metadata": "{"}, "metadata must be a JSON object"),
        ({"start_date": "soon"}, "start_date"),
        ({"user_id": ""}, "user_id"),
        ({"show_expired": "maybe"}, "show_expired"),
        ({"filters": "x"}, "filters must be a JSON object"),
    ],
)
async def test_first_list_refuses_what_it_cannot_honour(
    client: httpx.AsyncClient, query: dict[str, Any], words: str
) -> None:
    answer = await client.get(V1, params={"user_id": "u1", **query})
    assert answer.status_code == 400
    assert words in answer.json()["error"]


async def test_first_list_narrows_by_every_parameter(client: httpx.AsyncClient) -> None:
    await add(client, "red bike", metadata={"k": "v"}, timestamp="2024-03-05T12:00:00Z")
    await add(client, "blue car", expiration_date="2001-01-01")
    for query in (
        {"metadata": '{"k": "v"}'},
        {"metadata": "{'k': 'v'}"},  # the way a Python client prints it
        {"keywords": "BIKE"},
        {"start_date": "2024-03-05", "end_date": "2024-03-05"},
        {"filters": '{"metadata": {"k": "v"}}'},
    ):
        assert texts((await client.get(V1, params={"user_id": "u1", **query})).json()) == ["red bike"], query
    shown = (await client.get(V1, params={"user_id": "u1", "show_expired": "true"})).json()
    assert sorted(texts(shown)) == ["blue car", "red bike"]


@pytest.mark.parametrize(
    "query",
    [
        [("categories", "a"), ("categories", "b")],
        [("categories", "a,b")],
        [("categories", '["a", "b"]')],
    ],
)
async def test_list_in_a_query_may_be_repeated_joined_or_json(
    client: httpx.AsyncClient, conn: Conn, project: Project, query: list[tuple[str, str]]
) -> None:
    scope = await factories.make_scope(conn, project, user_id="u1")
    for name in "abc":
        await factories.make_memory(conn, scope, name, categories=(name,))
    answer = await client.get(V1, params=[("user_id", "u1"), *query])
    assert sorted(texts(answer.json())) == ["a", "b"]


async def test_first_list_projects_fields(client: httpx.AsyncClient) -> None:
    await add(client)
    answer = await client.get(V1, params={"user_id": "u1", "fields": "memory,bogus"})
    assert [sorted(item) for item in answer.json()] == [["id", "memory"]]


# Second list


async def test_second_list_is_an_array_unless_the_query_has_both_parameters(client: httpx.AsyncClient) -> None:
    for text in "ABC":
        await add(client, text)
    body = {"filters": {"user_id": "u1"}}
    assert texts((await client.post(V2, json=body)).json()) == ["C", "B", "A"]
    assert texts((await client.post(V2, json={**body, "page": 2, "page_size": 2})).json()) == ["A"]
    page = (await client.post(V2 + "?page=1&page_size=2", json=body)).json()
    assert (page["count"], texts(page["results"])) == (3, ["C", "B"])
    assert (await client.post(V2 + "?page=3&page_size=2", json=body)).status_code == 404


async def test_second_list_counts_owners_at_the_top_level_as_filters(client: httpx.AsyncClient) -> None:
    await add(client, "mine", metadata={"k": 1})
    await add(client, "mine too")
    await add(client, "theirs", user_id="u2")
    assert sorted(texts((await client.post(V2, json={"user_id": "u1"})).json())) == ["mine", "mine too"]
    body = {"user_id": "u1", "filters": {"metadata": {"k": 1}}}
    assert texts((await client.post(V2, json=body)).json()) == ["mine"]
    body = {"user_id": "u1", "filters": {"user_id": "u2"}}
    assert (await client.post(V2, json=body)).json() == []


@pytest.mark.parametrize("body", [{}, {"filters": {}}, {"filters": None}, {"filters": []}, {"filters": "x"}])
async def test_second_list_needs_filters(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    answer = await client.post(V2, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == answer.json()["detail"]


async def test_owners_that_are_not_named_must_be_null_in_every_generation(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    await add(client, "alone", user_id="u1")
    await add(client, "with a run", user_id="u1", run_id="r1")
    search = {"query": "alone run", "threshold": 0}

    async def found() -> list[list[str]]:
        return [
            sorted(texts((await client.get(V1, params={"user_id": "u1"})).json())),
            sorted(texts((await client.post(V2, json={"filters": {"user_id": "u1"}})).json())),
            sorted(texts((await client.post(SEARCH_1, json={**search, "user_id": "u1"})).json())),
            sorted(texts((await client.post(SEARCH_2, json={**search, "filters": {"user_id": "u1"}})).json())),
        ]

    assert await found() == [["alone"]] * 4
    lifted = await client.post(V2, json={"filters": {"OR": [{"user_id": "u1"}]}})
    assert len(lifted.json()) == 2
    from app.domain import access

    await orgs.save_settings(conn, project.id, ProjectSettings(compatibility="hosted"))
    access.forget()
    assert await found() == [["alone", "with a run"]] * 4


# Searches


async def test_first_search_is_an_array_or_an_object(client: httpx.AsyncClient) -> None:
    await add(client, "likes tea")
    body = {"query": "tea", "user_id": "u1"}
    (hit,) = (await client.post(SEARCH_1, json=body)).json()
    assert 0 <= hit["score"] <= 1
    answer = (await client.post(SEARCH_1, json={**body, "output_format": "v1.1"})).json()
    assert (texts(answer["results"]), answer["relations"]) == (["likes tea"], [])


async def test_first_search_takes_limit_fields_and_options_without_effect(client: httpx.AsyncClient) -> None:
    for number in range(12):
        await add(client, f"likes tea {number}")
    body = {"query": "tea", "user_id": "u1", "filter_memories": True, "only_metadata_based_search": True}
    assert len((await client.post(SEARCH_1, json=body)).json()) == 10
    assert len((await client.post(SEARCH_1, json={**body, "limit": 3})).json()) == 3
    assert len((await client.post(SEARCH_1, json={**body, "limit": 3, "top_k": 4})).json()) == 4
    (hit,) = (await client.post(SEARCH_1, json={**body, "limit": 1, "fields": ["memory"]})).json()
    assert sorted(hit) == ["id", "memory"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (SEARCH_1, {"query": "x"}, "At least one of the filters: agent_id, user_id, app_id, run_id is required!"),
        (SEARCH_1, {"user_id": "u1"}, "query"),
        (SEARCH_1, {"query": " ", "user_id": "u1"}, "query"),
        (SEARCH_1, {"query": "x", "user_id": "u1", "top_k": 0}, "top_k"),
        (SEARCH_1, {"query": "x", "filters": {"categories": {"in": ["a"]}}}, "filters"),
        (SEARCH_2, {"query": "x"}, "Filters are required and cannot be empty."),
        (SEARCH_2, {"query": "x", "filters": {}}, "Filters are required and cannot be empty."),
        (SEARCH_2, {"filters": {"user_id": "u1"}}, "query"),
        (SEARCH_2, {"query": "x", "filters": {"user_id": "u1"}, "threshold": 2}, "threshold"),
    ],
)
async def test_searches_refuse_under_every_key_that_clients_read(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], words: str
) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 400
    assert words in answer.json()["message"]
    assert answer.json()["message"] == answer.json()["error"] == answer.json()["detail"]


async def test_second_search_is_an_array_above_its_threshold(client: httpx.AsyncClient) -> None:
    await add(client, "likes tea")
    await add(client, "drives car")
    body = {"query": "likes tea", "filters": {"user_id": "u1"}, "version": "v2"}
    found = (await client.post(SEARCH_2, json=body)).json()
    assert found[0]["memory"] == "likes tea"
    assert all(hit["score"] >= 0.3 for hit in found)
    everything = (await client.post(SEARCH_2, json={**body, "threshold": 0})).json()
    assert sorted(texts(everything)) == ["drives car", "likes tea"]


async def test_second_search_takes_a_user_at_the_top_level(client: httpx.AsyncClient) -> None:
    await add(client, "likes tea")
    answer = await client.post(SEARCH_2, json={"query": "likes tea", "user_id": "u1", "threshold": 0})
    assert texts(answer.json()) == ["likes tea"]


# Another project's ids


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (V1, {"messages": "A", "user_id": "u1"}),
        (V2, {"filters": {"user_id": "u1"}}),
        (SEARCH_1, {"query": "x", "user_id": "u1"}),
        (SEARCH_2, {"query": "x", "filters": {"user_id": "u1"}}),
    ],
)
async def test_ids_of_the_ping_are_taken_and_others_refused(
    client: httpx.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    ping = (await client.get("/v1/ping/")).json()
    own = {"org_id": ping["org_id"], "project_id": ping["project_id"]}
    assert (await client.post(path, json={**body, **own})).status_code == 200
    for name in own:
        answer = await client.post(path, json={**body, **own, name: "other"})
        assert answer.status_code == 403
        assert answer.json()["detail"].startswith("You don't have access to this project")
