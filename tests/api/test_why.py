"""POST /v3/memories/search/why/: why a search does not bring a memory, and what would bring it back."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from app.domain import access, decay, lexemes, link, pins
from app.model import Memory, NewMemory, Project, ProjectSettings, Scope, State
from app.runtime import Runtime
from app.store import lifecycle, memories
from app.store.db import Conn
from tests import factories, fakes

SEARCH, WHY = "/v3/memories/search/", "/v3/memories/search/why/"
ALICE = {"user_id": "alice"}
TEXTS = ("Anna sold the blue van", "Oskar bakes rye bread", "The cat sleeps all day", "Riga is cold", "tea at four")


async def store(
    conn: Conn, project: Project, *texts: str, owners: dict[str, str] = ALICE, **changes: Any
) -> list[Memory]:
    """Store texts as an add does, analysed in earnest."""
    scope = await factories.make_scope(conn, project, **owners)
    new = [draft(scope, text, **changes) for text in texts]
    return await memories.insert_many(conn, project.id, new, model=fakes.MODEL)


def draft(scope: Scope, text: str, **changes: Any) -> NewMemory:
    terms = lexemes.document(text, actor=None, said_at=None, previous=None)
    return factories.new_memory(scope, text, terms=terms, entities=link.entities(text), **changes)


async def why(client: httpx.AsyncClient, memory: Memory, query: str = "blue van", **body: Any) -> dict[str, Any]:
    sent = {"query": query, "filters": ALICE, "memory_id": str(memory.id), **body}
    answer = await client.post(WHY, json=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def found(client: httpx.AsyncClient, query: str = "blue van", **body: Any) -> list[str]:
    answer = await client.post(SEARCH, json={"query": query, "filters": ALICE, **body})
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["results"]]


async def test_a_memory_that_is_found_is_told_its_place(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    first, *_ = await store(conn, project, *TEXTS)
    told = await why(client, first)
    assert (told["found"], told["stage"], told["rank"], told["changes"], told["advice"]) == (True, "found", 1, {}, [])
    assert told["arms"]["keyword"]["rank"] == 1
    assert told["explain"]["terms"] == ["blue", "van"]


async def test_a_score_below_the_threshold_is_told_with_what_would_do(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    *_, last = await store(conn, project, *TEXTS)
    told = await why(client, last, threshold=0.9)
    assert (told["found"], told["stage"]) == (False, "threshold")
    assert 0 < told["score"] < 0.9
    assert told["changes"] == {"threshold": pytest.approx(told["score"], abs=1e-4)}
    assert told["advice"] == [f"threshold ≤ {told['changes']['threshold']:g}"]


async def test_a_place_behind_top_k_is_told(client: httpx.AsyncClient, conn: Conn, project: Project) -> None:
    made = await store(conn, project, *TEXTS)
    for memory in made:
        place = (await found(client, threshold=0)).index(str(memory.id)) + 1
        if place > 2:
            told = await why(client, memory, threshold=0, top_k=2)
            assert (told["stage"], told["rank"], told["changes"]) == ("top_k", place, {"top_k": place})
            assert told["advice"] == [f"top_k ≥ {place}"]


@pytest.mark.parametrize(
    ("filters", "failed"),
    [
        ({"user_id": "bob"}, [("user_id", "bob", "alice")]),
        ({"AND": [{"user_id": "alice"}, {"run_id": "s1"}]}, [("run_id", "s1", None)]),
        ({"agent_id": "*"}, [("agent_id", "*", None), ("user_id", None, "alice")]),
        ({"AND": [ALICE, {"metadata": {"team": "red"}}]}, [("metadata", {"team": "red"}, {"team": "blue"})]),
        ({"OR": [{"user_id": "bob"}, {"agent_id": "x"}]}, [("OR", [{"user_id": "bob"}, {"agent_id": "x"}], None)]),
        ({"AND": [ALICE, {"NOT": {"metadata": {"team": "blue"}}}]}, [("NOT", {"metadata": {"team": "blue"}}, None)]),
    ],
)
async def test_the_condition_that_keeps_it_out_is_named(
    client: httpx.AsyncClient, conn: Conn, project: Project, filters: Any, failed: list[Any]
) -> None:
    (memory,) = await store(conn, project, "Anna sold the blue van", metadata={"team": "blue"})
    told = await why(client, memory, filters=filters)
    assert (told["stage"], told["found"], told["arms"]) == ("filters", False, None)
    assert [(part["field"], part["asked"], part["has"]) for part in told["failed"]] == failed
    assert str(memory.id) in await found(client, **{"filters": filters, **told["changes"]})


async def test_conditions_that_it_meets_stay_in_the_advice(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    (memory,) = await store(conn, project, "blue van", metadata={"team": "blue"})
    told = await why(client, memory, filters={"AND": [{"user_id": "bob"}, {"metadata": {"team": "blue"}}]})
    assert told["changes"] == {"filters": {"AND": [ALICE, {"metadata": {"team": "blue"}}]}}
    told = await why(client, memory, metadata={"team": "red"}, keywords="red")
    assert [part["parameter"] for part in told["failed"]] == ["metadata", "keywords"]
    assert told["changes"] == {"metadata": None, "keywords": None}
    assert told["advice"] == ["leave out metadata", "leave out keywords"]


async def test_what_has_expired_or_was_replaced_is_told(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    (expired,) = await store(conn, project, "blue van", expiration_date=datetime(2020, 1, 1, tzinfo=UTC).date())
    old, new = await store(conn, project, "the blue van is here", "the blue van is gone")
    await lifecycle.supersede(conn, project.id, [(old.id, new.id)])
    (merged,) = await store(conn, project, "van, blue")
    await conn.execute("UPDATE memories SET state = 'merged', replaced_by = $2 WHERE id = $1", merged.id, new.id)
    told = await why(client, expired)
    assert (told["stage"], told["changes"]) == ("expired", {"show_expired": True})
    assert "2020-01-01" in told["reason"]
    assert (await why(client, old))["found"]
    told = await why(client, old, latest_only=True)
    assert (told["stage"], told["changes"]) == ("replaced", {"latest_only": False})
    assert str(new.id) in told["reason"]
    told = await why(client, merged)
    assert (told["stage"], told["changes"]) == ("replaced", {"include_merged": True})
    assert told["advice"] == ["include_merged: true"]
    told = await why(client, merged, latest_only=True)
    assert told["changes"] == {"latest_only": False, "include_merged": True}


async def test_a_memory_that_no_arm_brings_is_told_its_real_rank(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    await store(conn, project, *(f"blue van number {number}" for number in range(230)))
    (far,) = await store(conn, project, "qwertz zuiop")
    told = await why(client, far, threshold=0)
    assert (told["stage"], told["arms"]["keyword"]["rank"]) == ("candidates", None)
    assert told["arms"]["semantic"]["rank"] > 100
    assert 50 < told["changes"]["top_k"] <= 231
    assert str(far.id) in await found(client, threshold=0, **told["changes"])


async def test_a_memory_without_a_vector_or_a_word_is_told_how_it_is_found_all_the_same(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    (memory,) = await store(conn, project, "qwertz")
    await conn.execute("DELETE FROM memory_vectors")
    told = await why(client, memory)
    assert (told["stage"], told["changes"], told["advice"]) == ("candidates", None, [])
    assert {arm["rank"] for arm in told["arms"].values()} == {None}


async def test_what_is_not_there_or_not_the_callers_does_not_exist(
    client: httpx.AsyncClient, conn: Conn, runtime: Runtime, project: Project
) -> None:
    other = await factories.make_project(conn)
    (theirs,) = await store(conn, other, "blue van of a stranger")
    (hers,) = await store(conn, project, "blue van of bob", owners={"user_id": "bob"})
    grant = access.Grant(pins=pins.read({"user_id": ["alice"]}))
    _, pinned = await access.create_key(runtime, project, name="pinned", grant=grant)
    for memory_id, key in ((theirs.id, None), (uuid4(), None), (hers.id, pinned)):
        headers = {"Authorization": f"Token {key}"} if key else {}
        sent = {"query": "blue van", "filters": {"user_id": "*"}, "memory_id": str(memory_id)}
        answer = await client.post(WHY, json=sent, headers=headers)
        assert (answer.status_code, set(answer.json())) == (404, {"error", "detail"})
    assert (await why(client, hers, filters={"user_id": "*"}))["found"]


async def test_it_counts_as_a_search_and_changes_nothing(
    client: httpx.AsyncClient, conn: Conn, runtime: Runtime
) -> None:
    project = await factories.make_project(conn, settings=ProjectSettings(searches_per_minute=2, decay=True))
    client.headers["Authorization"] = f"Token {await factories.make_key(runtime, project)}"
    (memory,) = await store(conn, project, "blue van")
    assert (await why(client, memory))["found"]
    await why(client, memory, threshold=1)
    assert await conn.fetchval("SELECT count(*) FROM memory_access") == 0
    answer = await client.post(WHY, json={"query": "x", "filters": ALICE, "memory_id": str(memory.id)})
    assert answer.status_code == 429


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"memory_id": "17"}, "memory_id"),
        ({}, "memory_id"),
        ({"memory_id": str(UUID(int=1)), "query": " "}, "query"),
        ({"memory_id": str(UUID(int=1)), "filters": {}}, "Filters are required"),
        ({"memory_id": str(UUID(int=1)), "top_k": 0}, "top_k"),
    ],
)
async def test_a_question_that_cannot_be_honoured_is_refused_by_name(
    client: httpx.AsyncClient, body: dict[str, Any], words: str
) -> None:
    answer = await client.post(WHY, json={"query": "x", "filters": ALICE, **body})
    assert answer.status_code == 400
    assert words in answer.json()["error"]


WORDS = "blue van red bike tea bread Anna Oskar Riga cold cat May 2023 yesterday currently upcoming sold bakes".split()


@pytest.mark.parametrize("fading", [False, True])
async def test_it_agrees_with_the_search_and_its_advice_works(
    client: httpx.AsyncClient, conn: Conn, runtime: Runtime, fading: bool
) -> None:
    """Whatever is asked: told as found are those that are found, and what is advised brings back all others."""
    project = await factories.make_project(conn, settings=ProjectSettings(decay=fading))
    client.headers["Authorization"] = f"Token {await factories.make_key(runtime, project)}"
    chance = random.Random(8)
    client.event_hooks = {}  # the shape of the answers is compared above
    made = await crowd(conn, project, chance)
    stages = set()
    for _ in range(10):
        body = request(chance)
        for memory in chance.sample(made, 2):
            told = await why(client, memory, **body)
            hits = await found(client, **body)
            stages.add(told["stage"])
            assert told["found"] == (str(memory.id) in hits), (body, told)
            assert not told["found"] or hits[told["rank"] - 1] == str(memory.id)
            await decay.settled()  # where memories fade, each search changes the next one
            told = await why(client, memory, **body)
            assert told["changes"] is not None, (body, memory, told)
            assert str(memory.id) in await found(client, **{**body, **told["changes"]}), (body, told)
            await decay.settled()
    assert stages >= {"filters", "threshold", "top_k", "found"}


async def crowd(conn: Conn, project: Project, chance: random.Random) -> list[Memory]:
    """Store memories of several owners, times and states."""
    new: list[NewMemory] = []
    for owners in (ALICE, {"user_id": "alice", "run_id": "s1"}, {"agent_id": "bot"}):
        scope = await factories.make_scope(conn, project, **owners)
        for number in range(45):
            text = " ".join(chance.choices(WORDS, k=chance.randint(2, 9))) + f" {number}"
            at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=chance.randint(0, 2000))
            values = {
                "created_at": at,
                "actor": chance.choice([None, "Anna", "Oskar"]),
                "role": chance.choice(["user", "assistant"]),
                "metadata": chance.choice([None, {"team": "red"}]),
                "happened_from": chance.choice([None, at]),
                "expiration_date": chance.choice([None, None, None, datetime(2020, 1, 1, tzinfo=UTC).date()]),
                "state": chance.choice([State.ACTIVE, State.ACTIVE, State.ACTIVE, State.SUPERSEDED, State.MERGED]),
            }
            new.append(draft(scope, text, **values))
    return await memories.insert_many(conn, project.id, new, model=fakes.MODEL)


def request(chance: random.Random) -> dict[str, Any]:
    """Return a search as anybody could send it."""
    filters = [ALICE, {"OR": [ALICE, {"agent_id": "bot"}]}, {"agent_id": "bot"}, {"AND": [ALICE, {"run_id": "*"}]}]
    return {
        "query": " ".join(chance.choices(WORDS, k=chance.randint(1, 6))),
        "filters": chance.choice(filters),
        "threshold": chance.choice([0, 0, 0.1, 0.5]),
        "top_k": chance.choice([1, 5, 20, 60]),
        "reference_date": "2024-03-01",
        "latest_only": chance.random() < 0.2,
        "include_merged": chance.random() < 0.5,
        "show_expired": chance.random() < 0.7,
        **chance.choice([{}, {}, {"metadata": {"team": "red"}}, {"keywords": "tea"}]),
    }


async def test_a_search_that_is_too_unsure_is_told_and_its_advice_works(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    first, *_ = await store(conn, project, *TEXTS)
    unsure = {"query": "zebra banana", "threshold": 0, "min_confidence": 0.99}
    assert await found(client, **unsure) == []
    told = await why(client, first, **unsure)
    assert (told["found"], told["stage"], list(told["changes"])) == (False, "min_confidence", ["min_confidence"])
    assert str(first.id) in await found(client, **{**unsure, **told["changes"]})


@pytest.mark.parametrize("value", [2, -1, "x", True])
async def test_a_wrong_min_confidence_is_refused_as_a_search_refuses_it(
    client: httpx.AsyncClient, value: object
) -> None:
    sent = {"query": "tea", "filters": ALICE, "min_confidence": value}
    answers = [await client.post(SEARCH, json=sent), await client.post(WHY, json={**sent, "memory_id": str(uuid4())})]
    assert [answer.status_code for answer in answers] == [400, 400]
