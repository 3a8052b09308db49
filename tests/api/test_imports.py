"""Memories out as they are, and in."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from app.domain import access, move
from app.model import And, State
from app.store import memories
from tests import factories

IMPORT = "/v1/import/"


@pytest.fixture
def plain(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """Return the client without the check that every answer is JSON: lines are not."""
    client.event_hooks = {"response": []}
    return client


async def exported(client: httpx.AsyncClient, **body: Any) -> bytes:
    answer = await client.post("/v1/exports/raw/", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return answer.content


async def taken(client: httpx.AsyncClient, *memories: Any) -> list[dict[str, Any]]:
    answer = await client.post(IMPORT, json={"memories": list(memories)})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


async def furnish(conn: Any, project: Any) -> None:
    """Store memories that differ in everything that can differ."""
    alice = await factories.make_scope(conn, project, user_id="alice")
    session = await factories.make_scope(conn, project, user_id="alice", run_id="日本/1", app_id="shop")
    bot = await factories.make_scope(conn, project, agent_id="bot")
    first = await factories.make_memory(
        conn, alice, "Alice moved to Lisbon.", metadata={"b": 1, "a": [1.5, None, {"ü": "🙂"}]}
    )
    changes: dict[str, Any] = {
        "categories": ("travel", "food"),
        "immutable": True,
        "expiration_date": date(2001, 2, 3),
        "role": "assistant",
        "actor": "Bob",
        "position": 3,
        "happened_from": datetime(2020, 1, 1, tzinfo=UTC),
        "happened_to": datetime(2020, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        "created_at": datetime(2019, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
        "updated_at": datetime(2021, 1, 1, tzinfo=UTC),
        "state": State.SUPERSEDED,
        "replaced_by": first.id,
        "synthesized": True,
    }
    await factories.make_memory(conn, session, "Line one\nline two\u2028three", **changes)
    await factories.make_memory(conn, bot, "I recommend the tram.", state=State.MERGED, metadata={})


async def test_out_in_and_out_again_gives_the_same_bytes(plain, conn, project, runtime) -> None:
    await furnish(conn, project)
    before = await exported(plain)
    lines = before.splitlines() if b"\r" in before else before.split(b"\n")[:-1]
    assert len(lines) == 3
    assert await memories.delete_where(conn, project.id, And(())) == 3
    results = await taken(plain, *map(json.loads, lines))
    assert [one["outcome"] for one in results] == ["imported"] * 3
    assert [one["digest"] for one in results] == [hashlib.sha256(line).hexdigest() for line in lines]
    assert await exported(plain) == before
    again = await taken(plain, *map(json.loads, lines))
    assert [one["outcome"] for one in again] == ["exists"] * 3
    assert await exported(plain) == before


async def test_lines_are_in_the_order_of_ids_and_counted(plain, conn, project, monkeypatch) -> None:
    monkeypatch.setattr(move, "PAGE", 2)
    await furnish(conn, project)
    answer = await plain.post("/v1/exports/raw/", json={})
    ids = [json.loads(line)["id"] for line in answer.content.split(b"\n")[:-1]]
    assert ids == sorted(ids)
    assert answer.headers["x-memory-count"] == str(len(ids)) == "3"


async def test_lines_are_filtered_and_nothing_is_hidden(plain, conn, project) -> None:
    await furnish(conn, project)
    assert len((await exported(plain, filters={"user_id": "alice"})).split(b"\n")) == 3
    assert len((await exported(plain, user_id="alice", run_id="日本/1")).split(b"\n")) == 2
    assert await exported(plain, filters={"user_id": "nobody"}) == b""
    for body in ({"filters": {"nonsense": 1}}, {"filters": {}}, {"filters": None}, {"user_id": None}):
        assert (await plain.post("/v1/exports/raw/", json=body)).status_code == 400


async def test_another_project_s_memories_are_not_there(plain, conn) -> None:
    await furnish(conn, await factories.make_project(conn))
    assert await exported(plain) == b""


async def test_memories_in_the_shape_of_a_list_are_taken(client) -> None:
    hosted = {
        "id": str(uuid4()),
        "memory": "Alice likes tea.",
        "user_id": "alice",
        "session_id": "s1",
        "hash": "of another kind",
        "metadata": None,
        "categories": ["food"],
        "structured_attributes": {"year": 2024},
        "expiration_date": "2099-01-01",
        "created_at": "2024-07-26T06:13:12.123456-07:00",
        "updated_at": "2024-08-01T00:00:00Z",
    }
    (result,) = await taken(client, hosted)
    assert (result["outcome"], result["id"]) == ("imported", hosted["id"])
    found = (await client.get(f"/v1/memories/{hosted['id']}/")).json()
    assert (found["run_id"], found["categories"], found["expiration_date"]) == ("s1", ["food"], "2099-01-01")
    assert (found["created_at"], found["updated_at"]) == ("2024-07-26T13:13:12.123456Z", "2024-08-01T00:00:00Z")
    (change,) = (await client.get(f"/v1/memories/{hosted['id']}/history/")).json()
    assert change["event"] == "ADD"
    hits = await client.post(
        "/v3/memories/search/", json={"query": "tea", "filters": {"user_id": "alice", "run_id": "s1"}}
    )
    assert [hit["id"] for hit in hits.json()["results"]] == [hosted["id"]]


async def test_memory_without_an_id_gets_the_same_one_every_time(client) -> None:
    memory = {"text": "Alice likes tea.", "user_id": "alice", "created_at": "2024-07-26"}
    (first,), (again,) = await taken(client, memory), await taken(client, memory)
    assert (first["outcome"], again["outcome"]) == ("imported", "exists")
    assert first["id"] == again["id"]
    UUID(first["id"])
    (other,) = await taken(client, memory | {"id": "17", "user_id": "bob"})
    assert other["outcome"] == "imported"


@pytest.mark.parametrize(
    "memory",
    [
        "text",
        {"user_id": "alice"},
        {"memory": "  ", "user_id": "alice"},
        {"memory": "no owner"},
        {"memory": "x", "user_id": "*"},
        {"memory": "x", "user_id": "a" * 256},
        {"memory": "x", "user_id": "a", "metadata": [1]},
        {"memory": "x", "user_id": "a", "created_at": "yesterday"},
        {"memory": "x", "user_id": "a", "expiration_date": "2024-02-30"},
        {"memory": "x", "user_id": "a", "lifecycle_state": "lost"},
        {"memory": "x", "user_id": "a", "categories": [1]},
        {"memory": "x", "user_id": "a", "position": -1},
        {"memory": "x", "user_id": "a", "replaced_by": "nobody"},
    ],
)
async def test_bad_memory_is_told_and_keeps_no_other_out(client, memory) -> None:
    good = {"memory": "Alice likes tea.", "user_id": "alice"}
    results = await taken(client, memory, good, memory)
    assert [one["outcome"] for one in results] == ["refused", "imported", "refused"]
    assert results[0]["reason"]
    assert [one["index"] for one in results] == [0, 1, 2]


async def test_text_that_its_owners_have_is_a_duplicate_and_an_id_of_another_a_conflict(client) -> None:
    memory = {"id": str(uuid4()), "memory": "Alice likes tea.", "user_id": "alice"}
    results = await taken(
        client,
        memory,
        memory | {"id": str(uuid4())},
        memory | {"memory": "Alice likes coffee."},
        memory | {"id": str(uuid4()), "user_id": "bob"},
    )
    assert [one["outcome"] for one in results] == ["imported", "duplicate", "conflict", "imported"]
    results = await taken(client, memory | {"memory": "Alice likes milk."}, memory | {"id": str(uuid4())})
    assert [one["outcome"] for one in results] == ["conflict", "duplicate"]


async def test_what_is_there_is_not_embedded_again(client, embedder) -> None:
    memory = {"id": str(uuid4()), "memory": "Alice likes tea.", "user_id": "alice"}
    await taken(client, memory)
    embedder.batches.clear()
    await taken(client, memory)
    assert embedder.batches == []


async def test_import_is_one_event_and_rings_nobody(client, queue) -> None:
    await taken(client, {"memory": "Alice likes tea.", "user_id": "alice"})
    (event,) = (await client.get("/v1/events/")).json()["results"]
    assert (event["event_type"], event["status"], event["metadata"]) == ("IMPORT", "SUCCEEDED", {"imported": 1})
    assert queue.rung == []


async def test_too_many_at_once_are_refused(client) -> None:
    answer = await client.post(IMPORT, json={"memories": [{}] * (move.BATCH + 1)})
    assert answer.status_code == 400
    assert (await client.post(IMPORT, json={})).status_code == 400
    assert (await client.post(IMPORT, json={"memories": []})).json() == {"results": [], "counts": {}}


async def test_plain_key_may_not_import(client, runtime, project) -> None:
    _, secret = await access.create_key(runtime, project, name="plain", role="member")
    answer = await client.post(IMPORT, json={"memories": []}, headers={"Authorization": f"Token {secret}"})
    assert answer.status_code == 403
