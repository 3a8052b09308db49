"""GET /v1/memories/{id}/sources/: what a memory was made from."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.domain import access, pins
from app.model import Project
from app.runtime import Runtime
from app.store.db import Conn
from tests import factories, fakes

ADD = "/v3/memories/add/"


async def add_raw(client: httpx.AsyncClient, text: str, **body: Any) -> str:
    said = [{"role": "user", "content": text, **body.pop("message", {})}]
    answer = await client.post(ADD, json={"messages": said, "user_id": "alice", "infer": False, **body})
    return answer.json()["results"][0]["id"]


async def sources(client: httpx.AsyncClient, memory_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/memories/{memory_id}/sources/")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_raw_memory_is_its_message_whole(client: httpx.AsyncClient) -> None:
    memory_id = await add_raw(client, "我住在里斯本 🍵", message={"name": "Mei"}, timestamp=1_700_000_000)
    found = await sources(client, memory_id)
    assert (found["origin"], found["note"], found["hidden"]) == ("message", None, 0)
    (source,) = found["sources"]
    assert (source["text"], source["start"], source["end"], source["length"]) == ("我住在里斯本 🍵", 0, 8, 8)
    assert (source["role"], source["name"], source["said_at"]) == ("user", "Mei", "2023-11-14T22:13:20Z")
    assert source["event_id"] == found["event_id"]


async def test_a_fact_points_at_its_sentence(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    said = "Hello there! I am allergic to peanuts. What is the weather like?"
    await client.post(ADD, json={"messages": [{"role": "user", "content": said}], "user_id": "alice"})
    await queue.drain(runtime)
    listed = (await client.post("/v3/memories/", json={"filters": {"user_id": "alice"}})).json()["results"]
    assert listed
    for memory in listed:
        found = await sources(client, memory["id"])
        assert found["origin"] == "extracted"
        assert found["sources"], found
        for source in found["sources"]:
            assert said[source["start"] : source["end"]] == source["text"]


async def test_an_imported_memory_says_that_it_has_none(client: httpx.AsyncClient) -> None:
    memory_id = str(uuid4())
    sent = {"memories": [{"memory": "She likes tea.", "id": memory_id, "user_id": "alice"}]}
    assert (await client.post("/v1/import/", json=sent)).json()["counts"] == {"imported": 1}
    found = await sources(client, memory_id)
    assert (found["origin"], found["sources"]) == ("imported", [])
    assert "imported" in found["note"]


async def test_a_changed_text_is_told_beside_the_sources_of_the_first(client: httpx.AsyncClient) -> None:
    memory_id = await add_raw(client, "I like green tea")
    await client.put(f"/v1/memories/{memory_id}/", json={"metadata": {"a": 1}})
    assert (await sources(client, memory_id))["edited_at"] is None
    await client.put(f"/v1/memories/{memory_id}/", json={"text": "She likes black tea"})
    await client.put(f"/v1/memories/{memory_id}/", json={"text": "She likes white tea"})
    found = await sources(client, memory_id)
    assert found["edited_at"] is not None
    assert (found["first_memory"], found["sources"][0]["text"]) == ("I like green tea", "I like green tea")
    assert "changed" in found["note"]


async def test_sources_are_erased_with_their_memory_and_its_owner(client: httpx.AsyncClient, conn: Conn) -> None:
    gone = await add_raw(client, "I like tea")
    kept = await add_raw(client, "I like coffee", user_id="bob")
    await client.delete(f"/v1/memories/{gone}/")
    assert (await client.get(f"/v1/memories/{gone}/sources/")).status_code == 404
    assert (await client.delete("/v2/entities/user/bob/")).status_code == 200
    assert (await client.get(f"/v1/memories/{kept}/sources/")).status_code == 404
    assert await conn.fetchval("SELECT count(*) FROM memory_sources") == 0
    assert await conn.fetchval("SELECT count(*) FROM messages WHERE content = 'I like coffee'") == 0


@pytest.mark.parametrize(("memory_id", "status"), [(str(uuid4()), 404), ("17", 400)])
async def test_what_is_no_memory_has_no_sources(client: httpx.AsyncClient, memory_id: str, status: int) -> None:
    answer = await client.get(f"/v1/memories/{memory_id}/sources/")
    assert (answer.status_code, set(answer.json())) == (status, {"error", "detail"})


async def test_a_pinned_key_sees_no_source_said_under_others(
    client: httpx.AsyncClient, runtime: Runtime, project: Project, conn: Conn
) -> None:
    memory_id = await add_raw(client, "I like tea")
    other = await factories.make_scope(conn, project, user_id="bob")
    grant = access.Grant(pins=pins.read({"user_id": ["alice"]}))
    _, secret = await access.create_key(runtime, project, name="pinned", grant=grant)
    client.headers["Authorization"] = f"Token {secret}"
    assert (await sources(client, memory_id))["hidden"] == 0
    await conn.execute("UPDATE messages SET scope_id = $1", other.id)
    found = await sources(client, memory_id)
    assert (found["hidden"], found["sources"]) == (1, [])
    assert "tea" not in str(found)
