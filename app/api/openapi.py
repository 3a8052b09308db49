"""The description of the interface: made from the routes, kept in `openapi.yaml`."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api import idempotency
from app.api.examples import EXAMPLES

_SCHEMES = {
    "token": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`Token <key>` or `Bearer <key>`; `memoryd keys create` makes a key.",
    },
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The key alone."},
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait before the next try.", "schema": {"type": "integer"}}}
_LIMITS = {
    "X-RateLimit-Limit": {
        "description": "Requests of this kind that the project has in a minute, where that is what refused.",
        "schema": {"type": "integer"},
    },
    "X-RateLimit-Remaining": {"description": "How many of them are left.", "schema": {"type": "integer"}},
    "X-RateLimit-Reset": {
        "description": "When the next minute begins, in seconds since 1970.",
        "schema": {"type": "integer"},
    },
}
_KEY = {
    "name": idempotency.HEADER,
    "in": "header",
    "required": False,
    "description": "Makes the request safe to repeat: the same key and request give the same answer for at least 24 hours.",
    "schema": {"type": "string", "maxLength": idempotency.KEY_CHARS},
}
_REPLAYED = {
    idempotency.REPLAYED: {
        "description": "`true`: the request was carried out before, under the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
_REFUSALS = {
    "409": "The first request with this Idempotency-Key still runs; `Retry-After` says when to try again.",
    "422": "The Idempotency-Key was used with another request.",
}
_VALIDATION = "#/components/schemas/HTTPValidationError"  #: FastAPI's own shape, which no route answers


def install(app: FastAPI) -> None:
    """Make `/openapi.json` serve the same description as `openapi.yaml`."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def text(app: FastAPI) -> str:
    """Return the description as YAML."""
    return yaml.dump(document(app), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def document(app: FastAPI) -> dict[str, Any]:
    """Return the description as OpenAPI 3.1."""
    described = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    for operations in described["paths"].values():
        for operation in operations.values():
            _complete(operation)
    _prune(described)
    described["components"]["securitySchemes"] = _SCHEMES
    return described


def _complete(operation: dict[str, Any]) -> None:
    """Add what FastAPI does not know, and take away what it assumes."""
    name = operation["operationId"]
    responses = operation["responses"]
    public = "401" not in responses  # a route that asks for a key can miss it
    operation["security"] = [] if public else [{"token": []}, {"key": []}]
    invalid = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if invalid.get("$ref") == _VALIDATION:
        del responses["422"]
    if name in idempotency.RULES:
        _repeatable(operation)
    responses = operation["responses"] = dict(sorted(responses.items()))
    for response in responses.values():
        content = response.get("content", {})
        if len(content) > 1 and content.get("application/json") == {"schema": {}}:
            del content["application/json"]  # FastAPI's guess, beside what the route says itself
    if not public:
        for code, headers in (("429", _RETRY_AFTER | _LIMITS), ("503", _RETRY_AFTER)):
            if code in responses:
                responses[code]["headers"] = headers
    example = EXAMPLES.get(name, {})
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "response" in example:
        success = next(code for code in responses if code.startswith("2"))
        next(iter(responses[success]["content"].values()))["example"] = example["response"]


def _repeatable(operation: dict[str, Any]) -> None:
    """Declare the Idempotency-Key of an operation that changes something, and what comes of it."""
    others = [one for one in operation.get("parameters", ()) if one["name"].lower() != idempotency.HEADER.lower()]
    operation["parameters"] = [*others, _KEY]
    responses = operation["responses"]
    for code, response in responses.items():
        if code.startswith("2"):
            response["headers"] = _REPLAYED
    for code, meaning in _REFUSALS.items():
        responses.setdefault(code, {"description": meaning, "content": responses["503"]["content"]})
    responses["409"]["headers"] = _RETRY_AFTER


def _prune(described: dict[str, Any]) -> None:
    """Drop the shapes that nothing refers to: FastAPI's own, and those of Python types that the wire never sees."""
    schemas = described["components"]["schemas"]
    while unused := [name for name in schemas if f"#/components/schemas/{name}'" not in str(described)]:
        for name in unused:
            del schemas[name]


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out instead of referring to them."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: an anchor is for machines."""
        return True
