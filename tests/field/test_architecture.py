"""The architecture by its own examples: who sees what, the layers of a conversation, agents beside users."""

from __future__ import annotations

from typing import Any

import pytest

from app.store.db import Conn
from tests.field.conftest import LIST, SEARCH, Service, extraction, extractions
from tests.model_stub import ModelStub, says

both = pytest.mark.parametrize("path", [LIST, SEARCH], ids=["list", "search"])
NAMES = ("user_id", "agent_id", "app_id", "run_id")


async def texts(service: Service, path: str, filters: Any) -> set[str]:
    return {memory["memory"] for memory in await service.find(path, filters)}


@pytest.fixture
async def stored(service: Service) -> Service:
    """Memories of alice alone, in a session, in an application, of her with the bot; of the bot alone; of bob."""
    for text, owners in {
        "alice": {"user_id": "alice"},
        "alice in s1": {"user_id": "alice", "run_id": "s1"},
        "alice in shop": {"user_id": "alice", "app_id": "shop"},
        "alice with bot": {"user_id": "alice", "agent_id": "bot"},
        "bot": {"agent_id": "bot"},
        "bot in s1": {"agent_id": "bot", "run_id": "s1"},
        "bob": {"user_id": "bob"},
        "bob in s1": {"user_id": "bob", "run_id": "s1"},
    }.items():
        await service.add(text, **owners)
    return service


@both
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"user_id": "alice"}, {"alice"}),
        ({"AND": [{"user_id": "alice"}]}, {"alice"}),
        ({"OR": [{"user_id": "alice"}]}, {"alice", "alice in s1", "alice in shop", "alice with bot"}),
        (
            {"OR": [{"user_id": "alice"}, {"agent_id": "bot"}]},
            {"alice", "alice in s1", "alice in shop", "alice with bot", "bot", "bot in s1"},
        ),
        ({"AND": [{"user_id": "*"}]}, {"alice", "bob"}),
        ({"OR": [{"user_id": "*"}]}, {"alice", "alice in s1", "alice in shop", "alice with bot", "bob", "bob in s1"}),
        ({"AND": [{"user_id": "alice"}, {"run_id": "s1"}]}, {"alice in s1"}),
        ({"AND": [{"user_id": "*"}, {"run_id": "s1"}]}, {"alice in s1", "bob in s1"}),
        ({"AND": [{"user_id": "alice"}, {"run_id": "*"}]}, {"alice in s1"}),
        ({"run_id": "s1"}, set()),
        ({"AND": [{"run_id": "s1"}, {"OR": [{"user_id": "*"}, {"agent_id": "*"}]}]}, {"alice in s1", "bot in s1", "bob in s1"}),
        ({"OR": [{name: "*"} for name in NAMES]}, {
            "alice", "alice in s1", "alice in shop", "alice with bot", "bot", "bot in s1", "bob", "bob in s1"}),
        ({"AND": [{name: "*"} for name in NAMES]}, set()),
        ({"AND": [{"user_id": "alice"}, {"OR": [{"metadata": {"k": {"ne": "v"}}}]}]}, {"alice"}),
        ({"agent_id": "bot"}, {"bot"}),
        ({"user_id": {"in": ["alice", "bob"]}}, {"alice", "bob"}),
    ],
)  # fmt: skip
async def test_scopes_are_seen_as_the_table_of_scoping_says(
    stored: Service, path: str, filters: Any, found: set[str]
) -> None:
    assert await texts(stored, path, filters) == found


@both
@pytest.mark.parametrize(
    "owners",
    [
        {"user_id": "u1"},
        {"user_id": "u1", "run_id": "session-7"},
        {"agent_id": "planner", "app_id": "shop"},
        {"user_id": "u1", "agent_id": "planner", "app_id": "shop", "run_id": "ticket-7"},
    ],
    ids=["user", "session", "agent's knowledge", "full isolation"],
)
async def test_each_pattern_sees_its_own_memories_only(service: Service, path: str, owners: dict[str, str]) -> None:
    await service.add("mine", **owners)
    for name in NAMES:  # neighbours: one owner more, one fewer, one other
        for other in ({**owners, name: "other"}, {key: value for key, value in owners.items() if key != name}):
            if other and other != owners:
                await service.add("not mine", **other)
    assert await texts(service, path, {"AND": [{name: value} for name, value in owners.items()]}) == {"mine"}
    assert await texts(service, path, owners) == {"mine"}


async def test_session_is_cleaned_and_the_user_stays(service: Service) -> None:
    await service.add("prefers tea", user_id="u1")
    await service.add("wants a refund", user_id="u1", run_id="s1")
    await service.add("asks for an invoice", user_id="u1", run_id="s2")
    await service.client.delete("/v1/memories/", params={"run_id": "s1"})
    assert await texts(service, LIST, {"OR": [{"user_id": "u1"}]}) == {"prefers tea", "asks for an invoice"}


async def test_a_turn_sees_the_layers_of_user_and_session_and_is_stored_under_both(service: Service) -> None:
    """Two searches, one for what lasts and one for the session; the new turn belongs to the session."""
    await service.add("is allergic to peanuts", user_id="u1")
    turn = {"user_id": "u1", "run_id": "s1"}
    assert (await service.tell("My order number is ZX-4471.", **turn))["status"] == "SUCCEEDED"
    lasting = await service.search("order", {"user_id": "u1"})
    session = await service.search("order", {"AND": [{"user_id": "u1"}, {"run_id": "s1"}]})
    assert lasting == ["is allergic to peanuts"]
    assert len(session) == 1
    assert "ZX-4471" in session[0]
    other_session = await service.search("order", {"AND": [{"user_id": "u1"}, {"run_id": "s2"}]})
    assert other_session == []


async def test_user_and_agent_are_apart_and_joined_by_or(modelled: Service, stub: ModelStub) -> None:
    stub.default = says({"facts": [
        {"text": "User prefers green tea", "speaker": "user", "messages": [1]},
        {"text": "Assistant recommended Assam", "speaker": "assistant", "messages": [2]},
    ]})  # fmt: skip
    messages = [
        {"role": "user", "content": "I prefer green tea."},
        {"role": "assistant", "content": "I recommend Assam."},
    ]
    owners = {"user_id": "alice", "agent_id": "bot", "app_id": "shop", "run_id": "s1"}
    event = await modelled.tell(messages=messages, **owners)
    assert event["status"] == "SUCCEEDED"
    rows = await modelled.find(LIST, {"OR": [{"user_id": "alice"}, {"agent_id": "bot"}]})
    assert {(row["memory"], *(row[name] for name in NAMES)) for row in rows} == {
        ("User prefers green tea", "alice", None, "shop", "s1"),
        ("Assistant recommended Assam", None, "bot", "shop", "s1"),
    }
    for path in (LIST, SEARCH):
        assert await texts(modelled, path, {"AND": [{"user_id": "alice"}, {"agent_id": "bot"}]}) == set()
        assert await texts(modelled, path, {"AND": [{name: value} for name, value in owners.items()]}) == set()
        assert await texts(modelled, path, {"AND": [{"user_id": "alice"}, {"app_id": "shop"}, {"run_id": "s1"}]}) == {
            "User prefers green tea"
        }


async def test_memories_accumulate(modelled: Service, stub: ModelStub) -> None:
    """An add adds: what contradicts a memory leaves it as it was, and its history has one line."""
    stub.default = extraction(says({"facts": ["User lives in Rome"]}), says({"facts": ["User lives in Oslo"]}))
    await modelled.tell("I live in Rome.")
    await modelled.tell("I live in Oslo now.")
    rows = await modelled.find(LIST)
    assert [row["memory"] for row in rows] == ["User lives in Oslo", "User lives in Rome"]
    for row in rows:
        assert [change["event"] for change in await modelled.history(row["id"])] == ["ADD"]


async def test_both_modes_for_the_same_data_store_it_twice(modelled: Service, stub: ModelStub) -> None:
    stub.default = says({"facts": ["User likes tea"]})
    await modelled.tell("I like tea.")
    await modelled.add("I like tea.")
    assert sorted(await modelled.list()) == ["I like tea.", "User likes tea"]


async def test_direct_import_asks_no_model(modelled: Service, stub: ModelStub) -> None:
    await modelled.add("I like tea.")
    assert stub.requests == []


async def test_one_call_of_the_model_takes_all_facts_of_a_turn(modelled: Service, stub: ModelStub) -> None:
    stub.default = says({"facts": [f"fact {number}" for number in range(12)]})
    await modelled.tell(" ".join(f"This is fact {number}." for number in range(12)))
    assert extractions(stub) == 1
    assert len(await modelled.list()) == 12


async def test_search_defaults_are_those_of_the_architecture(service: Service) -> None:
    await service.add(*(f"tea number {number}" for number in range(30)))
    body = {"query": "tea", "filters": {"user_id": "u1"}}
    default = (await service.client.post(SEARCH, json=body)).json()
    spelled_out = {"top_k": 20, "threshold": 0.1, "rerank": False}
    assert (await service.client.post(SEARCH, json=body | spelled_out)).json() == default
    assert len(default["results"]) == 20
    assert all(hit["score"] >= 0.1 for hit in default["results"])


async def test_memory_object_has_the_promised_fields(service: Service) -> None:
    await service.add("A", user_id="u1", timestamp=1_609_459_200, metadata={"k": "v"})
    (memory,) = await service.find(SEARCH, query="A")
    assert {"id", "memory", *NAMES, "metadata", "categories", "created_at", "updated_at", "score"} <= set(memory)
    assert {"day", "month", "year", "hour", "minute", "day_of_week", "is_weekend", "quarter", "week_of_year"} <= set(
        memory["structured_attributes"]
    )


async def test_projects_do_not_share_an_alice(service: Service, conn: Conn) -> None:
    await service.add("mine", user_id="alice")
    async with service.of(conn):
        assert await texts(service, LIST, {"OR": [{"user_id": "alice"}]}) == set()
