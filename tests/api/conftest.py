"""A client whose every answer is compared with the description of the interface."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import httpx
import pytest
import structlog
import yaml
from jsonschema import Draft202012Validator

from app import api


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Print log lines without the values of local variables, which structlog shows while nobody has set it up."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    )


@pytest.fixture(scope="session")
def described() -> dict[str, Any]:
    """Return the interface as `openapi.yaml` describes it."""
    return yaml.safe_load(api.openapi_yaml())


@pytest.fixture(scope="session")
def conformity(described: dict[str, Any]) -> Conformity:
    """Return what compares an answer with the description."""
    return Conformity(described)


@pytest.fixture
def client(client: httpx.AsyncClient, conformity: Conformity) -> httpx.AsyncClient:
    """Return the client of the whole suite, with every answer checked."""

    async def check(response: httpx.Response) -> None:
        await response.aread()
        conformity.check(response)

    client.event_hooks = {"response": [check]}
    return client


class Conformity:
    """Finds the route of an answer in the description and checks its status and body."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._paths = described["paths"]
        self._components = copy.deepcopy(described["components"])
        for schema in self._components["schemas"].values():
            if "properties" in schema:
                schema["additionalProperties"] = False  # a field that nobody described is a field too many

    def check(self, response: httpx.Response) -> None:
        """Fail when the answer has a status or a shape that is not declared."""
        if response.request.method == "HEAD":
            return  # it has no body
        if response.headers["content-type"].startswith("text/plain; version="):
            assert response.request.url.path.rstrip("/") == "/metrics"  # the one that is not JSON
            return
        body = response.json()  # every answer is JSON
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-request-id"]
        if response.status_code >= 400 and not isinstance(body, list):
            assert isinstance(body["detail"], str)
        operation = self._operation(response.request)
        if operation is None:
            return
        declared = operation["responses"]
        assert str(response.status_code) in declared, f"{response.status_code} is not declared: {body}"
        if response.is_success and (
            b'"fields"' in response.request.content or b"fields=" in response.request.url.query
        ):
            return  # a projection
        schema = declared[str(response.status_code)]["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": self._components}).validate(body)

    def _operation(self, request: httpx.Request) -> dict[str, Any] | None:
        path = request.url.raw_path.split(b"?")[0].decode()
        path = "/" + path.lstrip("/")
        for template, operations in self._paths.items():
            # The kinds of entities are no ids of memories: /v1/memories/user/history/ is the user "history".
            pattern = template.rstrip("/").replace("{memory_id}", "(?!(?:user|agent|app|run)/)[^/]+")
            pattern = re.sub(r"\{[^}]+\}", "[^/]+", pattern) + "/?"
            if re.fullmatch(pattern, path) and request.method.lower() in operations:
                return operations[request.method.lower()]
        return None


def json_of(value: Any) -> bytes:
    """Return JSON in which everything beyond ASCII is escaped, lone surrogates too."""
    return json.dumps(value).encode()
