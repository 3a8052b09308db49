"""The MCP server that people install, spoken to over stdio by a real MCP client."""

from __future__ import annotations

import pytest
from conftest import Open
from driving import Client
from expect import UNKNOWN, refusal
from running import Service, wait_for

TOOLS = {
    "add_memory", "search_memories", "get_memories", "delete_all_memories", "list_entities", "get_memory", "update_memory",
    "delete_memory", "delete_entities",
}  # fmt: skip


@pytest.fixture(scope="module")
def mcp(service: Service, open_client: Open) -> Client:
    """Return the session. Its default user is a name of its own, as an assistant's would be."""
    variables = {
        "MEM0_API_KEY": service.key,
        "HOST_OF_MEMORIES": service.url,
        "MEM0_DEFAULT_USER_ID": "the assistant's user",
    }
    return open_client("mcp", "mcp_client.py", **variables)


@pytest.fixture
def added(mcp: Client, service: Service, name: str) -> str:
    """Add a memory of this owner through the tool; return its id."""
    accepted = mcp.add_memory(text="I play the cello in a string quartet.", user_id=name, metadata={"topic": "music"})
    assert accepted["status"] == "PENDING"
    return str(service.finished(accepted["event_id"])["results"][0]["id"])


def test_every_tool_is_tried_here(mcp: Client) -> None:
    assert set(mcp.tools()) == TOOLS


def test_added_memory_is_found_listed_and_read(mcp: Client, added: str, name: str) -> None:
    mine = {"AND": [{"user_id": name}]}
    found = mcp.search_memories(query="Which instrument do I play?", filters=mine, limit=3)
    assert found["results"][0]["id"] == added
    assert mcp.search_memories(query="cello", filters={"user_id": name})["results"][0]["id"] == added
    assert mcp.get_memories(filters=mine, page=1, page_size=5)["count"] >= 1
    assert "cello" in mcp.get_memory(memory_id=added)["memory"]


def test_default_user_stands_in_for_none(mcp: Client, service: Service) -> None:
    accepted = mcp.add_memory(text="I keep two rabbits named Fig and Plum.")
    service.finished(accepted["event_id"])
    assert any("Fig" in memory["memory"] for memory in mcp.get_memories()["results"])
    assert mcp.search_memories(query="rabbits")["results"]


def test_conversation_of_an_agent_and_a_run_is_kept(mcp: Client, service: Service, name: str) -> None:
    talk = [
        {"role": "user", "content": "I live in Porto."},
        {"role": "assistant", "content": "I booked the museum for Friday."},
    ]
    accepted = mcp.add_memory(text="talk", messages=talk, agent_id=name, run_id="r-1", enable_graph=False)
    service.finished(accepted["event_id"])
    assert mcp.search_memories(query="museum", filters={"OR": [{"agent_id": name}, {"user_id": name}]})["results"]


def test_memory_is_changed_and_deleted(mcp: Client, added: str) -> None:
    assert mcp.update_memory(memory_id=added, text="I play the viola.")["memory"] == "I play the viola."
    assert mcp.delete_memory(memory_id=added)["message"] == "Memory deleted successfully!"
    assert "Memory not found!" in mcp.get_memory(memory_id=added)["error"]


def test_all_memories_of_an_owner_are_deleted(mcp: Client, added: str, name: str) -> None:
    assert mcp.delete_all_memories(user_id=name)["message"]
    assert "error" in mcp.get_memory(memory_id=added)


def test_owners_are_listed_and_deleted(mcp: Client, added: str, name: str) -> None:
    assert name in [owner["name"] for owner in mcp.list_entities()["results"]]
    assert mcp.delete_entities(user_id=name)["message"]
    assert wait_for(lambda: "error" in mcp.get_memory(memory_id=added), within_s=20, what="the memory is gone")


def test_refusals_reach_the_model_as_text(mcp: Client) -> None:
    assert mcp.get_memory(memory_id=UNKNOWN)["error"] == "Memory not found!"
    assert mcp.get_memory(memory_id="no-uuid")["error"] == "memory_id should be a valid UUID"
    assert "colour" in mcp.search_memories(query="cello", filters={"user_id": "u", "colour": "red"})["error"]


def test_wrong_key_fails_the_tool(service: Service, open_client: Open) -> None:
    session = open_client("mcp", "mcp_client.py", MEM0_API_KEY="m0-wrong", HOST_OF_MEMORIES=service.url)
    refused = refusal("ToolError", session.list_entities)
    assert "Error: " in refused.message
