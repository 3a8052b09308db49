"""Profiles of users, through the clients that have them."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Remember
from driving import Client
from expect import UNKNOWN, refusal, say
from running import wait_for

PROFILE = {
    "type": "object",
    "properties": {"playedInstrument": {"type": "string", "description": "The instrument that the person plays."}},
}


@pytest.fixture
def profiles_on(python: Client) -> Any:
    """Switch profiles on, and off again."""
    yield python.update_profile_settings(enabled=True, schema=PROFILE, custom_instructions="Be brief.")
    python.update_profile_settings(enabled=False, schema=None, custom_instructions=None)


def test_profile_settings_change_only_what_is_named(python: Client, profiles_on: dict[str, Any]) -> None:
    assert profiles_on["enabled"] is True
    assert profiles_on["entities"]["user"]["schema"] == PROFILE
    assert "capabilities" in profiles_on
    changed = python.update_profile_settings(custom_instructions=None)
    assert changed["enabled"] is True
    assert changed["entities"]["user"]["schema"] == PROFILE
    assert changed["entities"]["user"]["custom_instructions"] is None
    assert python.get_profile_settings() == changed


def test_profile_schema_without_descriptions_is_a_validation_error(python: Client) -> None:
    bare = {"type": "object", "properties": {"instrument": {"type": "string"}}}
    refusal("ValidationError", python.update_profile_settings, schema=bare)


def test_profile_is_generated_on_demand(
    python: Client, profiles_on: dict[str, Any], two_facts: dict[str, str], name: str
) -> None:
    job = python.generate_profile(name, idempotency_key=f"key of {name}")
    assert {
        "job_id",
        "status",
        "status_url",
        "operation",
        "entity_type",
        "entity_count_reserved",
        "event_id",
    } <= job.keys()
    assert job["replayed"] is False
    again = python.generate_profile(name, idempotency_key=f"key of {name}")
    assert (again["job_id"], again["replayed"]) == (job["job_id"], True)
    done = wait_for(lambda: ended(python, job["status_url"]), within_s=60, what="the profile job has ended")
    assert done["id"] == job["job_id"]
    assert python.get_profile_job(job["job_id"])["job"]["completed"] == 1
    profile = python.get_profile(name)
    assert profile["status"] in ("succeeded", "insufficient_data")
    assert (profile["entity_type"], profile["entity_id"]) == ("user", name)
    assert {"profile", "updated_at", "generation_count"} <= profile.keys()


def ended(python: Client, status_url: str) -> dict[str, Any] | None:
    """Return the job when all its owners are dealt with."""
    job = python.get_profile_job(status_url)["job"]
    assert {
        "id",
        "operation",
        "entity_type",
        "status",
        "total",
        "completed",
        "succeeded",
        "failed",
        "skipped",
    } <= job.keys()
    return job if job["enumeration_complete"] and job["completed"] == job["total"] else None


def test_profiles_are_sampled(python: Client, profiles_on: dict[str, Any], two_facts: dict[str, str]) -> None:
    job = python.sample_profiles(limit=1)
    assert (job["operation"], job["sampled"], len(job["entity_ids"])) == ("sample", 1, 1)
    wait_for(lambda: ended(python, job["status_url"]), within_s=60, what="the profile job has ended")


def test_known_user_without_a_profile_is_no_error(python: Client, remember: Remember, name: str) -> None:
    remember("I sing.", user_id=name)
    assert python.get_profile(name)["status"] == "not_enabled"
    assert python.get_profile(name)["profile"] == {}


def test_profile_of_nobody_is_refused(python: Client, profiles_on: dict[str, Any], name: str) -> None:
    refusal("MemoryNotFoundError", python.get_profile, f"never {name}")
    refusal("MemoryNotFoundError", python.generate_profile, f"never {name}")
    refusal("MemoryNotFoundError", python.get_profile_job, UNKNOWN)


def test_profiles_that_are_off_are_not_generated(python: Client, remember: Remember, name: str) -> None:
    remember("I sing.", user_id=name)
    refusal("ValidationError", python.generate_profile, name)
    refusal("ValidationError", python.sample_profiles)


def test_wrong_key_reads_no_profile(python: Client, name: str, forged: None) -> None:
    for call in (
        lambda: python.get_profile(name),
        lambda: python.generate_profile(name),
        lambda: python.sample_profiles(),
        lambda: python.get_profile_settings(),
        lambda: python.update_profile_settings(enabled=True),
        lambda: python.get_profile_job(UNKNOWN),
    ):
        refusal("AuthenticationError", call)


# In JavaScript


def test_profiles_are_set_up_generated_and_read(javascript: Client, name: str) -> None:
    javascript.add(say("I play the cello in a string quartet."), {"userId": name, "infer": False})
    assert javascript.getProfile({"entityId": name})["status"] == "not_enabled"
    try:
        settings = javascript.updateProfileSettings(
            {"enabled": True, "schema": PROFILE, "customInstructions": "Be brief."}
        )
        assert settings["entities"]["user"]["schema"] == PROFILE
        assert javascript.getProfileSettings() == settings
        job = javascript.generateProfile({"entityId": name, "idempotencyKey": f"key of {name}"})
        assert job["replayed"] is False
        done = wait_for(
            lambda: ended_there(javascript, job["statusUrl"]), within_s=60, what="the profile job has ended"
        )
        assert done["id"] == job["jobId"]
        assert javascript.getProfile({"entityId": name})["status"] in ("succeeded", "insufficient_data")
        assert javascript.sampleProfiles({"limit": 1})["sampled"] == 1
        refusal("MemoryNotFoundError", javascript.getProfile, {"entityId": f"never {name}"})
    finally:
        javascript.updateProfileSettings({"enabled": False, "schema": None, "customInstructions": None})


def ended_there(javascript: Client, status_url: str) -> dict[str, Any] | None:
    """Return the job when all its owners are dealt with."""
    job: dict[str, Any] = javascript.getProfileJob(status_url)["job"]
    return job if job["enumerationComplete"] and job["completed"] == job["total"] else None
