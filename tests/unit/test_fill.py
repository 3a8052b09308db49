"""Objects are filled from memories by rules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.domain import fill, fill_values, json_schema
from app.model import Memory, Owners, State


def memory(text: str, number: int = 1, **changes: Any) -> Memory:
    at = datetime(2026, 3, number, tzinfo=UTC)
    values: dict[str, Any] = {
        "project_id": 1, "id": UUID(int=number), "scope_id": 1, "owners": Owners(user_id="alice"), "text": text, "hash": "",
        "role": None, "actor": None, "metadata": None, "categories": None, "immutable": False, "expiration_date": None,
        "state": State.ACTIVE, "replaced_by": None, "synthesized": False, "event_id": None, "position": 0,
        "happened_from": None, "happened_to": None, "created_at": at, "updated_at": at,
    }  # fmt: skip
    return Memory(**values | changes)


def filled(schema: dict[str, Any], *texts: str) -> dict[str, Any]:
    """Fill a schema as a shaping does, without a search."""
    json_schema.check(schema)
    memories = [memory(text, number) for number, text in enumerate(texts, start=1)]
    evidence = {
        question.path: [one for one in memories if question.is_open or question.found_in(one)]
        for question in fill.questions(schema)
    }
    value = fill.fill(schema, evidence).value
    assert json_schema.Checker(schema).problems(value) == []
    return value


def of(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "schema", "text", "value"),
    [
        ("favorite_color", TEXT, "Alice's favorite color is dark green.", "dark green"),
        ("favoriteColor", TEXT, "Alice's favorite color is dark green.", "dark green"),
        ("color", TEXT, "She painted it in a warm color.", "She painted it in a warm color."),
        ("age", {"type": "integer"}, "Alice is 34 years old.", 34),
        ("age", {"type": "integer"}, "Since 3 May 2020 Alice says that she is 41 years old.", 41),
        ("children", {"type": "integer"}, "Alice has two children.", 2),
        ("income", {"type": "number"}, "Alice's income is 52,300.50 euros.", 52300.5),
        ("smoker", {"type": "boolean"}, "Alice smokes.", True),
        ("smoker", {"type": "boolean"}, "Alice does not smoke.", False),
        ("birthday", {"type": "string", "format": "date"}, "Alice's birthday is 7 May 1992.", "1992-05-07"),
        ("contact", {"type": "string", "format": "email"}, "Write to Alice by email: a.b@example.com.", "a.b@example.com"),
        ("website", {"type": "string", "format": "uri"}, "Her website is https://example.com/x?y=1.", "https://example.com/x?y=1"),
        ("status", {"enum": ["full_time", "part_time"]}, "The status of her contract is full time.", "full_time"),
        ("hobbies", {"type": "array", "items": TEXT}, "Her hobbies are chess, hiking and tea.", ["chess", "hiking", "tea"]),
        ("languages", {"type": "array", "items": TEXT}, "Alice speaks Greek.", ["Alice speaks Greek."]),
        ("城市", TEXT, "她的城市是里斯本。", "里斯本"),
        ("name", {"anyOf": [TEXT, {"type": "null"}], "default": None}, "My name is Alice Chen.", "Alice Chen"),
    ],
)  # fmt: skip
def test_plain_field_is_told_by_the_memory_about_it(name: str, schema: Any, text: str, value: Any) -> None:
    assert filled(of(**{name: schema}), "The weather in Oslo was grey.", text)[name] == value


def test_field_that_nothing_tells_is_left_out() -> None:
    assert filled(of(color=TEXT, age={"type": "integer"}), "Alice has 3 cats.") == {}


def test_number_of_a_memory_about_something_else_is_not_taken() -> None:
    assert filled(of(age={"type": "integer"}), "Alice lives at 34 High Street.") == {}


def test_bounds_of_the_schema_choose_among_what_is_said() -> None:
    schema = of(age={"type": "integer", "minimum": 18, "maximum": 99})
    assert filled(schema, "Alice is 7 feet tall and 40 years old.")["age"] == 40
    short = of(color={"type": "string", "maxLength": 5})
    assert filled(short, "Her color is ultramarine.", "Her color is blue.")["color"] == "blue"


def test_unknown_fields_that_are_demanded_are_null_or_empty() -> None:
    schema = of(
        ("a", "b", "c", "d", "e", "f"),
        a={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        b=TEXT,
        c={"type": "array", "items": TEXT},
        d={"type": "boolean", "default": True},
        e=of(("x",), x=TEXT),
        f={"enum": ["red", "unknown"]},
    )
    assert filled(schema) == {"a": None, "b": "", "c": [], "d": True, "e": {"x": ""}, "f": "unknown"}


@pytest.mark.parametrize(
    "schema", [{"type": "string", "minLength": 1}, {"enum": ["a"]}, {"type": "array", "minItems": 1}, {"format": "date", **TEXT}]
)  # fmt: skip
def test_unknown_field_that_cannot_be_empty_is_impossible(schema: dict[str, Any]) -> None:
    with pytest.raises(fill.Impossible, match="color"):
        fill.fill(of(("color",), color=schema), {})


def test_objects_inside_are_filled_and_those_without_content_left_out() -> None:
    address = of(("city",), city=TEXT, zip=TEXT)
    schema = {**of(home={"$ref": "#/$defs/A"}, work={"$ref": "#/$defs/W"}), "$defs": {"A": address, "W": of(boss=TEXT)}}
    assert filled(schema, "Her city is Porto.") == {"home": {"city": "Porto"}}


def test_list_of_objects_takes_each_from_one_memory() -> None:
    item = of(("memory", "created_at"), memory=TEXT, created_at={"format": "date-time", **TEXT}, user_id=TEXT)
    found = filled(of(memories={"type": "array", "items": item}), "Alice has a dog.", "It rained.")
    assert [one["memory"] for one in found["memories"]] == ["Alice has a dog.", "It rained."]
    assert found["memories"][0] == {
        "memory": "Alice has a dog.",
        "created_at": "2026-03-01T00:00:00+00:00",
        "user_id": "alice",
    }


def test_schema_that_refers_to_itself_ends() -> None:
    node = of(("name",), name=TEXT, child={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]})
    assert filled({"$ref": "#/$defs/N", "$defs": {"N": node}}, "My name is Ann.")["name"] == "Ann"


def test_parts_of_all_of_are_one() -> None:
    schema = {"type": "object", "allOf": [of(color=TEXT), of(("age",), age={"type": "integer"})]}
    assert filled(schema, "Her color is blue.", "She is 40 years old.") == {"color": "blue", "age": 40}


def test_whole_object_must_fit_what_no_field_says() -> None:
    with pytest.raises(fill.Impossible, match="fits"):
        fill.fill({**of(color=TEXT), "minProperties": 1}, {})


def test_too_many_fields_are_refused() -> None:
    with pytest.raises(fill.Impossible, match="fields"):
        fill.questions(of(**{f"p{n}": TEXT for n in range(fill.MAX_QUESTIONS + 1)}))


def test_more_specific_words_of_a_name_are_needed() -> None:
    assert filled(of(favorite_color=TEXT), "Alice's favorite food is sushi.") == {}


@pytest.mark.parametrize(
    ("text", "holds"), [("Alice smokes.", True), ("她不抽烟。", False), ("She hasn't any.", False)]
)
def test_denial_is_seen(text: str, holds: bool) -> None:
    assert fill_values.holds(memory(text)) is holds
