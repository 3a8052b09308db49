"""Plug-ins of agent frameworks: Agent Framework and Haystack in Python, Vercel's AI SDK in JavaScript."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Open
from driving import Client
from expect import refusal
from running import Service, wait_for

# Agent Framework


@pytest.fixture(scope="module")
def agent(service: Service, open_client: Open) -> Client:
    """Return the framework's memory provider."""
    client = open_client("python2", "agent_memory.py")
    client.new(host=service.url, api_key=service.key)
    return client


def test_agent_remembers_an_earlier_run(agent: Client, name: str) -> None:
    """It names the owners of an add in `filters` alone, and tells nobody the event's id."""
    agent.after_run(said="I play the cello in a string quartet.", answered="How lovely!", scope={"user_id": name})
    scope = {"user_id": name, "search_user_id": name}
    told = lambda: agent.before_run(said="Which instrument do I play?", scope=scope)  # noqa: E731
    assert "cello" in wait_for(told, within_s=60, what="the earlier run is remembered")


def test_agent_remembers_by_every_owner_it_searches(agent: Client, name: str) -> None:
    scope = {"user_id": name, "agent_id": f"agent of {name}", "application_id": f"app of {name}"}
    agent.after_run(
        said="I live in Porto with my sister.", answered="I booked the museum for Friday at noon.", scope=scope
    )
    searched = scope | {f"search_{key}": value for key, value in scope.items()}
    told = lambda: agent.before_run(said="Where do I live?", scope=searched)  # noqa: E731
    assert "Porto" in wait_for(told, within_s=60, what="the earlier run is remembered")
    by_app = {"user_id": name, "search_application_id": f"app of {name}"}
    assert "Porto" in agent.before_run(said="Where do I live?", scope=by_app)


def test_agent_that_may_search_nothing_is_told_nothing(agent: Client, name: str) -> None:
    assert agent.before_run(said="Which instrument do I play?", scope={"user_id": name}) == ""


# Haystack


@pytest.fixture(scope="module")
def haystack(service: Service, open_client: Open) -> Client:
    """Return the framework's memory store."""
    client = open_client("python2", "haystack_store.py")
    client.new(host=service.url, api_key=service.key)
    return client


@pytest.fixture
def written(haystack: Client, name: str) -> list[str]:
    """Write two messages of this owner word for word; return the ids of the memories."""
    said = [("user", "I play the cello in a string quartet."), ("assistant", "Friday at noon suits the museum.")]
    written = haystack.add_memories(messages=said, user_id=name, infer=False, metadata={"topic": "music", "level": 2})
    assert [memory["memory"] for memory in written] == [text for _, text in said]
    return [memory["memory_id"] for memory in written]


def test_haystack_finds_what_it_wrote(haystack: Client, written: list[str], name: str) -> None:
    found = haystack.search_memories(query="Which instrument do I play?", user_id=name, top_k=1)
    assert [message["text"] for message in found] == ["I play the cello in a string quartet."]
    assert found[0]["meta"]["topic"] == "music"
    assert found[0]["meta"]["mem0"]["memory_id"] == written[0]
    assert 0 <= found[0]["meta"]["mem0"]["score"] <= 1


def test_haystack_lists_without_a_query(haystack: Client, written: list[str], name: str) -> None:
    assert len(haystack.search_memories(user_id=name)) == 2


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"field": "topic", "operator": "==", "value": "music"}, 2),
        ({"field": "topic", "operator": "!=", "value": "music"}, 0),
        ({"field": "created_at", "operator": ">=", "value": "2024-01-01"}, 2),
        ({"field": "created_at", "operator": "<", "value": "2024-01-01"}, 0),
        ({"field": "categories", "operator": "in", "value": ["none such"]}, 0),
        ({"operator": "NOT", "conditions": [{"field": "topic", "operator": "==", "value": "music"}]}, 0),
        (
            {
                "operator": "OR",
                "conditions": [
                    {"field": "topic", "operator": "==", "value": "music"},
                    {"field": "topic", "operator": "==", "value": "sport"},
                ],
            },
            2,
        ),
    ],
)
def test_filters_of_haystack_narrow(
    haystack: Client, written: list[str], name: str, filters: dict[str, Any], count: int
) -> None:
    assert len(haystack.search_memories(filters=filters, user_id=name)) == count


def test_haystack_components_write_and_retrieve(haystack: Client, name: str) -> None:
    """The writer lets the service decide what is worth keeping, so what it wrote is there a little later."""
    haystack.write(messages=[("user", "I keep two rabbits named Fig and Plum.")], user_id=name)
    found = lambda: haystack.retrieve(query="rabbits", user_id=name)["memories"]  # noqa: E731
    assert "Fig" in wait_for(found, within_s=60, what="what was written is found")[0]["text"]


def test_haystack_tells_a_refusal(haystack: Client, name: str) -> None:
    refusal("ValueError", haystack.add_memories, messages=[("user", "I sing.")])
    wrong = {"messages": [("user", "I sing.")], "user_id": name, "expiration_date": "next year"}
    assert "Failed to add memories" in refusal("Mem0MemoryStoreError", haystack.add_memories, **wrong).message


# Vercel's AI SDK


@pytest.fixture(scope="module")
def vercel(open_client: Open) -> Client:
    """Return the provider's functions."""
    return open_client("npm", "vercel.mjs")


@pytest.fixture
def settings(service: Service, name: str) -> dict[str, Any]:
    """Return the settings of the provider: a host, a key and an owner."""
    return {"host": service.url, "mem0ApiKey": service.key, "user_id": name}


def prompt(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def test_vercel_functions_add_and_find(vercel: Client, settings: dict[str, Any]) -> None:
    added = vercel.addMemories(
        prompt("I play the cello in a string quartet."), {**settings, "infer": False, "metadata": {"a": 1}}
    )
    assert added["results"][0]["data"]["memory"] == "I play the cello in a string quartet."
    for call in ("getMemories", "searchMemories"):
        found = vercel.ask(call, (prompt("Which instrument do I play?"), {**settings, "top_k": 3, "threshold": 0}))
        found = found["results"] if isinstance(found, dict) else found
        assert "cello" in found[0]["memory"]
    assert "cello" in vercel.retrieveMemories("Which instrument do I play?", settings)


def test_vercel_model_is_told_what_is_remembered(vercel: Client, service: Service, settings: dict[str, Any]) -> None:
    vercel.addMemories(prompt("I play the cello in a string quartet."), {**settings, "infer": False})
    for call in ("generate", "stream"):
        told = vercel.ask(call, (prompt("Which instrument do I play?"), settings))
        assert "cello" in told["seen"]
        assert told["text"] == "Noted."


def test_vercel_model_remembers_what_is_said_to_it(vercel: Client, service: Service, settings: dict[str, Any]) -> None:
    vercel.generate(prompt("I keep two rabbits named Fig and Plum."), settings)
    found = lambda: "Fig" in vercel.retrieveMemories("What are my rabbits called?", settings)  # noqa: E731
    assert wait_for(found, within_s=60, what="what was said is remembered")


def test_vercel_functions_tell_a_refusal(vercel: Client, settings: dict[str, Any]) -> None:
    """All but `searchMemories`, which takes a refusal for no memories."""
    for wrong in ({"mem0ApiKey": "m0-wrong"}, {"user_id": None}):
        for call in ("addMemories", "getMemories", "retrieveMemories"):
            refused = refusal("Error", vercel.ask, call, (prompt("cello"), settings | wrong))
            assert refused.message.startswith("HTTP error! status: 40")
        assert vercel.searchMemories(prompt("cello"), settings | wrong) == []
