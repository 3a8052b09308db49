"""What an add asks for and what becomes of its memories, as a client sees it; a real HTTP model answers on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.domain import decay
from app.model import Project, ProjectSettings
from app.providers.llm import ChatModel
from app.runtime import Runtime
from app.store import orgs
from app.store.db import Conn
from tests import factories, fakes
from tests.model_stub import ModelStub, Reply, says

SEARCH, ADD = "/v3/memories/search/", "/v3/memories/add/"


class Model:
    """A model that finds the facts it was told to, and sorts everything into the first category it is offered."""

    def __init__(self) -> None:
        self.facts: list[dict[str, Any]] = []
        self.systems: list[str] = []  # of the extractions
        self.offered: list[list[str]] = []  # categories

    def __call__(self, asked: dict[str, Any]) -> Reply:
        schema = asked["response_format"]["json_schema"]
        if schema["name"] == "categories":
            items = schema["schema"]["properties"]["memories"]["items"]["properties"]
            self.offered.append(items["categories"]["items"]["enum"])
            lines = [line for line in asked["messages"][1]["content"].splitlines() if line.startswith("{")]
            ids = [json.loads(line)["id"] for line in lines]
            return says({"memories": [{"id": number, "categories": self.offered[-1][:1]} for number in ids]})
        self.systems.append(asked["messages"][0]["content"])
        return says({"facts": self.facts})


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def stub(model: Model) -> Iterator[ModelStub]:
    with ModelStub(default=model) as stub:
        yield stub


@pytest.fixture
async def runtime(runtime: Runtime, stub: ModelStub) -> AsyncIterator[Runtime]:
    llm = ChatModel(stub.url, "stub")
    yield replace(runtime, llm=llm)
    await llm.close()


@pytest.fixture
def plain(runtime: Runtime) -> Runtime:
    """Return the same runtime without a model."""
    return replace(runtime, llm=None)


async def add(
    client: httpx.AsyncClient, rt: Runtime, queue: fakes.RecordingQueue, *texts: str, drain: bool = True, **body: Any
) -> dict[str, Any]:
    """Add what user and assistant say in turn; return the event once everything that follows is done, too."""
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    answer = await client.post(ADD, json={"user_id": "u1", "messages": messages, **body})
    assert answer.status_code == 200, answer.text
    if drain:
        await queue.drain(rt)
    return (await client.get(f"/v1/event/{answer.json()['event_id']}/")).json()


async def listed(client: httpx.AsyncClient, **body: Any) -> dict[str, dict[str, Any]]:
    answer = await client.post("/v3/memories/", json={"filters": {"OR": [{"user_id": "u1"}]}, **body})
    assert answer.status_code == 200, answer.text
    return {memory["memory"]: memory for memory in answer.json()["results"]}


async def found(client: httpx.AsyncClient, query: str, **body: Any) -> list[str]:
    answer = await client.post(SEARCH, json={"query": query, "filters": {"user_id": "u1"}, "threshold": 0, **body})
    assert answer.status_code == 200, answer.text
    return [hit["memory"] for hit in answer.json()["results"]]


async def change(conn: Conn, project: Project, **settings: Any) -> None:
    """Change the settings of the client's project."""
    await orgs.save_settings(conn, project.id, replace(project.settings, **settings))


# Instructions


@pytest.mark.parametrize(
    ("owners", "both"), [({}, False), ({"agent_id": "a1"}, True), ({"user_id": None, "agent_id": "a1"}, False)]
)
async def test_instructions_of_the_call_go_before_those_of_the_project(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, model: Model, conn: Conn, project: Project,
    owners: dict[str, Any], both: bool,
) -> None:  # fmt: skip
    await change(conn, project, custom_instructions="PROJECT USER", agent_custom_instructions="PROJECT AGENT")
    agent_only = owners.get("user_id", "u1") is None
    await add(client, runtime, queue, "hi", "ho", **owners)
    await add(
        client,
        runtime,
        queue,
        "hi",
        "ho",
        **owners,
        custom_instructions="CALL USER",
        agent_custom_instructions="CALL AGENT",
    )
    first, second = model.systems
    assert ("PROJECT USER" in first, "PROJECT AGENT" in first) == (not agent_only, both or agent_only)
    assert ("CALL USER" in second, "CALL AGENT" in second) == (not agent_only, both or agent_only)
    assert "PROJECT" not in second


async def test_topics_to_keep_and_to_leave_out_reach_the_model(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, model: Model
) -> None:
    await add(client, runtime, queue, "hi", includes="sports facts", excludes="card numbers")
    (system,) = model.systems
    assert "only what belongs to these topics:\nsports facts" in system
    assert "nothing that belongs to these topics, whatever else applies:\ncard numbers" in system


# Whose facts, and for how long


async def test_facts_go_to_their_speaker(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, model: Model
) -> None:
    model.facts = [{"text": "Likes tea", "messages": [1]}, {"text": "Promised a refund", "messages": [2]}]
    event = await add(client, runtime, queue, "I like tea", "I will refund you", agent_id="a1", run_id="r1")
    owners = [{name: result.get(name) for name in ("user_id", "agent_id", "run_id")} for result in event["results"]]
    assert owners == [
        {"user_id": "u1", "agent_id": None, "run_id": "r1"}, {"user_id": None, "agent_id": "a1", "run_id": "r1"},
    ]  # fmt: skip


async def test_expiration_and_immutability_are_those_of_the_add(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, model: Model, conn: Conn, project: Project
) -> None:
    today = datetime.now(UTC).date()
    model.facts = [{"text": "Gone"}, {"text": "Gone too"}]
    event = await add(
        client, runtime, queue, "gone and gone too", expiration_date=str(today - timedelta(days=1)), immutable=True
    )
    assert await listed(client) == {}
    shown = (await listed(client, show_expired=True))["Gone"]
    assert (shown["immutable"], shown["expiration_date"]) == (True, str(today - timedelta(days=1)))
    answer = await client.put(f"/v1/memories/{event['results'][0]['id']}/", json={"text": "New"})
    assert answer.status_code == 400
    await change(conn, project, expiration_date=today - timedelta(days=2))
    model.facts = [{"text": "Of the project"}]
    await add(client, runtime, queue, "it is of the project")
    assert "Of the project" not in await listed(client)


async def test_metadata_alone_change_nothing_else(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, model: Model
) -> None:
    model.facts = [{"text": "Likes tea"}]
    event = await add(client, runtime, queue, "I like tea", metadata={"a": 1, "b": 2})
    path = f"/v1/memories/{event['results'][0]['id']}/"
    before = (await client.get(path)).json()
    assert (await client.put(path, json={"metadata": {"b": 3}})).status_code == 200
    after = (await client.get(path)).json()
    assert after["metadata"] == {"b": 3}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"metadata", "updated_at"}


# Categories


async def test_categories_come_after_the_add_and_filter(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, model: Model, conn: Conn, project: Project
) -> None:
    model.facts = [{"text": "Likes tea"}]
    names = ["workLifeBalance", "work_life", "AIResearch"]
    event = await add(
        client, runtime, queue, "I like tea", drain=False, custom_categories=[{name: "d"} for name in names]
    )
    assert event["status"] == "PENDING"
    await queue.drain(runtime)
    assert model.offered == [names]
    assert (await listed(client))["Likes tea"]["categories"] == ["workLifeBalance"]
    assert list(await listed(client, categories=["workLifeBalance"])) == ["Likes tea"]
    assert await listed(client, categories=["worklifebalance"]) == {}
    await change(conn, project, custom_categories=[{"other": "d"}])
    await queue.drain(runtime)
    assert (await listed(client))["Likes tea"]["categories"] == ["workLifeBalance"]
    memory_id = event_id(await listed(client), "Likes tea")
    answer = await client.put(f"/v1/memories/{memory_id}/", json={"text": "Likes rice"})
    assert answer.json()["categories"] is None
    await queue.drain(runtime)
    assert (await listed(client))["Likes rice"]["categories"] == ["other"]


def event_id(memories: dict[str, dict[str, Any]], text: str) -> UUID:
    return UUID(memories[text]["id"])


async def test_direct_import_is_sorted_too_and_no_such_event_is_listed(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue
) -> None:
    await add(client, plain, queue, "I had sushi for dinner", infer=False, drain=False)
    assert (await listed(client))["I had sushi for dinner"]["categories"] is None
    events = (await client.get("/v1/events/")).json()
    assert [event["event_type"] for event in events["results"]] == ["ADD"]
    await queue.drain(plain)
    assert (await listed(client))["I had sushi for dinner"]["categories"] == ["food"]


# Replacement


async def test_what_was_replaced_is_read_by_default_and_not_with_latest_only(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue
) -> None:
    await add(client, plain, queue, "I live in Berlin.")
    await add(client, plain, queue, "I live in Munich.")
    memories = await listed(client)
    old, new = memories["User lives in Berlin."], memories["User lives in Munich."]
    assert (old["lifecycle_state"], old["replaced_by"]) == ("superseded", new["id"])
    assert (new["lifecycle_state"], new["replaced_by"]) == ("active", None)
    assert list(await listed(client, latest_only=True)) == ["User lives in Munich."]
    assert await found(client, "where does the user live") == ["User lives in Munich.", "User lives in Berlin."]
    assert await found(client, "where does the user live", latest_only=True) == ["User lives in Munich."]
    history = (await client.get(f"/v1/memories/{old['id']}/history/")).json()
    assert [entry["event"] for entry in history] == ["ADD"]
    answer = await client.delete(f"/v1/memories/{new['id']}/", params={"delete_linked": "true"})
    assert answer.json()["cascade_count"] == 1
    assert await listed(client) == {}


async def test_of_two_facts_that_contradict_both_stay_and_the_newer_is_first(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue
) -> None:
    await add(client, plain, queue, "office is on floor 2", infer=False, timestamp=1_609_459_200)
    before = (await listed(client))["office is on floor 2"]
    await add(client, plain, queue, "office is on floor 5", infer=False)
    assert await found(client, "which floor is the office on") == ["office is on floor 5", "office is on floor 2"]
    assert {**(await listed(client))["office is on floor 2"], "categories": None} == {**before, "categories": None}


# Time


async def test_the_time_of_an_event_is_kept_unless_the_add_says_no(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue, conn: Conn
) -> None:
    at = {"timestamp": 1_750_000_000}
    await add(client, plain, queue, "I went to Rome in March 2025.", **at)
    await add(client, plain, queue, "I went to Oslo in March 2025.", temporal_reasoning=False, **at)
    rows = await conn.fetch("SELECT text, happened_from FROM memories")
    times = {row["text"]: row["happened_from"] for row in rows}
    assert {("Rome" in text, at is not None) for text, at in times.items()} == {(True, True), (False, False)}


async def test_words_of_time_count_from_the_reference_date(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue
) -> None:
    for city, month in (("Rome", "March"), ("Oslo", "May")):
        await add(client, plain, queue, f"I went to {city} in {month} 2025.", timestamp=1_760_000_000)
    question = "where did the user go last month"
    april, june = [await scores(client, question, reference_date=f"2025-0{number}-10") for number in (4, 6)]
    assert set(april) == set(june) == {"User went to Rome in March 2025.", "User went to Oslo in May 2025."}
    for text, fits, misses in (
        ("User went to Rome in March 2025.", april, june),
        ("User went to Oslo in May 2025.", june, april),
    ):
        assert fits[text] > misses[text] + 0.1


# Decay


async def test_memories_that_are_found_rise_while_decay_is_on(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue, conn: Conn, project: Project
) -> None:
    await add(client, plain, queue, "likes green tea", "", "drinks green tea at work", infer=False)
    old = "UPDATE memories SET updated_at = now() - interval '200 days'"
    await conn.execute(old)
    plainly = await scores(client)
    await decay.settled()
    assert await accesses(conn) == {}
    await set_decay(client, project, on=True)
    faded = await scores(client)
    assert all(faded[text] == pytest.approx(0.32 * plainly[text], rel=0.05) for text in plainly)
    await decay.settled()
    assert await accesses(conn) == dict.fromkeys(plainly, 1)
    again = await scores(client)
    assert all(again[text] == pytest.approx(min(1, 1.5 * plainly[text]), rel=0.01) for text in plainly)
    for _ in range(25):
        await scores(client)
        await decay.settled()
    assert await accesses(conn) == dict.fromkeys(plainly, 20)
    await set_decay(client, project, on=False)
    assert await scores(client) == plainly
    assert await accesses(conn) == dict.fromkeys(plainly, 20)


async def scores(client: httpx.AsyncClient, query: str = "green tea", **body: Any) -> dict[str, float]:
    body = {"query": query, "filters": {"user_id": "u1"}, "threshold": 0, **body}
    return {hit["memory"]: hit["score"] for hit in (await client.post(SEARCH, json=body)).json()["results"]}


async def set_decay(client: httpx.AsyncClient, project: Project, *, on: bool) -> None:
    path = f"/api/v1/orgs/organizations/{project.organization_public_id}/projects/{project.public_id}/"
    answer = await client.patch(path, json={"decay": on})
    assert answer.status_code == 200, answer.text


async def accesses(conn: Conn) -> dict[str, int]:
    rows = await conn.fetch(
        "SELECT m.text, cardinality(a.accessed_at) AS n FROM memory_access a JOIN memories m ON m.id = a.memory_id"
    )
    return {row["text"]: row["n"] for row in rows}


async def test_the_older_search_does_not_decay(
    client: httpx.AsyncClient, plain: Runtime, queue: fakes.RecordingQueue, conn: Conn, project: Project
) -> None:
    await set_decay(client, project, on=True)
    await add(client, plain, queue, "likes green tea", infer=False)
    body = {"query": "green tea", "filters": {"user_id": "u1"}}
    assert (await client.post("/v2/memories/search/", json=body)).status_code == 200
    await decay.settled()
    assert await accesses(conn) == {}


async def test_an_access_that_cannot_be_noted_costs_no_search(runtime: Runtime, conn: Conn) -> None:
    gone = await factories.make_project(conn, settings=ProjectSettings(decay=True))
    scope = await factories.make_scope(conn, gone)
    memory = await factories.make_memory(conn, scope, "x")
    await conn.execute("DELETE FROM projects WHERE id = $1", gone.id)
    decay.note(runtime, gone.id, [memory.id])
    await asyncio.wait_for(decay.settled(), 10)
    assert await accesses(conn) == {}
