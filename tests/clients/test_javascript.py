"""The current JavaScript client. It sends snake case and answers in camel case."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from conftest import Open
from driving import Client, Raised
from expect import UNKNOWN, raised_by, refusal, say
from running import Service, wait_for


@pytest.fixture
def stored(javascript: Client) -> Any:
    """Return a function that stores a text word for word, and returns the id of the memory."""

    def store(text: str, **options: Any) -> str:
        (result,) = javascript.add(say(text), {"infer": False, **options})["results"]
        return str(result["id"])

    return store


# Connection


@pytest.mark.parametrize("slash", ["", "/"])
def test_host_and_key_give_the_client_an_identity(javascript: Client, service: Service, slash: str) -> None:
    identity = javascript.new({"host": f"{service.url}{slash}", "apiKey": service.key})
    try:
        assert all(isinstance(value, str) and value for value in identity.values()), identity
        assert "results" in javascript.users()
        javascript.ping()
    finally:
        javascript.new({"host": service.url, "apiKey": service.key})


def test_wrong_key_is_an_authentication_error(service: Service, open_client: Open) -> None:
    client = open_client("npm", "sdk.mjs")
    assert client.new({"host": service.url, "apiKey": "m0-wrong"})["projectId"] is None
    for call, args in [
        ("ping", ()),
        ("add", (say("I sing."), {"userId": "u"})),
        ("search", ("singing", {"filters": {"user_id": "u"}})),
        ("getAll", ({"filters": {"user_id": "u"}},)),
        ("get", (UNKNOWN,)),
        ("delete", (UNKNOWN,)),
        ("users", ()),
    ]:
        refused = refusal("AuthenticationError", client.ask, call, args)
        assert refused.error_code == "HTTP_401"


# Add


def test_added_messages_become_memories(javascript: Client, service: Service, name: str) -> None:
    talk = [*say("I keep two rabbits named Fig and Plum."), {"role": "assistant", "content": "Lovely!"}]
    accepted = javascript.add(talk, {"userId": name})
    assert accepted["status"] == "PENDING"
    service.finished(accepted["eventId"])
    listed = javascript.getAll({"filters": {"user_id": name}})
    assert any("Fig" in memory["memory"] for memory in listed["results"])
    assert listed["results"][0]["userId"] == name


def test_every_option_of_an_add_is_kept(javascript: Client, stored: Any, name: str) -> None:
    memory_id = stored(
        "Tea without sugar.", userId=name, appId="kitchen", runId="r-1", metadata={"kind": {"deep": [1]}},
        customCategories=[{"drinks": "what people drink"}], customInstructions="Keep drinks.",
        agentCustomInstructions="Keep promises.", timestamp=1721577600, expirationDate="2099-01-31",
        structuredDataSchema={"type": "object"},
    )  # fmt: skip
    memory = javascript.get(memory_id)
    assert (memory["userId"], memory["appId"], memory["runId"]) == (name, "kitchen", "r-1")
    assert memory["metadata"] == {"kind": {"deep": [1]}}
    assert memory["expirationDate"] == "2099-01-31"
    assert memory["createdAt"].startswith("2024-07-21T16:00:00")


def test_malformed_add_is_a_validation_error(javascript: Client) -> None:
    assert "detail" in refusal("ValidationError", javascript.add, say("I sing."), {}).message
    refusal("ValidationError", javascript.add, say("I sing."), {"userId": "u", "expirationDate": "next year"})
    refusal("Error", javascript.add, [], {"userId": "u"})


def test_body_that_is_too_large_is_a_quota_error(javascript: Client, name: str) -> None:
    refusal("MemoryQuotaExceededError", javascript.add, say("a" * 11 * 2**20), {"userId": name})


# Search and list


@pytest.fixture
def cello(stored: Any, name: str) -> str:
    """Store two memories of this owner; return the id of the one about a cello."""
    stored("I swim two kilometres on Mondays.", userId=name, metadata={"topic": "sport"})
    return str(stored("I play the cello in a string quartet.", userId=name, metadata={"topic": "music"}))


def test_search_finds_the_memory_that_is_meant(javascript: Client, cello: str, name: str) -> None:
    hits = javascript.search("Which instrument do I play?", {"filters": {"user_id": name}})["results"]
    assert hits[0]["id"] == cello
    assert hits[0]["score"] > hits[1]["score"]
    assert isinstance(hits[0]["createdAt"], str)
    assert "metadata" in hits[0]


def test_options_of_a_search_are_accepted(javascript: Client, cello: str, name: str) -> None:
    options = {
        "filters": {"AND": [{"user_id": name}]}, "metadata": {"topic": "music"}, "topK": 5, "threshold": 0, "rerank": True,
        "latestOnly": True, "fields": ["memory", "score"], "showExpired": True, "referenceDate": "2026-03-01",
        "keywordSearch": True, "source": "OPENCLAW",
    }  # fmt: skip
    assert [hit["id"] for hit in javascript.search("cello", options)["results"]] == [cello]
    assert javascript.search("cello", {"filters": {"user_id": name}, "categories": ["none such"]})["results"] == []
    assert javascript.search("cello", {"filters": {"userId": name}})["results"][0]["id"] == cello


def test_list_comes_in_pages(javascript: Client, cello: str, name: str) -> None:
    mine = {"filters": {"user_id": name}}
    first = javascript.getAll({**mine, "page": 1, "pageSize": 1})
    assert (first["count"], len(first["results"]), first["previous"]) == (2, 1, None)
    assert javascript.getAll({**mine, "pageSize": 1, "page": 2})["next"] is None
    dated = javascript.getAll(
        {**mine, "startDate": "2020-01-01", "endDate": "2020-12-31", "showExpired": True, "latestOnly": True}
    )
    assert dated["count"] == 0
    refusal("MemoryNotFoundError", javascript.getAll, {**mine, "page": 9, "pageSize": 2})


def test_search_and_list_without_an_owner_are_refused(javascript: Client) -> None:
    refusal("ValidationError", javascript.search, "cello", {})
    refusal("ValidationError", javascript.search, "", {"filters": {"user_id": "u"}})
    refusal("ValidationError", javascript.getAll, {})
    with pytest.raises(Raised):
        javascript.search("cello", {"userId": "u"})


# Read, change, delete


def test_memory_lives_and_dies(javascript: Client, stored: Any, name: str) -> None:
    memory_id = stored("I owe Sam ten euros.", userId=name)
    changed = javascript.update(
        memory_id, {"text": "I owe Sam five euros.", "metadata": {"paid": 5}, "timestamp": 1721577600}
    )
    assert (changed["memory"], changed["metadata"]) == ("I owe Sam five euros.", {"paid": 5})
    assert javascript.update(memory_id, {"expirationDate": "2099-12-31"})["expirationDate"] == "2099-12-31"
    assert javascript.update(memory_id, {"expirationDate": None})["expirationDate"] is None
    assert javascript.delete(memory_id)["message"] == "Memory deleted successfully!"
    changes = javascript.history(memory_id)
    assert [change["event"] for change in changes][0] == "ADD"
    assert changes[-1]["event"] == "DELETE"
    assert changes[0]["newMemory"] == "I owe Sam ten euros."
    refusal("MemoryNotFoundError", javascript.get, memory_id)


def test_delete_with_what_is_linked_counts_the_cascade(javascript: Client, stored: Any, name: str) -> None:
    assert isinstance(javascript.delete(stored("A.", userId=name), {"deleteLinked": True})["cascadeCount"], int)


def test_unknown_and_malformed_ids_are_told_apart(javascript: Client) -> None:
    for call, rest in [("get", ()), ("update", ({"text": "x"},)), ("delete", ()), ("history", ())]:
        refusal("MemoryNotFoundError", javascript.ask, call, (UNKNOWN, *rest))
        refusal("ValidationError", javascript.ask, call, ("no/uuid", *rest))


def test_delete_all_takes_what_its_owner_has_and_nothing_else(javascript: Client, stored: Any, name: str) -> None:
    gone, kept = stored("Mine.", userId=name), stored("Not mine.", userId=f"{name} two")
    assert javascript.deleteAll({"userId": name})["message"]
    refusal("MemoryNotFoundError", javascript.get, gone)
    refusal("ValidationError", javascript.deleteAll)
    refusal("ValidationError", javascript.deleteAll, {})
    assert javascript.get(kept)["memory"] == "Not mine."


# The rest


def test_batches_change_and_delete(javascript: Client, stored: Any, name: str) -> None:
    ids = [stored(f"Note {number}.", userId=name) for number in range(2)]
    assert javascript.batchUpdate([{"memoryId": each, "text": f"Changed {each}."} for each in ids])["message"]
    assert javascript.get(ids[0])["memory"] == f"Changed {ids[0]}."
    assert javascript.batchDelete(ids)["message"]
    refusal("MemoryNotFoundError", javascript.batchDelete, ids)


def test_owners_are_listed_by_page_and_deleted(javascript: Client, stored: Any, name: str) -> None:
    awkward = f"{name} %2F ?#+&=@ 猫/é"
    memory_id = stored("I am here.", agentId=awkward)
    page = javascript.users({"page": 1, "pageSize": 1})
    assert len(page["results"]) == 1
    found = [owner for owner in javascript.users()["results"] if owner["name"] == awkward]
    assert found[0]["type"] == "agent"
    assert javascript.deleteUsers({"agentId": awkward})["message"] == "Entity deleted successfully."
    wait_for(lambda: raised_by(javascript.get, memory_id), within_s=20, what="the memory is gone")


def test_owner_is_deleted_by_its_id_in_the_deprecated_way(javascript: Client, stored: Any) -> None:
    who = f"owner {uuid4().hex[:8]}"
    memory_id = stored("I am here.", userId=who)
    (owner,) = (found for found in javascript.users()["results"] if found["name"] == who)
    assert javascript.deleteUser({"entity_id": owner["id"], "entity_type": "user"})["message"]
    wait_for(lambda: raised_by(javascript.get, memory_id), within_s=20, what="the memory is gone")
    refusal("ValidationError", javascript.deleteUser, {"entity_id": "no number", "entity_type": "user"})


def test_feedback_is_kept_and_checked(javascript: Client, stored: Any, name: str) -> None:
    memory_id = stored("I like olives.", userId=name)
    kept = javascript.feedback({"memoryId": memory_id, "feedback": "NEGATIVE", "feedbackReason": "no longer"})
    assert (kept["feedback"], kept["feedbackReason"]) == ("NEGATIVE", "no longer")
    refusal("ValidationError", javascript.feedback, {"memoryId": memory_id, "feedback": "SPLENDID"})
    refusal("MemoryNotFoundError", javascript.feedback, {"memoryId": UNKNOWN, "feedback": "POSITIVE"})


def test_project_is_read_and_changed(javascript: Client) -> None:
    before = javascript.getProject({})
    assert before["projectId"]
    try:
        changed = {
            "customInstructions": "Keep all.",
            "customCategories": [{"all": "everything"}],
            "decay": True,
            "multilingual": True,
        }
        assert javascript.updateProject(changed)["message"]
        after = javascript.getProject({"fields": ["customInstructions", "customCategories", "decay", "multilingual"]})
        assert {key: after[key] for key in changed} == changed
    finally:
        javascript.updateProject(
            {
                "customInstructions": "",
                "customCategories": [],
                "decay": before["decay"],
                "multilingual": before["multilingual"],
            }
        )


def test_webhooks_come_change_and_go(javascript: Client) -> None:
    created = javascript.createWebhook({"name": "mine", "url": "https://1.1.1.1/hook", "eventTypes": ["memory_add"]})
    hook = created["webhookId"]
    assert created["eventTypes"] == ["memory_add"]
    assert javascript.updateWebhook({"webhookId": hook, "name": "yours", "eventTypes": ["memory_delete"]})["message"]
    (found,) = (webhook for webhook in javascript.getWebhooks() if webhook["webhookId"] == hook)
    assert (found["name"], found["eventTypes"]) == ("yours", ["memory_delete"])
    assert javascript.deleteWebhook({"webhookId": hook})["message"]
    refusal("MemoryNotFoundError", javascript.deleteWebhook, {"webhookId": hook})
