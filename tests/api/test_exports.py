"""Exports, summaries and the routes that are not offered."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api import create_app
from app.domain import export
from app.store import exports
from tests import factories, fakes

FACTS = [
    "Alice's favorite food is sushi.",
    "Alice's hobbies are hiking, chess and cooking.",
    "Alice is 34 years old.",
    "Alice was born on 7 May 1992.",
    "Alice's email address is alice@example.com.",
]
SCHEMA: dict[str, Any] = {
    "title": "Person",
    "type": "object",
    "properties": {
        "favoriteFood": {"type": "string", "description": "What the person likes to eat best"},
        "hobbies": {"type": "array", "items": {"type": "string"}},
        "age": {"type": "integer"},
        "birth_date": {"type": "string", "format": "date", "description": "Date of birth"},
        "AIContact": {"type": "string", "format": "email", "description": "e-mail address"},
        "shoeSize": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    },
    "required": ["favoriteFood", "hobbies"],
}
FILTERS = {"user_id": "alice"}


@pytest.fixture
async def facts(conn: Any, project: Any) -> None:
    scope = await factories.make_scope(conn, project)
    for text in FACTS:
        await factories.make_memory(conn, scope, text)


async def created(client: httpx.AsyncClient, **body: Any) -> str:
    answer = await client.post("/v1/exports/", json={"schema": SCHEMA, "filters": FILTERS} | body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def fetched(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/v1/exports/get/", json=body)


def with_model(runtime: Any, *answers: Any) -> Any:
    return replace(runtime, llm=fakes.FakeLLM(answers))


async def test_export_is_404_until_the_worker_has_made_it(client, runtime, queue, facts) -> None:
    export_id = await created(client)
    early = await fetched(client, memory_export_id=export_id)
    assert early.status_code == 404
    assert early.json()["error"] == "No memory export request found"
    event = (await client.get(f"/v1/event/{export_id}/")).json()
    assert (event["event_type"], event["status"]) == ("EXPORT", "PENDING")
    assert [str(rung) for rung in queue.rung] == [export_id]
    await queue.drain(runtime)
    assert (await fetched(client, memory_export_id=export_id)).status_code == 200


async def test_rules_fill_plain_fields_and_keep_keys_and_their_order(client, runtime, queue, facts) -> None:
    export_id = await created(client)
    await queue.drain(runtime)
    found = await fetched(client, memory_export_id=export_id)
    assert found.json() == {
        "favoriteFood": "sushi",
        "hobbies": ["hiking", "chess", "cooking"],
        "age": 34,
        "birth_date": "1992-05-07",
        "AIContact": "alice@example.com",
        "shoeSize": None,
    }
    assert list(found.json()) == list(SCHEMA["properties"])
    event = (await client.get(f"/v1/event/{export_id}/")).json()
    assert event["metadata"] == {"filled_by": "rules", "memories": len(FACTS)}


async def test_schema_may_be_its_text_and_filters_may_be_flat(client, runtime, queue, facts) -> None:
    answer = await client.post("/v1/exports", json={"schema": json.dumps(SCHEMA), "user_id": "alice"})
    assert answer.status_code == 201
    await queue.drain(runtime)
    found = await fetched(client, memory_export_id=answer.json()["id"])
    assert found.json()["favoriteFood"] == "sushi"


async def test_what_is_demanded_and_unknown_is_empty_and_named(client, runtime, queue, facts) -> None:
    wanted = {
        "type": "object",
        "properties": {"bloodType": {"type": "string"}, "cars": {"type": "array"}, "tax": {"type": "number"}},
        "required": ["bloodType", "cars", "tax"],
    }
    export_id = await created(client, schema=wanted)
    await queue.drain(runtime)
    assert (await fetched(client, memory_export_id=export_id)).json() == {"bloodType": "", "cars": [], "tax": 0}
    event = (await client.get(f"/v1/event/{export_id}/")).json()
    assert event["metadata"]["unknown"] == ["bloodType", "cars", "tax"]


async def test_export_that_cannot_fit_fails_with_the_reason(client, runtime, queue, facts) -> None:
    wanted = {
        "type": "object",
        "properties": {"bloodType": {"enum": ["A", "B"]}},
        "required": ["bloodType"],
    }
    export_id = await created(client, schema=wanted)
    await queue.drain(runtime)
    event = (await client.get(f"/v1/event/{export_id}/")).json()
    assert (event["status"], event["error_code"]) == ("FAILED", "shape_unfilled")
    assert "bloodType" in event["error"]
    failed = await fetched(client, memory_export_id=export_id)
    assert failed.status_code == 404
    assert "bloodType" in failed.json()["error"]


async def test_model_fills_the_schema_by_the_instructions(client, runtime, queue, facts) -> None:
    export_id = await created(client, export_instructions="Write food in capitals.")
    rt = with_model(runtime, {"favoriteFood": "SUSHI", "hobbies": []})
    await queue.drain(rt)
    assert (await fetched(client, memory_export_id=export_id)).json() == {"favoriteFood": "SUSHI", "hobbies": []}
    _, system, user = rt.llm.calls[0]
    assert "Write food in capitals." in system
    assert "favorite food is sushi" in user


async def test_model_is_asked_once_more_for_what_does_not_fit(client, runtime, queue, facts) -> None:
    export_id = await created(client)
    rt = with_model(runtime, {"favoriteFood": 3, "hobbies": []}, {"favoriteFood": "sushi", "hobbies": []})
    await queue.drain(rt)
    assert (await fetched(client, memory_export_id=export_id)).json()["favoriteFood"] == "sushi"
    assert "favoriteFood: 3 is not of type 'string'" in rt.llm.calls[1][2]


async def test_model_that_never_fits_fails_the_export(client, runtime, queue, facts) -> None:
    export_id = await created(client)
    await queue.drain(with_model(runtime, {"hobbies": []}, {"hobbies": []}))
    event = (await client.get(f"/v1/event/{export_id}/")).json()
    assert event["status"] == "FAILED"
    assert "favoriteFood" in event["error"]


async def test_newest_export_with_the_same_filters_is_found(client, runtime, queue, facts) -> None:
    await created(client, filters={"user_id": "bob"})
    await created(client)
    await queue.drain(runtime)
    for filters in (
        FILTERS,
        {"AND": [FILTERS]},
        {"AND": [FILTERS, {"created_at": {"gte": "2020-01-01"}}]},
    ):
        assert (await fetched(client, filters=filters)).json()["favoriteFood"] == "sushi"
    later = {"AND": [FILTERS, {"created_at": {"gte": "2999-01-01"}}]}
    for filters in ({"user_id": "carol"}, {"OR": [FILTERS, {"agent_id": "x"}]}, later):
        assert (await fetched(client, filters=filters)).status_code == 404
    await created(client)
    assert (await fetched(client, filters=FILTERS)).status_code == 404, "the newest is not ready"


@pytest.mark.parametrize("schema", [None, {}, "no schema", [], '["a"]', {"type": "array"}, {"type": "nonsense"}, 3])
async def test_what_is_no_schema_of_an_object_is_refused(client, schema) -> None:
    answer = await client.post("/v1/exports/", json={"schema": schema, "filters": FILTERS})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Schema is required and must be a valid object")


@pytest.mark.parametrize(
    "filters",
    [
        None,
        {},
        {"categories": {"in": ["food"]}},
        {"user_id": {"ne": "bob"}},
        {"metadata": {"note": "user_id"}},
        {"NOT": [{"userId": "bob"}]},
    ],
)
async def test_export_without_an_owner_is_refused_in_known_words(client, filters) -> None:
    answer = await client.post("/v1/exports/", json={"schema": SCHEMA, "filters": filters})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("One of the filters: app_id, user_id, agent_id, run_id is required!")


async def test_fetch_of_nothing_is_refused_in_known_words(client) -> None:
    answer = await fetched(client)
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        "One of the filters: app_id, user_id, agent_id, run_id, memory_export_id is required!"
    )
    assert (await fetched(client, memory_export_id="nonsense")).status_code == 400
    assert (await fetched(client, memory_export_id=str(uuid4()))).status_code == 404


async def test_another_project_s_ids_are_refused(client) -> None:
    answer = await client.post("/v1/exports/", json={"schema": SCHEMA, "filters": FILTERS, "project_id": "proj_x"})
    assert answer.status_code == 403


async def test_export_sees_what_a_list_sees(client, conn, project, runtime, queue) -> None:
    own = await factories.make_scope(conn, project)
    session = await factories.make_scope(conn, project, user_id="alice", run_id="s1")
    await factories.make_memory(conn, own, "Alice has a dog.")
    await factories.make_memory(conn, own, "Alice has a snake.", expiration_date=date(2001, 1, 1))
    await factories.make_memory(conn, session, "Alice has a fish.")
    everything = {"type": "object", "properties": {"memories": {"type": "array", "items": {"type": "string"}}}}
    export_id = await created(client, schema=everything)
    await queue.drain(runtime)
    assert (await fetched(client, memory_export_id=export_id)).json() == {"memories": ["Alice has a dog."]}


async def test_export_is_gone_after_a_week_and_with_its_memories(client, conn, project, runtime, queue, facts) -> None:
    old, erased = await created(client), await created(client)
    await queue.drain(runtime)
    await conn.execute("UPDATE exports SET created_at = now() - interval '8 days' WHERE id = $1", old)
    assert (await fetched(client, memory_export_id=old)).status_code == 404
    await exports.delete_old(conn, kept_days=export.KEPT_DAYS)
    assert await conn.fetchval("SELECT count(*) FROM exports") == 1
    assert (await client.delete("/v2/entities/user/alice/")).status_code == 200
    assert (await fetched(client, memory_export_id=erased)).status_code == 404


async def test_same_idempotency_key_is_the_same_export(client) -> None:
    body = {"schema": SCHEMA, "filters": FILTERS}
    first = await client.post("/v1/exports/", json=body, headers={"Idempotency-Key": "k"})
    again = await client.post("/v1/exports/", json=body, headers={"Idempotency-Key": "k"})
    assert first.json() == again.json()
    other = await client.post("/v1/exports/", json=body | {"user_id": "x"}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 422


# Summary


async def test_summary_without_a_model_tells_the_memories(client, facts) -> None:
    for filters in (FILTERS, {"AND": [FILTERS]}):
        (found,) = (await client.post("/v1/summary/", json={"filters": filters})).json()
        assert "sushi" in found["summary"]
        assert found["memories"] == len(FACTS)
    assert (await client.post("/v1/summary/", json={"user_id": "alice"})).json()


async def test_summary_of_nothing_is_an_empty_array(client) -> None:
    assert (await client.post("/v1/summary/", json={"filters": {"user_id": "nobody"}})).json() == []
    refused = await client.post("/v1/summary/", json={"filters": None})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("One of the filters")


async def test_model_writes_the_summary(runtime, project, facts) -> None:
    rt = with_model(runtime, {"summary": "Alice likes sushi."})
    secret = await factories.make_key(rt, project)
    transport = httpx.ASGITransport(app=create_app(rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://memoryd.test") as http:
        answer = await http.post(
            "/v1/summary/", json={"filters": FILTERS}, headers={"Authorization": f"Token {secret}"}
        )
    assert answer.json() == [{"summary": "Alice likes sushi.", "memories": len(FACTS)}]


# Not offered


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "config"), ("PATCH", "config"), ("POST", "preview"), ("GET", "activity"), ("GET", "runs"),
     ("GET", "runs/r1/memories"), ("GET", "memory/m1/sources"), ("GET", "stats")],
)  # fmt: skip
async def test_dream_routes_say_that_they_are_not_offered(client, method, path) -> None:
    ping = (await client.get("/v1/ping/")).json()
    prefix = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/dream"
    answer = await client.request(method, f"{prefix}/{path}/")
    assert answer.status_code == 501
    assert answer.json()["error"].startswith("not_yet_available")
