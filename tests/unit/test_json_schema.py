"""Schemas of callers are checked, and validation ends."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from app import errors
from app.domain import json_schema


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        of(a={"type": "string"}),
        of(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"enum": [1, 2]}}},
        {"$ref": "#/$defs/Node", "$defs": {"Node": of(next={"$ref": "#/$defs/Node"})}},
        {"anyOf": [of(a=True), of(b=False)]},
        of(**{"a/b~c": {"$ref": "#/properties/a~1b~0c/items"}}),
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", **of(a={})},
        of(price={"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}),
    ],
)
def test_schemas_that_programs_write_are_taken(schema: dict[str, Any]) -> None:
    if "a/b~c" in schema.get("properties", {}):
        schema["properties"]["a/b~c"]["items"] = {}
    assert json_schema.read(schema) == schema
    assert json_schema.read(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (of(a={"$ref": "http://127.0.0.1/x"}), "nothing outside the schema"),
        (of(a={"$ref": "#/nowhere"}), "points to nothing"),
        (of(a={"$ref": "#/x-hidden"}) | {"x-hidden": {"patternProperties": {}}}, "inside this one"),
        (of(a={"patternProperties": {"(a+)+$": {}}}), "patternProperties"),
        (of(a={"$dynamicRef": "#x"}), "dynamicRef"),
        (of(a={"$id": "http://other/"}), "$id"),
        (of(a={"pattern": "(?=x)y"}), "look-around"),
        (of(a={"type": "strin"}), "properties.a.type"),
        ({"$ref": "#"}, "leads nowhere"),
        ({"type": ["array", "null"]}, "type must be object"),
        ({"title": "nothing"}, "describes no object"),
        (of(a={"description": "x" * 70_000}), "bytes"),
        (of(**{f"p{n}": {} for n in range(501)}), "500 properties"),
    ],
)
def test_schemas_that_cannot_be_used_are_refused_with_the_reason(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=json_schema.REQUIRED) as refused:
        json_schema.read(schema)
    assert reason in refused.value.message


def test_deep_schema_is_refused_before_it_is_walked() -> None:
    deep: dict[str, Any] = of()
    for _ in range(60):
        deep = {"type": "object", "allOf": [deep]}
    with pytest.raises(errors.InvalidRequest, match="deeper"):
        json_schema.read(deep)


def test_problems_name_the_place() -> None:
    schema = of(a={"type": "array", "items": {"type": "integer"}}, d={"format": "date"}, p={"pattern": "^x"})
    checker = json_schema.Checker(json_schema.read(schema))
    assert checker.problems({"a": [1], "d": "2024-02-29", "p": "xy"}) == []
    found = checker.problems({"a": [1, "b"], "d": "2023-02-29", "p": "y"})
    assert [problem.split(":")[0] for problem in found] == ["a[1]", "d", "p"]


def test_validation_that_would_take_for_ever_ends() -> None:
    doubling = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(30)}
    schema = {"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": {**doubling, "a30": True}}
    checker = json_schema.Checker(json_schema.read(schema), steps=2000)
    with pytest.raises(json_schema.TooMuch):
        checker.problems({})
    looping = of(a={"$ref": "#/$defs/a"}) | {"$defs": {"a": {"$ref": "#/$defs/a"}}}
    with pytest.raises(json_schema.TooMuch):
        json_schema.Checker(json_schema.read(looping)).problems({"a": 1})


def test_hostile_pattern_runs_in_linear_time() -> None:
    checker = json_schema.Checker(json_schema.read(of(a={"type": "string", "pattern": "^(a+)+$"})))
    started = time.process_time()
    assert checker.problems({"a": "a" * 20_000 + "b"})
    assert time.process_time() - started < 2


def test_properties_without_a_description_are_named_at_any_depth() -> None:
    schema = of(a={"description": "x", "properties": {"b": {"type": "string"}}}, c={"description": " "})
    assert sorted(json_schema.undescribed(schema)) == ["b", "c"]
