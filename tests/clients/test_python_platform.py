"""The current Python client, synchronous and asynchronous: all that it offers beside single memories."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from conftest import Remember
from driving import Client, Raised
from expect import UNKNOWN, raised_by, refusal
from running import Service, wait_for

# Batches


def test_batch_update_changes_each(python: Client, two_facts: dict[str, str]) -> None:
    changes = [
        {"memory_id": two_facts["cello"], "text": "I play the viola."},
        {"memory_id": two_facts["swim"], "metadata": {"topic": "water"}},
    ]
    assert python.batch_update(changes)["message"] == "Successfully updated 2 memories"
    assert python.get(two_facts["cello"])["memory"] == "I play the viola."
    assert python.get(two_facts["swim"])["metadata"] == {"topic": "water"}


def test_batch_delete_takes_each(python: Client, two_facts: dict[str, str]) -> None:
    doomed = [{"memory_id": memory_id} for memory_id in two_facts.values()]
    assert python.batch_delete(doomed)["message"] == "Successfully deleted 2 memories"
    for memory_id in two_facts.values():
        refusal("MemoryNotFoundError", python.get, memory_id)


def test_batch_with_an_unknown_memory_changes_nothing(python: Client, two_facts: dict[str, str]) -> None:
    known = two_facts["cello"]
    changes = [{"memory_id": known, "text": "Changed."}, {"memory_id": UNKNOWN, "text": "Changed."}]
    refusal("MemoryNotFoundError", python.batch_update, changes)
    refusal("MemoryNotFoundError", python.batch_delete, [{"memory_id": known}, {"memory_id": UNKNOWN}])
    assert python.get(known)["memory"] == "I play the cello in a string quartet."


def test_batch_of_more_than_a_thousand_is_a_validation_error(python: Client) -> None:
    many = [{"memory_id": str(uuid4()), "text": "x"} for _ in range(1001)]
    assert "1000" in refusal("ValidationError", python.batch_update, many).message
    assert "1000" in refusal("ValidationError", python.batch_delete, many).message
    refusal("ValidationError", python.batch_update, [{"memory_id": "no-uuid", "text": "x"}])


# Feedback


def test_feedback_is_kept_replaced_and_cleared(python: Client, remember: Remember, name: str) -> None:
    memory_id = remember("I like olives.", user_id=name)
    kept = python.feedback(memory_id, "POSITIVE", "that is right")
    assert (kept["feedback"], kept["feedback_reason"]) == ("POSITIVE", "that is right")
    assert kept["id"]
    assert python.feedback(memory_id, feedback="very_negative")["feedback"] == "VERY_NEGATIVE"
    assert python.feedback(memory_id)["feedback"] is None


def test_feedback_about_nothing_is_refused(python: Client) -> None:
    refusal("MemoryNotFoundError", python.feedback, UNKNOWN, "POSITIVE")
    refusal("ValidationError", python.feedback, "no-uuid", "POSITIVE")
    refusal("ValueError", python.feedback, UNKNOWN, "SPLENDID")


def test_chat_is_what_the_client_does_not_have(python: Client) -> None:
    refusal("NotImplementedError", python.chat)


# Owners


def owner(python: Client, name: str) -> dict[str, Any] | None:
    """Return the owner of this name, as the client lists it."""
    found = [entity for entity in python.users()["results"] if entity["name"] == name]
    return found[0] if found else None


def test_owners_are_listed_as_soon_as_they_have_memories(python: Client, remember: Remember, name: str) -> None:
    for kind in ("user", "agent", "app", "run"):
        remember("I am here.", **{f"{kind}_id": f"{kind} of {name}"})
    answer = python.users()
    assert {
        "count",
        "next",
        "previous",
        "results",
        "total_users",
        "total_agents",
        "total_apps",
        "total_runs",
    } <= answer.keys()
    for kind in ("user", "agent", "app", "run"):
        listed = owner(python, f"{kind} of {name}")
        assert listed is not None
        assert listed["type"] == kind
        assert isinstance(listed["id"], str)
        assert {"created_at", "updated_at", "owner", "metadata"} <= listed.keys()


@pytest.mark.parametrize("kind", ["user", "agent", "app", "run"])
def test_deleted_owner_goes_with_its_memories(python: Client, remember: Remember, name: str, kind: str) -> None:
    awkward = f"{name} %2F ?#+&=@ 猫/é"
    gone = remember("With its owner.", **{f"{kind}_id": awkward})
    kept = remember("With another.", **{f"{kind}_id": name})
    assert python.delete_users(**{f"{kind}_id": awkward})["message"] == "Entity deleted successfully."
    refused = wait_for(lambda: raised_by(python.get, gone), within_s=20, what="the memory is gone")
    assert refused.kind == "MemoryNotFoundError"
    assert wait_for(lambda: owner(python, awkward) is None, within_s=20, what="the owner is gone")
    assert python.get(kept)["memory"] == "With another."


# Project


@pytest.fixture
def settings_again(python: Client) -> Any:
    """Return the project's settings to what they were: other tests share the project."""
    before = python.project.get()
    yield before
    python.project.update(
        custom_instructions=before["custom_instructions"] or "",
        agent_custom_instructions=before["agent_custom_instructions"] or "",
        custom_categories=before["custom_categories"] or [],
        multilingual=before["multilingual"],
        decay=before["decay"],
    )


def test_project_tells_its_settings(python: Client, service: Service) -> None:
    identity = python.new(host=service.url, api_key=service.key)
    project = python.project.get()
    assert project["project_id"] == identity["project_id"]
    assert {
        "name", "description", "created_at", "updated_at", "members", "custom_instructions", "agent_custom_instructions",
        "custom_categories", "multilingual", "decay", "enable_graph", "memory_depth", "version", "user_role",
    } <= project.keys()  # fmt: skip
    assert python.get_project()["project_id"] == project["project_id"]
    for narrowed in (
        python.project.get(fields=["decay", "multilingual"]),
        python.get_project(fields=["decay", "multilingual"]),
    ):
        assert {"decay", "multilingual"} <= narrowed.keys()


def test_project_keeps_what_is_changed(python: Client, settings_again: Any) -> None:
    changed = {
        "custom_instructions": "Keep what people play.",
        "agent_custom_instructions": "Keep what agents promise.",
        "custom_categories": [{"instruments": "what people play"}],
        "multilingual": True,
        "decay": True,
    }
    assert python.project.update(**changed)["message"]
    project = python.project.get()
    assert {key: project[key] for key in changed} == changed
    python.project.update(agent_custom_instructions="", custom_categories=[])
    project = python.project.get()
    assert not project["agent_custom_instructions"]
    assert project["custom_categories"] == []
    assert project["decay"] is True


def test_project_is_changed_through_the_older_method_too(python: Client, settings_again: Any) -> None:
    options = {"$options": "ProjectUpdateOptions", "custom_instructions": "From typed options.", "multilingual": True}
    assert python.update_project(options)["message"]
    assert python.update_project(memory_depth="deep", usecase_setting="travel")["message"]
    assert python.project.get()["custom_instructions"] == "From typed options."


def test_changing_nothing_never_leaves_the_client(python: Client) -> None:
    refusal("ValueError", python.project.update)
    refusal("ValueError", python.update_project)


def test_project_can_be_created(python: Client) -> None:
    created = python.project.create(name=f"side {uuid4().hex[:8]}", description="a second one")
    assert created["project_id"]
    assert created["message"]
    refusal("ValidationError", python.project.create, name="")


def test_members_come_and_go(python: Client) -> None:
    email = f"{uuid4().hex[:8]}@example.org"

    def role() -> str | None:
        members = python.project.get_members()["members"]
        return next((member["role"] for member in members if email in (member.get("email"), member["username"])), None)

    assert python.project.add_member(email=email)["message"]
    assert role() == "READER"
    assert python.project.update_member(email=email, role="OWNER")["message"]
    assert role() == "OWNER"
    assert python.project.remove_member(email=email)["message"]
    assert role() is None
    refusal("MemoryNotFoundError", python.project.remove_member, email=email)
    refusal("MemoryNotFoundError", python.project.update_member, email=email, role="READER")
    refusal("ValueError", python.project.add_member, email=email, role="QUEEN")


# Webhooks


def test_webhooks_come_change_and_go(python: Client, service: Service) -> None:
    project_id = python.new(host=service.url, api_key=service.key)["project_id"]
    created = python.create_webhook("https://1.1.1.1/hook", "mine", project_id, ["memory_add", "memory_delete"])
    assert created["event_types"] == ["memory_add", "memory_delete"]
    assert (created["name"], created["url"], created["is_active"]) == ("mine", "https://1.1.1.1/hook", True)
    assert {"webhook_id", "owner", "project", "created_at", "updated_at"} <= created.keys()
    hook = created["webhook_id"]

    def listed() -> dict[str, Any] | None:
        return next((found for found in python.get_webhooks(project_id) if found["webhook_id"] == hook), None)

    assert python.update_webhook(hook, name="yours", event_types=["memory_categorize"])["message"]
    found = listed()
    assert found is not None
    assert (found["name"], found["event_types"], found["url"]) == ("yours", ["memory_categorize"], created["url"])
    assert python.delete_webhook(hook)["message"]
    assert listed() is None
    refusal("MemoryNotFoundError", python.delete_webhook, hook)
    refusal("MemoryNotFoundError", python.update_webhook, hook, name="theirs")


def test_malformed_webhook_is_a_validation_error(python: Client, service: Service) -> None:
    project_id = python.new(host=service.url, api_key=service.key)["project_id"]
    refusal("ValidationError", python.create_webhook, "no address", "mine", project_id, ["memory_add"])
    refusal("ValidationError", python.create_webhook, "https://example.org/hook", "mine", project_id, ["memory_sing"])
    refusal("ValidationError", python.create_webhook, "https://example.org/hook", "", project_id, ["memory_add"])


def test_webhooks_of_another_project_are_closed(python: Client) -> None:
    with pytest.raises(Raised) as caught:
        python.get_webhooks("proj_of_somebody")
    assert caught.value.kind in ("AuthenticationError", "MemoryNotFoundError")
