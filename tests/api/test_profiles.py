"""Profiles: settings, jobs, and the profiles themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from app import errors
from tests import factories, fakes

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "favoriteFood": {"type": "string", "description": "What the person likes to eat best"},
        "playedInstrument": {"type": "string", "description": "The instrument that the person plays."},
    },
}
SETTINGS = "/v2/profiles/settings/"
JOBS = "/v2/profiles/jobs/"


@pytest.fixture
async def alice(conn: Any, project: Any) -> None:
    await factories.make_memory(conn, await factories.make_scope(conn, project), "Alice's favorite food is sushi.")


@pytest.fixture
async def on(client: Any) -> None:
    entities = {"user": {"schema": SCHEMA}, "agent": {"schema": SCHEMA}}
    assert (await client.post(SETTINGS, json={"enabled": True, "entities": entities})).status_code == 200


async def triggered(client: Any, name: str = "alice", **headers: str) -> dict[str, Any]:
    body = {"operation": "trigger", "entity_type": "user", "entity_id": name}
    answer = await client.post(JOBS, json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def profile(client: Any, name: str = "alice", kind: str = "user") -> dict[str, Any]:
    answer = await client.get(f"/v2/entities/{kind}/{name}/profile/")
    assert answer.status_code == 200, answer.text
    return answer.json()


# Settings


async def test_settings_begin_empty_and_off(client) -> None:
    assert (await client.get(SETTINGS)).json() == {
        "enabled": False,
        "entities": {kind: {"schema": None, "custom_instructions": None} for kind in ("user", "agent")},
        "capabilities": {"full_rebuild": False},
    }


async def test_only_what_is_given_is_written_and_null_clears(client) -> None:
    both = {"user": {"schema": SCHEMA, "custom_instructions": "Be brief."}}
    await client.post(SETTINGS, json={"enabled": True, "entities": both})
    changed = await client.post(SETTINGS, json={"entities": {"user": {"custom_instructions": None}}})
    assert changed.json()["enabled"] is True
    assert changed.json()["entities"]["user"] == {"schema": SCHEMA, "custom_instructions": None}
    assert list(changed.json()["entities"]["user"]["schema"]["properties"]) == list(SCHEMA["properties"])
    assert (await client.get(SETTINGS)).json() == changed.json()
    cleared = await client.post(SETTINGS, json={"entities": {"user": None}})
    assert cleared.json()["entities"]["user"]["schema"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"schema": SCHEMA},
        {"custom_instructions": "x"},
        {"entities": {"run": {"schema": SCHEMA}}},
        {"entities": {"user": {"shape": SCHEMA}}},
        {"entities": {"user": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}},
        {"entities": {"user": {"schema": "text"}}},
        {"entities": {"user": {"schema": {"type": "array"}}}},
        {"entities": {"user": {"custom_instructions": 3}}},
        {"entities": []},
        {"enabled": "perhaps"},
    ],
)
async def test_what_is_no_setting_is_refused(client, body) -> None:
    answer = await client.post(SETTINGS, json=body)
    assert answer.status_code == 400


async def test_flat_settings_are_called_unsupported(client) -> None:
    answer = await client.post(SETTINGS, json={"schema": SCHEMA})
    assert "Unsupported settings" in answer.json()["detail"]


async def test_schema_beyond_its_budget_is_refused(client) -> None:
    properties = {f"field_{n}": {"type": "string", "description": "word " * 40} for n in range(245)}
    body = {"entities": {"user": {"schema": {"type": "object", "properties": properties}}}}
    answer = await client.post(SETTINGS, json=body)
    assert answer.status_code == 400
    assert "10000" in answer.json()["detail"]


# Jobs and profiles


async def test_job_makes_the_profile_of_a_user(client, runtime, queue, alice, on) -> None:
    assert (await profile(client))["status"] == "insufficient_data"
    job = await triggered(client)
    assert (job["status"], job["replayed"], job["entity_count_reserved"]) == ("QUEUED", False, 1)
    waiting = await profile(client)
    assert (waiting["status"], waiting["profile"]) == ("pending", {})
    await queue.drain(runtime)
    done = (await client.get(job["status_url"])).json()["job"]
    assert (done["status"], done["total"], done["completed"], done["succeeded"]) == ("SUCCEEDED", 1, 1, 1)
    made = await profile(client)
    assert (made["status"], made["profile"], made["generation_count"]) == ("succeeded", {"favoriteFood": "sushi"}, 1)
    assert made["updated_at"]
    await triggered(client)
    assert (await profile(client))["status"] == "succeeded", "the former one is shown until there is a new one"
    await queue.drain(runtime)
    assert (await profile(client))["generation_count"] == 2


async def test_same_key_is_the_same_job(client, alice, on) -> None:
    first = await triggered(client, **{"Idempotency-Key": "k"})
    again = await triggered(client, **{"Idempotency-Key": "k"})
    assert again == first | {"replayed": True}
    body = {"operation": "sample", "entity_type": "user"}
    assert (await client.post(JOBS, json=body, headers={"Idempotency-Key": "k"})).status_code == 422


async def test_profiles_that_are_off_are_not_made(client, alice) -> None:
    assert (await profile(client))["status"] == "not_enabled"
    body = {"operation": "trigger", "entity_type": "user", "entity_id": "alice"}
    answer = await client.post(JOBS, json=body)
    assert answer.status_code == 400
    await client.post(SETTINGS, json={"enabled": True})
    assert (await client.post(JOBS, json=body)).status_code == 400, "no schema"


async def test_user_that_nothing_names_has_no_profile(client, on) -> None:
    assert (await client.get("/v2/entities/user/nobody/profile/")).status_code == 404
    body = {"operation": "trigger", "entity_type": "user", "entity_id": "nobody"}
    assert (await client.post(JOBS, json=body)).status_code == 404
    assert (await client.get("/v2/entities/robot/x/profile/")).status_code == 400
    assert (await client.get("/v2/entities/run/x/profile/")).status_code == 400


async def test_too_little_is_insufficient_data(client, conn, project, runtime, queue, on) -> None:
    await factories.make_memory(conn, await factories.make_scope(conn, project), "It rained in Lisbon.")
    job = await triggered(client)
    await queue.drain(runtime)
    found = await profile(client)
    assert (found["status"], found["profile"]) == ("insufficient_data", {})
    done = (await client.get(job["status_url"])).json()["job"]
    assert (done["completed"], done["skipped"]) == (1, 1)


async def test_sample_picks_those_without_a_profile_first(client, conn, project, runtime, queue, on) -> None:
    names = [f"user {n}" for n in range(4)]
    for name in names:
        scope = await factories.make_scope(conn, project, user_id=name)
        await factories.make_memory(conn, scope, f"The favorite food of {name} is sushi.")
    body = {"operation": "sample", "entity_type": "user", "limit": 2}
    picked: list[str] = []
    for _ in range(2):
        job = (await client.post(JOBS, json=body)).json()
        assert job["sampled"] == 2
        picked += job["entity_ids"]
        await queue.drain(runtime)
    assert sorted(picked) == names
    for limit in (0, 11, "many"):
        assert (await client.post(JOBS, json=body | {"limit": limit})).status_code == 400


async def test_model_fills_the_profile_of_an_agent(client, conn, project, runtime, queue, on) -> None:
    scope = await factories.make_scope(conn, project, agent_id="bot/1")
    await factories.make_memory(conn, scope, "The assistant plays chess.")
    job = await client.post(JOBS, json={"operation": "trigger", "entity_type": "agent", "entity_id": "bot/1"})
    assert job.status_code == 202
    await queue.drain(replace(runtime, llm=fakes.FakeLLM([{"playedInstrument": "none"}])))
    assert (await profile(client, "bot%2F1", "agent"))["profile"] == {"playedInstrument": "none"}


async def test_model_that_tells_nothing_is_insufficient_data(client, runtime, queue, alice, on) -> None:
    await triggered(client)
    await queue.drain(replace(runtime, llm=fakes.FakeLLM([{"favoriteFood": ""}])))
    assert (await profile(client))["status"] == "insufficient_data"


async def test_failed_job_is_a_failed_profile(client, runtime, queue, alice, on, settings) -> None:
    await triggered(client)
    rt = replace(runtime, settings=settings.model_copy(update={"retry_delays_s": ()}))
    await queue.drain(replace(rt, llm=fakes.FakeLLM([errors.ModelUnavailable("away")])))
    found = await profile(client)
    assert (found["status"], found["error"]) == ("failed", "away")


async def test_profile_goes_with_its_user(client, conn, runtime, queue, alice, on) -> None:
    await triggered(client)
    await queue.drain(runtime)
    assert (await client.delete("/v2/entities/user/alice/")).status_code == 200
    assert await conn.fetchval("SELECT count(*) FROM profiles") == 0


async def test_rebuild_is_not_offered_and_other_operations_are_refused(client, on) -> None:
    rebuild = await client.post(JOBS, json={"operation": "rebuild", "entity_type": "user"})
    assert rebuild.status_code == 501
    assert "not_yet_available" in json.dumps(rebuild.json())
    for body in ({}, {"operation": "guess"}, {"operation": "trigger"}, {"operation": "sample", "entity_type": "app"}):
        assert (await client.post(JOBS, json=body)).status_code == 400


async def test_job_that_nobody_asked_for_is_unknown(client, queue, runtime) -> None:
    assert (await client.get(f"{JOBS}{uuid4()}/")).status_code == 404
    assert (await client.get(f"{JOBS}nonsense/")).status_code == 404
    added = await client.post("/v3/memories/add/", json={"messages": "I like tea.", "user_id": "u", "infer": False})
    assert (await client.get(f"{JOBS}{added.json()['event_id']}/")).status_code == 404
