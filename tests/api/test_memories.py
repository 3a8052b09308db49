"""List, read, change, delete, history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest

from app import errors
from app.model import Owners, Project, State
from app.runtime import Runtime
from app.store import scopes
from app.store.db import Conn
from tests import factories, fakes

LIST = "/v3/memories/"


async def add(client: httpx.AsyncClient, text: str = "A", **body: Any) -> str:
    """Store one text for u1, unless another owner is named; return its id."""
    owners = {} if {"user_id", "agent_id", "app_id", "run_id"} & set(body) else {"user_id": "u1"}
    answer = await client.post("/v3/memories/add/", json={"messages": text, "infer": False, **owners, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"][0]["id"]


async def texts(client: httpx.AsyncClient, filters: dict[str, Any] | None = None, **body: Any) -> list[str]:
    answer = await client.post(LIST, json={"filters": filters or {"user_id": "u1"}, **body})
    assert answer.status_code == 200, answer.text
    return [memory["memory"] for memory in answer.json()["results"]]


async def history(client: httpx.AsyncClient, memory_id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/memories/{memory_id}/history/")
    assert answer.status_code == 200, answer.text
    return answer.json()


# List


async def test_list_is_newest_first(client: httpx.AsyncClient) -> None:
    for day, text in enumerate(["old", "newer", "newest"]):
        await add(client, text, timestamp=1_600_000_000 + day * 86_400)
    assert await texts(client) == ["newest", "newer", "old"]


async def test_following_next_visits_each_memory_once(client: httpx.AsyncClient, conn: Conn, project: Project) -> None:
    scope = await factories.make_scope(conn, project, user_id="u1")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(45):
        await factories.make_memory(conn, scope, f"text {number}", created_at=moment)
    url: str | None = "http://memoryd.test/v3/memories/?page_size=7&x=1"
    seen: list[str] = []
    pages = 0
    while url:
        body = (await client.post(url, json={"filters": {"user_id": "u1"}})).json()
        assert body["count"] == 45
        seen += [memory["id"] for memory in body["results"]]
        url, pages = body["next"], pages + 1
        if url:
            assert urlsplit(url).netloc == "memoryd.test"
            assert parse_qs(urlsplit(url).query) == {"x": ["1"], "page": [str(pages + 1)], "page_size": ["7"]}
    assert (pages, len(seen), len(set(seen))) == (7, 45, 45)
    assert body["previous"].endswith("page=6&page_size=7")


async def test_query_wins_over_body_for_page_and_size(client: httpx.AsyncClient) -> None:
    for text in "ABC":
        await add(client, text)
    body = {"filters": {"user_id": "u1"}, "page": 3, "page_size": 1}
    assert len((await client.post(LIST, json=body)).json()["results"]) == 1
    answer = (await client.post(LIST + "?page=1&page_size=2", json=body)).json()
    assert (len(answer["results"]), answer["previous"]) == (2, None)


async def test_public_url_is_the_base_of_page_links(client: httpx.AsyncClient, runtime: Runtime) -> None:
    from dataclasses import replace

    from app.api import create_app

    for text in "AB":
        await add(client, text)
    settings = runtime.settings.model_copy(update={"public_url": "https://memory.example/base/"})
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=create_app(replace(runtime, settings=settings))),
        base_url="http://memoryd.test",
        headers=client.headers,
    ) as proxied:
        answer = await proxied.post(LIST + "?page_size=1", json={"filters": {"user_id": "u1"}})
    assert answer.json()["next"] == "https://memory.example/base/v3/memories/?page=2&page_size=1"


@pytest.mark.parametrize("page", [2, 1000])
async def test_page_past_the_end_is_404(client: httpx.AsyncClient, page: int) -> None:
    await add(client)
    answer = await client.post(f"{LIST}?page={page}", json={"filters": {"user_id": "u1"}})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Invalid page."})


async def test_first_page_of_nothing_is_an_empty_list(client: httpx.AsyncClient) -> None:
    answer = await client.post(LIST, json={"filters": {"user_id": "nobody"}})
    assert answer.json() == {"count": 0, "next": None, "previous": None, "results": []}


@pytest.mark.parametrize(
    "query", ["page_size=201", "page_size=0", "page=0", "page=-1", "page=x", "page_size=", "page=1.5"]
)
async def test_page_that_is_none_is_400(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.post(f"{LIST}?{query}", json={"filters": {"user_id": "u1"}})
    assert answer.status_code == 400
    assert query.split("=")[0] in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Filters are required and cannot be empty."),
        ({"filters": {}}, "user_id"),
        ({"filters": None}, "Filters are required"),
        ({"filters": []}, "Filters are required"),
        ({"filters": "x"}, "filters"),
        ({"user_id": "u1"}, "belongs into filters"),
        ({"user_id": "u1", "filters": {"user_id": "u1"}}, "belongs into filters"),
        ({"runId": "u1", "filters": {"user_id": "u1"}}, "run_id"),
        ({"filters": {"user_id": ""}}, "user_id"),
        ({"filters": {"bogus_key": "z", "user_id": "u1"}}, "bogus_key"),
        ({"filters": {"NOT": {"user_id": "u1"}}}, "user_id"),
        ({"filters": {"user_id": "u1"}, "fields": 5}, "fields"),
        ({"filters": {"user_id": "u1"}, "show_expired": 5}, "show_expired"),
        ({"filters": {"user_id": "u1"}, "start_date": "soon"}, "start_date"),
        ({"filters": {"user_id": "u1"}, "categories": 5}, "categories"),
        ({"filters": {"user_id": "u1"}, "metadata": 5}, "metadata"),
    ],
)
async def test_selection_that_cannot_be_honoured_is_refused_by_name(
    client: httpx.AsyncClient, body: dict[str, Any], words: str
) -> None:
    answer = await client.post(LIST, json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert answer.json()["error"] == answer.json()["detail"]


async def test_camel_case_owner_in_filters_is_understood(client: httpx.AsyncClient) -> None:
    await add(client)
    assert await texts(client, {"userId": "u1"}) == ["A"]


async def test_owner_in_two_spellings_counts_twice(client: httpx.AsyncClient) -> None:
    await add(client)
    assert await texts(client, {"user_id": "u1", "userId": "u2"}) == []
    assert await texts(client, {"user_id": "u2", "userId": "u1"}) == []


async def test_selection_beside_the_filters_narrows(client: httpx.AsyncClient) -> None:
    await add(client, "red invoice", metadata={"team": "red"}, timestamp=1_600_000_000)
    await add(client, "blue invoice", metadata={"team": "blue"})
    assert await texts(client, metadata={"team": "red"}) == ["red invoice"]
    assert await texts(client, keywords="BLUE") == ["blue invoice"]
    assert await texts(client, end_date="2020-09-13") == ["red invoice"]
    assert await texts(client, start_date="2020-09-14") == ["blue invoice"]
    assert await texts(client, categories=["x"]) == []


async def test_expired_memory_is_hidden_after_its_last_day(client: httpx.AsyncClient) -> None:
    today = datetime.now(UTC).date()
    await add(client, "today", expiration_date=str(today))
    gone = await add(client, "yesterday", expiration_date=str(today - timedelta(days=1)), metadata={"a": 1})
    assert await texts(client) == ["today"]
    assert set(await texts(client, show_expired=True)) == {"today", "yesterday"}
    answer = await client.put(f"/v1/memories/{gone}/", json={"expiration_date": None})
    assert (answer.status_code, answer.json()["expiration_date"], answer.json()["metadata"]) == (200, None, {"a": 1})
    assert set(await texts(client)) == {"today", "yesterday"}


async def test_fields_keep_the_id_and_ignore_unknown_names(client: httpx.AsyncClient) -> None:
    memory_id = await add(client)
    answer = await client.post(LIST, json={"filters": {"user_id": "u1"}, "fields": ["memory", "nonsense"]})
    assert answer.json()["results"] == [{"id": memory_id, "memory": "A"}]


@pytest.mark.parametrize(
    "owner",
    ["7f3e1c9a-0000-4000-8000-000000000001", "team:a.b@x.example+1", "a/b", "main", "O'Hara; --", "周", "%2F", "a b"],
)
async def test_owner_id_is_plain_data(client: httpx.AsyncClient, owner: str) -> None:
    await add(client, "mine", user_id=owner)
    await add(client, "theirs", user_id="somebody else")
    assert await texts(client, {"user_id": owner}) == ["mine"]
    assert (await client.delete("/v1/memories/", params={"user_id": owner})).status_code == 200
    assert await texts(client, {"user_id": owner}) == []
    assert await texts(client, {"user_id": "somebody else"}) == ["theirs"]


# Read


async def test_every_read_shows_the_same_memory(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, user_id="u1", run_id="r1")
    one = (await client.get(f"/v1/memories/{memory_id}/")).json()
    listed = await client.post(LIST, json={"filters": {"AND": [{"user_id": "u1"}, {"run_id": "r1"}]}})
    assert listed.json()["results"] == [one]
    assert (one["run_id"], one["session_id"], one["metadata"], one["categories"]) == ("r1", "r1", None, None)
    assert one["hash"] == factories.md5("A")
    moment = datetime.fromisoformat(one["created_at"])
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=2)
    assert one["created_at"].endswith("Z")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_malformed_id_is_400_and_unknown_id_404(client: httpx.AsyncClient, method: str) -> None:
    body = {"text": "B"} if method == "PUT" else None
    bad = await client.request(method, "/v1/memories/0198f3a2/", json=body)
    assert (bad.status_code, bad.json()["error"]) == (400, "memory_id should be a valid UUID")
    unknown = await client.request(method, f"/v1/memories/{uuid4()}/", json=body)
    assert (unknown.status_code, unknown.json()["error"]) == (404, "Memory not found!")


# Change


async def test_text_is_replaced_and_found_again(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, "likes tea")
    answer = await client.put(f"/v1/memories/{memory_id}/", json={"text": "likes rye"})
    assert answer.status_code == 200
    assert (answer.json()["memory"], answer.json()["hash"]) == ("likes rye", factories.md5("likes rye"))
    assert await texts(client) == ["likes rye"]
    assert await texts(client, keywords="tea") == []


async def test_metadata_alone_is_replaced_as_a_whole(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, metadata={"a": 1, "b": 2})
    before = (await client.get(f"/v1/memories/{memory_id}/")).json()
    after = (await client.put(f"/v1/memories/{memory_id}/", json={"metadata": {"b": 3}})).json()
    changed = {name for name in before if before[name] != after[name]}
    assert after["metadata"] == {"b": 3}
    assert changed == {"metadata", "updated_at"}


async def test_timestamp_moves_created_at(client: httpx.AsyncClient) -> None:
    memory_id = await add(client)
    after = (await client.put(f"/v1/memories/{memory_id}/", json={"timestamp": "2021-01-01"})).json()
    assert after["created_at"] == "2021-01-01T00:00:00Z"
    assert after["structured_attributes"]["year"] == 2021


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Nothing to change"),
        ({"txet": "B"}, "Nothing to change"),
        ({"text": None}, "Nothing to change"),
        ({"text": ""}, "text"),
        ({"text": "  "}, "text"),
        ({"text": 5}, "text"),
        ({"metadata": "x"}, "dictionary"),
        ({"expiration_date": "2099-02-30"}, "expiration_date"),
        ({"timestamp": 1609459200000}, "milliseconds"),
    ],
)
async def test_change_that_is_none_is_refused(client: httpx.AsyncClient, body: dict[str, Any], words: str) -> None:
    memory_id = await add(client)
    before = (await client.get(f"/v1/memories/{memory_id}/")).json()
    answer = await client.put(f"/v1/memories/{memory_id}/", json=body)
    assert (answer.status_code, words in answer.json()["error"]) == (400, True)
    assert (await client.get(f"/v1/memories/{memory_id}/")).json() == before


async def test_immutable_memory_can_be_deleted_only(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, immutable=True)
    answer = await client.put(f"/v1/memories/{memory_id}/", json={"text": "B"})
    assert (answer.status_code, "immutable" in answer.json()["error"]) == (400, True)
    assert (await client.delete(f"/v1/memories/{memory_id}/")).status_code == 200


async def test_text_that_another_memory_has_is_a_conflict(client: httpx.AsyncClient) -> None:
    await add(client, "A")
    other = await add(client, "B")
    answer = await client.put(f"/v1/memories/{other}/", json={"text": "A"})
    assert answer.status_code == 409
    assert set(await texts(client)) == {"A", "B"}


async def test_text_that_was_replaced_is_new_again(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, "A")
    await client.put(f"/v1/memories/{memory_id}/", json={"text": "B"})
    await add(client, "A")
    repeat = await client.post("/v3/memories/add/", json={"messages": "B", "user_id": "u1", "infer": False})
    assert repeat.json()["results"] == []
    assert set(await texts(client)) == {"A", "B"}


async def test_failed_change_leaves_the_memory_whole(client: httpx.AsyncClient, embedder: fakes.FakeEmbedder) -> None:
    memory_id = await add(client, "old text")
    embedder.failures = [errors.EmbedderUnavailable()]
    answer = await client.put(f"/v1/memories/{memory_id}/", json={"text": "new text"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert await texts(client) == ["old text"]
    assert [change["event"] for change in await history(client, memory_id)] == ["ADD"]


# Delete


async def test_deleted_memory_is_gone_everywhere_and_its_history_stays(client: httpx.AsyncClient) -> None:
    memory_id = await add(client)
    answer = await client.delete(f"/v1/memories/{memory_id}/")
    assert (answer.status_code, answer.json()) == (200, {"message": "Memory deleted successfully!"})
    assert (await client.get(f"/v1/memories/{memory_id}/")).status_code == 404
    assert (await client.delete(f"/v1/memories/{memory_id}/")).status_code == 404
    assert await texts(client) == []
    assert [change["event"] for change in await history(client, memory_id)] == ["ADD", "DELETE"]


async def test_delete_linked_takes_the_whole_chain_of_superseded_memories(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    scope = await factories.make_scope(conn, project, user_id="u1")
    newest, older, oldest, apart = [
        (await factories.make_memory(conn, scope, text)).id for text in ("newest", "older", "oldest", "apart")
    ]
    supersede = "UPDATE memories SET state = $3, replaced_by = $2 WHERE project_id = $4 AND id = $1"
    await conn.execute(supersede, older, newest, State.SUPERSEDED.value, project.id)
    await conn.execute(supersede, oldest, older, State.SUPERSEDED.value, project.id)
    answer = await client.delete(f"/v1/memories/{newest}/?delete_linked=true")
    assert answer.json() == {"message": "Memory deleted successfully!", "cascade_count": 2}
    assert (await client.get(f"/v1/memories/{apart}/")).status_code == 200
    assert await texts(client) == ["apart"]


async def test_delete_linked_without_a_chain_counts_nothing(client: httpx.AsyncClient) -> None:
    answer = await client.delete(f"/v1/memories/{await add(client)}/?delete_linked=true&source=CLI")
    assert answer.json()["cascade_count"] == 0


# Once


async def test_change_with_the_same_key_is_made_once(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, "A")
    headers = {"Idempotency-Key": "once"}
    for _ in range(2):
        answer = await client.put(f"/v1/memories/{memory_id}/", json={"text": "B"}, headers=headers)
        assert (answer.status_code, answer.json()["memory"]) == (200, "B")
    assert [change["event"] for change in await history(client, memory_id)] == ["ADD", "UPDATE"]
    other = await client.put(f"/v1/memories/{memory_id}/", json={"text": "C"}, headers=headers)
    assert (other.status_code, "Idempotency-Key" in other.json()["error"]) == (422, True)


async def test_delete_with_the_same_key_gives_the_same_answer(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, "A")
    headers = {"Idempotency-Key": "once"}
    url = f"/v1/memories/{memory_id}/?delete_linked=true"
    first, second = [await client.delete(url, headers=headers) for _ in range(2)]
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert (await client.delete(url)).status_code == 404


async def test_delete_all_with_the_same_key_deletes_nothing_that_came_later(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "once"}
    await add(client, "A")
    first = await client.delete("/v1/memories/?user_id=u1", headers=headers)
    await add(client, "B")
    second = await client.delete("/v1/memories/?user_id=u1", headers=headers)
    assert first.json() == second.json()
    assert await texts(client) == ["B"]


async def test_changes_are_events(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, "A")
    await client.put(f"/v1/memories/{memory_id}/", json={"text": "B", "expiration_date": "2999-01-01"})
    await client.delete(f"/v1/memories/{memory_id}/")
    events = (await client.get("/v1/events/")).json()["results"]
    assert [event["event_type"] for event in events] == ["DELETE", "UPDATE", "ADD"]
    assert events[1]["payload"] == {"memory_id": memory_id, "text": "B", "expiration_date": "2999-01-01"}
    assert events[1]["results"][0]["data"] == {"memory": "B"}
    assert events[0]["results"] == [{"id": memory_id, "event": "DELETE"}]


# History


async def test_history_tells_every_change_oldest_first(client: httpx.AsyncClient) -> None:
    memory_id = await add(client, "A", run_id="r1", user_id="u1")
    await client.put(f"/v1/memories/{memory_id}/", json={"text": "B"})
    rows = await history(client, memory_id)
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in rows] == [
        ("ADD", None, "A"),
        ("UPDATE", "A", "B"),
    ]
    assert rows[0]["input"] == [{"role": "user", "content": "A"}]
    assert all(row["session_id"] == "r1" and row["created_at"] and row["updated_at"] for row in rows)
    await client.delete(f"/v1/memories/{memory_id}/")
    last = (await history(client, memory_id))[-1]
    assert (last["event"], last["old_memory"], last["new_memory"]) == ("DELETE", "B", "")


async def test_history_of_an_unknown_memory_is_404(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"/v1/memories/{uuid4()}/history/")).status_code == 404
    assert (await client.get("/v1/memories/x/history/")).status_code == 400


# Delete all


async def delete_all(client: httpx.AsyncClient, **params: str) -> httpx.Response:
    return await client.delete("/v1/memories/", params=params)


async def test_delete_all_removes_what_matches_and_nothing_else(client: httpx.AsyncClient) -> None:
    await add(client, "A", user_id="u1")
    await add(client, "B", user_id="u2")
    answer = await delete_all(client, user_id="u1")
    assert answer.status_code == 200
    assert answer.json()["message"] == "Delete in progress. This may take some time."
    event = (await client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
    assert (event["event_type"], event["status"], event["metadata"]["deleted"]) == ("DELETE_ALL", "SUCCEEDED", 1)
    assert await texts(client) == []
    assert await texts(client, {"user_id": "u2"}) == ["B"]


async def test_delete_all_ands_its_parameters(client: httpx.AsyncClient) -> None:
    await add(client, "A", user_id="u1", run_id="r1")
    await add(client, "B", user_id="u1", run_id="r2")
    await delete_all(client, user_id="u1", run_id="r1")
    assert await texts(client, {"AND": [{"user_id": "u1"}, {"run_id": "*"}]}) == ["B"]


async def test_delete_all_is_not_null_scoped(client: httpx.AsyncClient) -> None:
    await add(client, "A", user_id="u1", run_id="r1")
    await delete_all(client, user_id="u1", org_id="o", project_id="p", source="CLI")
    assert await texts(client, {"AND": [{"user_id": "u1"}, {"run_id": "*"}]}) == []


async def test_delete_all_of_a_wildcard_takes_those_that_have_the_owner(client: httpx.AsyncClient) -> None:
    await add(client, "A", user_id="u1")
    await add(client, "B", agent_id="a1")
    await delete_all(client, user_id="*")
    assert await texts(client, {"agent_id": "a1"}) == ["B"]
    assert await texts(client) == []


async def test_delete_all_of_four_wildcards_empties_the_project(client: httpx.AsyncClient) -> None:
    await add(client, "A", user_id="u1")
    await add(client, "B", agent_id="a1", run_id="r1")
    await delete_all(client, user_id="*", agent_id="*", app_id="*")
    assert await texts(client) == ["A"]
    await delete_all(client, user_id="*", agent_id="*", app_id="*", run_id="*")
    assert await texts(client, {"OR": [{"user_id": "*"}, {"run_id": "*"}]}) == []


async def test_delete_all_by_metadata(client: httpx.AsyncClient) -> None:
    await add(client, "red", metadata={"team": "red"})
    await add(client, "blue", metadata={"team": "blue"})
    await delete_all(client, user_id="u1", metadata='{"team": "red"}')
    assert await texts(client) == ["blue"]


@pytest.mark.parametrize("filters", ["{'user_id': 'u1'}", '{"user_id": "u1"}', '{"AND": [{"user_id": "u1"}]}'])
async def test_delete_all_understands_what_the_python_client_sends(client: httpx.AsyncClient, filters: str) -> None:
    await add(client, "A", user_id="u1")
    await add(client, "B", user_id="u2")
    assert (await delete_all(client, filters=filters)).status_code == 200
    assert await texts(client) == []
    assert await texts(client, {"user_id": "u2"}) == ["B"]


@pytest.mark.parametrize(
    "query",
    [
        "", "?", "?org_id=o&project_id=p&source=CLI", "?user_id=", "?user_id=%20", "?user_id=u1&run_id=", "?filters=", "?filters={}",
        "?filters=[]", "?filters=user_id", "?filters=__import__('os')", "?filters={'user_id': open}", "?filters={1: 2}",
        "?filters={'AND': []}", "?filters={'bogus': 1}", "?filters=" + "[" * 500, "?metadata=x", "?metadata={}", "?metadata=[1]",
        "?user=u1", "?userid=u1&user_id=u1", "?user_id=u1&user_id=u2", "?user_id=a%00b", "?filters={'user_id': ''}",
        "?filters=%7B'user_id'%3A%20%22%5Cud800%22%7D",
    ],
)  # fmt: skip
async def test_delete_all_that_cannot_be_understood_deletes_nothing(client: httpx.AsyncClient, query: str) -> None:
    await add(client)
    answer = await client.delete("/v1/memories/" + query)
    assert answer.status_code == 400
    assert answer.json()["error"] == answer.json()["detail"]
    assert await texts(client) == ["A"]


async def test_delete_all_of_nothing_is_a_normal_outcome(client: httpx.AsyncClient) -> None:
    assert (await delete_all(client, user_id="never-used")).status_code == 200


async def test_delete_all_wins_over_adds_accepted_before_it(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    accepted = await client.post("/v3/memories/add/", json={"messages": "I moved to Lisbon.", "user_id": "u1"})
    other = await client.post("/v3/memories/add/", json={"messages": "I moved to Rome.", "user_id": "u2"})
    await delete_all(client, user_id="u1")
    await queue.drain(runtime)
    event = (await client.get(f"/v1/event/{accepted.json()['event_id']}/")).json()
    assert (event["status"], event["results"]) == ("SUCCEEDED", [])
    assert event["metadata"]["cancelled_by"] == "delete_all"
    assert await texts(client) == []
    assert len((await client.get(f"/v1/event/{other.json()['event_id']}/")).json()["results"]) == 1


async def test_delete_all_by_metadata_does_not_cancel_adds_that_it_knows_nothing_of(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    await client.post("/v3/memories/add/", json={"messages": "I moved to Lisbon.", "user_id": "u1"})
    await delete_all(client, user_id="u1", metadata='{"team": "red"}')
    await queue.drain(runtime)
    assert len(await texts(client)) == 1


async def test_every_set_of_owners_is_a_scope_of_its_own(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    names = ("user_id", "agent_id", "app_id", "run_id")
    sets = [{name: "x" for bit, name in enumerate(names) if mask >> bit & 1} for mask in range(1, 16)]
    for owners in sets:
        await add(client, "same text", **owners)
    for owners in sets:
        assert await texts(client, {"AND": [{name: value} for name, value in owners.items()]}) == ["same text"]
    assert len({(await scopes.ensure(conn, project.id, Owners(**owners))).id for owners in sets}) == 15
