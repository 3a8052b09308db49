"""`openapi.yaml` says what the routes do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from app import api

COMMITTED = Path(__file__).parents[2] / "openapi.yaml"


def operations(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_committed_description_is_the_one_of_the_routes() -> None:
    assert COMMITTED.read_text() == api.openapi_yaml(), "run: memoryd openapi > openapi.yaml"


def test_description_is_valid_openapi_31(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(described).validate()


def test_every_operation_has_a_name_of_its_own_and_a_sentence(described: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(described)]
    assert len(names) == len(set(names))
    assert all(operation["description"].endswith(".") for _, operation in operations(described))


def test_every_field_has_a_description(described: dict[str, Any]) -> None:
    for name, schema in described["components"]["schemas"].items():
        for field, value in schema.get("properties", {}).items():
            assert "description" in value or "$ref" in value, f"{name}.{field}"


def test_every_operation_declares_its_errors(described: dict[str, Any]) -> None:
    for route, operation in operations(described):
        assert "500" in operation["responses"], route
        if operation["security"]:
            assert {"401", "503"} <= set(operation["responses"]), route
        if "requestBody" in operation:
            assert {"400", "408", "413"} <= set(operation["responses"]), route
        if "{" in route:
            assert "404" in operation["responses"], route


def test_framework_shapes_are_not_promised(described: dict[str, Any]) -> None:
    assert "HTTPValidationError" not in yaml.dump(described)


def test_every_example_has_the_shape_that_it_illustrates(described: dict[str, Any]) -> None:
    components = described["components"]
    shown = 0
    for route, operation in operations(described):
        success = next((code for code in operation["responses"] if code.startswith("2")), None)
        answer = operation["responses"][success]["content"] if success else {}  # some routes only say that they are not
        media = [("answer", answer["application/json"])] if "application/json" in answer else []
        if "requestBody" in operation:
            media.append(("request", operation["requestBody"]["content"]["application/json"]))
        for kind, content in media:
            assert "example" in content, f"{route}: {kind}"
            Draft202012Validator({**content["schema"], "components": components}).validate(content["example"])
            shown += 1
    assert shown > 10


@pytest.mark.parametrize("name", ["add_memories", "search_memories", "list_memories"])
async def test_requests_of_the_examples_are_accepted(client: Any, described: dict[str, Any], name: str) -> None:
    for route, operation in operations(described):
        if operation["operationId"] == name:
            method, path = route.split()
            example = operation["requestBody"]["content"]["application/json"]["example"]
            assert (await client.request(method, path, json=example)).status_code == 200
