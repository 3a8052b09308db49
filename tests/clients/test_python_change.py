"""The current Python client, synchronous and asynchronous: reading, changing and deleting memories."""

from __future__ import annotations

from conftest import Remember
from driving import Client
from expect import UNKNOWN, refusal


def test_unknown_memory_is_not_found(python: Client) -> None:
    for call in (
        lambda: python.get(UNKNOWN),
        lambda: python.update(UNKNOWN, text="I dance."),
        lambda: python.delete(UNKNOWN),
        lambda: python.delete(UNKNOWN, delete_linked=True),
        lambda: python.history(UNKNOWN),
    ):
        assert refusal("MemoryNotFoundError", call).message == "Memory not found!"


def test_malformed_memory_id_is_a_validation_error(python: Client) -> None:
    for call in (
        lambda: python.get("no/uuid"),
        lambda: python.update("no-uuid", text="I dance."),
        lambda: python.delete("no-uuid"),
        lambda: python.history("no-uuid"),
    ):
        assert refusal("ValidationError", call).message == "memory_id should be a valid UUID"


def test_update_changes_what_it_names(python: Client, remember: Remember, name: str) -> None:
    memory_id = remember("I rent a flat in Ghent.", user_id=name, metadata={"a": 1, "b": 2})
    updated = python.update(memory_id, text="I own a flat in Ghent.")
    assert (updated["id"], updated["memory"], updated["metadata"]) == (
        memory_id,
        "I own a flat in Ghent.",
        {"a": 1, "b": 2},
    )
    assert python.update(memory_id, metadata={"c": 3})["metadata"] == {"c": 3}
    assert python.update(memory_id, timestamp=1721577600)["created_at"].startswith("2024-07-21T16:00:00")
    assert python.update(memory_id, timestamp="2024-07-22T10:00:00+02:00")["created_at"].startswith(
        "2024-07-22T08:00:00"
    )
    options = {"$options": "UpdateMemoryOptions", "expiration_date": "2099-12-31"}
    assert python.update(memory_id, options)["expiration_date"] == "2099-12-31"
    assert python.update(memory_id, text="I own a house in Ghent.")["expiration_date"] == "2099-12-31"
    assert python.update(memory_id, expiration_date=None)["expiration_date"] is None
    assert python.search("house in Ghent", filters={"user_id": name})["results"][0]["id"] == memory_id


def test_update_of_nothing_never_leaves_the_client(python: Client) -> None:
    refusal("ValueError", python.update, UNKNOWN)


def test_immutable_memory_refuses_an_update(python: Client, remember: Remember, name: str) -> None:
    memory_id = remember("My blood group is B.", user_id=name, immutable=True)
    refusal("ValidationError", python.update, memory_id, text="My blood group is A.")
    assert python.get(memory_id)["memory"] == "My blood group is B."


def test_deleted_memory_is_gone_and_keeps_its_history(python: Client, remember: Remember, name: str) -> None:
    memory_id = remember("I owe Sam ten euros.", user_id=name)
    python.update(memory_id, text="I owe Sam five euros.")
    assert python.delete(memory_id)["message"] == "Memory deleted successfully!"
    refusal("MemoryNotFoundError", python.get, memory_id)
    changes = python.history(memory_id)
    assert [change["event"] for change in changes] == ["ADD", "UPDATE", "DELETE"]
    assert [change["old_memory"] for change in changes[:2]] == [None, "I owe Sam ten euros."]
    assert [change["new_memory"] for change in changes[:2]] == ["I owe Sam ten euros.", "I owe Sam five euros."]
    assert {"id", "memory_id", "input", "user_id", "metadata", "categories", "created_at", "updated_at"} <= changes[
        0
    ].keys()


def test_delete_with_what_is_linked_counts_the_cascade(python: Client, remember: Remember, name: str) -> None:
    answer = python.delete(remember("I owe Sam ten euros.", user_id=name), delete_linked=True)
    assert answer["message"] == "Memory deleted successfully!"
    assert isinstance(answer["cascade_count"], int)


# Delete all


def test_delete_all_takes_what_its_owner_has_and_nothing_else(python: Client, remember: Remember, name: str) -> None:
    remember("Mine to lose.", user_id=name)
    kept = remember("Not mine to lose.", user_id=f"{name} two")
    assert python.delete_all(user_id=name)["message"]
    assert python.get_all(filters={"user_id": name})["count"] == 0
    assert python.get(kept)["memory"] == "Not mine to lose."


def test_delete_all_narrows_with_every_owner(python: Client, remember: Remember, name: str) -> None:
    kept = remember("Of no run.", user_id=name)
    gone = remember("Of a run.", user_id=name, run_id="r-3")
    python.delete_all(user_id=name, run_id="r-3")
    refusal("MemoryNotFoundError", python.get, gone)
    assert python.get(kept)["memory"] == "Of no run."


def test_delete_all_by_typed_options_never_widens(python: Client, remember: Remember, name: str) -> None:
    """The client sends these filters as the text of a Python dict."""
    gone = remember("Mine to lose.", user_id=name)
    kept = remember("Not mine to lose.", user_id=f"{name} two")
    python.delete_all({"$options": "DeleteAllMemoryOptions", "filters": {"user_id": name}})
    refusal("MemoryNotFoundError", python.get, gone)
    assert python.get(kept)["memory"] == "Not mine to lose."


def test_delete_all_of_nobody_is_a_validation_error(python: Client, remember: Remember, name: str) -> None:
    kept = remember("Still here.", user_id=name)
    for named in ({}, {"user_id": ""}, {"filters": {}}, {"filters": "gibberish"}, {"filters": {"colour": "red"}}):
        refusal("ValidationError", python.delete_all, **named)
    assert python.get(kept)["memory"] == "Still here."
