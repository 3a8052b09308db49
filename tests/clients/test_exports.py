"""Exports and summaries, through every client that has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driving import Client, Raised
from expect import UNKNOWN, refusal, say
from running import wait_for

SCHEMA = {
    "title": "Likes",
    "type": "object",
    "properties": {"instrument": {"type": "string", "description": "The musical instrument that the person plays."}},
}
CELLO = "I play the cello in a string quartet."
NOT_THERE = ("MemoryNotFoundError", "HTTPStatusError")  #: what a 404 is in each client


def fetched(fetch: Any, *args: Any, **which: Any) -> dict[str, Any] | None:
    """Return the export, once it is there. Until then the service answers 404."""
    try:
        return fetch(*args, **which) or {"empty": True}
    except Raised as raised:
        if raised.kind not in NOT_THERE:
            raise
        return None


def test_export_is_shaped_by_its_schema(python: Client, two_facts: dict[str, str], name: str) -> None:
    created = python.create_memory_export(SCHEMA, filters={"user_id": name}, export_instructions="Be brief.")
    assert created["id"]
    assert created["message"]
    there = lambda: fetched(python.get_memory_export, memory_export_id=created["id"])  # noqa: E731
    export = wait_for(there, within_s=60, what="the export is there")
    assert set(export) <= {"instrument"}
    assert fetched(python.get_memory_export, filters={"AND": [{"user_id": name}]}) == export


def test_schema_of_an_export_may_be_its_text(python: Client, two_facts: dict[str, str], name: str) -> None:
    created = python.create_memory_export(json.dumps(SCHEMA), filters={"AND": [{"user_id": name}]})
    there = lambda: fetched(python.get_memory_export, memory_export_id=created["id"])  # noqa: E731
    assert wait_for(there, within_s=60, what="the export is there")


def test_malformed_export_is_a_validation_error(python: Client, name: str) -> None:
    refusal("ValidationError", python.create_memory_export, None, filters={"user_id": name})
    refusal("ValidationError", python.create_memory_export, "no schema", filters={"user_id": name})
    refusal("ValidationError", python.create_memory_export, SCHEMA)
    refusal("ValidationError", python.get_memory_export)
    refusal("MemoryNotFoundError", python.get_memory_export, memory_export_id=UNKNOWN)
    refusal("MemoryNotFoundError", python.get_memory_export, filters={"user_id": f"never {name}"})


def test_older_clients_export_by_owner(older: Client, name: str) -> None:
    older.add(say(CELLO), user_id=name, infer=False)
    created = older.create_memory_export(SCHEMA, user_id=name)
    there = lambda: fetched(older.get_memory_export, memory_export_id=created["id"])  # noqa: E731
    assert wait_for(there, within_s=60, what="the export is there")
    assert fetched(older.get_memory_export, user_id=name)


def test_javascript_exports_and_fetches(javascript: Client, name: str) -> None:
    javascript.add(say(CELLO), {"userId": name, "infer": False})
    wanted = {"schema": SCHEMA, "filters": {"user_id": name}, "exportInstructions": "Be brief."}
    created = javascript.createMemoryExport(wanted)
    there = lambda: fetched(javascript.getMemoryExport, {"memoryExportId": created["id"]})  # noqa: E731
    assert wait_for(there, within_s=60, what="the export is there")
    assert fetched(javascript.getMemoryExport, {"filters": {"AND": [{"user_id": name}]}})
    refusal("Error", javascript.getMemoryExport, {})


@pytest.mark.parametrize("shape", [lambda who: {"user_id": who}, lambda who: {"AND": [{"user_id": who}]}])
def test_summary_tells_of_the_owner(python: Client, two_facts: dict[str, str], name: str, shape: Any) -> None:
    assert "cello" in str(python.get_summary(filters=shape(name)))


def test_summary_of_nobody_is_a_validation_error(python: Client) -> None:
    refusal("ValidationError", python.get_summary)


def test_older_clients_summarise(older: Client, name: str) -> None:
    older.add(say(CELLO), user_id=name, infer=False)
    assert "cello" in str(older.get_summary(filters={"user_id": name}))


def test_wrong_key_exports_nothing(python: Client, name: str, forged: None) -> None:
    for call in (
        lambda: python.create_memory_export(SCHEMA, filters={"user_id": name}),
        lambda: python.get_memory_export(filters={"user_id": name}),
        lambda: python.get_summary({"user_id": name}),
    ):
        refusal("AuthenticationError", call)
