"""Which memories a request means: the filter tree of a list, a search or a delete_all."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import orjson

from app import errors
from app.api import schemas
from app.config import Settings
from app.domain import filters, pins
from app.model import OWNER_FIELDS, And, Caller, FilterNode, Or

#: Sent by clients with every request, and no filters.
_NO_FILTERS = frozenset({"org_id", "project_id", "source"})
_DELETE_FILTERS = (*OWNER_FIELDS, "metadata", "filters")


def tree(settings: Settings, caller: Caller, body: schemas.Selection, *, owner_required: bool = True) -> FilterNode:
    """Return what a list or a search may see: its filters, scoped and narrowed, within the pins of the key.

    `owner_required`: False for the second generation of routes, whose filters need not name an owner.
    Raises: InvalidRequest.
    """
    node = filters.parse(
        body.filters, max_depth=settings.max_filter_depth, max_conditions=settings.max_filter_conditions
    )
    if owner_required:
        filters.require_owner(node)
    if caller.project.settings.null_scoping:
        node = filters.null_scoped(node)
    narrowed = filters.narrow(
        node,
        categories=body.categories,
        metadata=getattr(body, "metadata", None),
        keywords=getattr(body, "keywords", None),
        start_date=getattr(body, "start_date", None),
        end_date=getattr(body, "end_date", None),
        show_expired=body.show_expired,
        latest_only=body.latest_only,
        include_merged=body.include_merged,
        today=today(),
    )
    return pins.narrowed(caller, narrowed)


def today() -> date:
    """Return the day by which expiration is measured."""
    return datetime.now(UTC).date()


def of_delete_all(settings: Settings, query: Sequence[tuple[str, str]]) -> tuple[FilterNode, dict[str, Any]]:
    """Return what a delete_all deletes, and its parameters as its event keeps them.

    Every parameter narrows; what cannot be understood is refused, because leaving it out would delete more.
    Raises: InvalidRequest.
    """
    given: dict[str, Any] = {}
    for name, value in query:
        if name in _NO_FILTERS:
            continue
        if name not in _DELETE_FILTERS:
            raise errors.InvalidRequest(f"{name[:80]} is no filter of this route: use {', '.join(_DELETE_FILTERS)}.")
        if name in given:
            raise errors.InvalidRequest(f"{name} is given twice.")
        if not value.strip():
            raise errors.InvalidRequest(f"{name} must not be blank.")
        given[name] = value
    if not given:
        raise errors.InvalidRequest(
            "At least one filter is required: user_id, agent_id, app_id, run_id, metadata or filters."
        )
    for name in ("metadata", "filters"):
        if name in given:
            given[name] = object_of(name, given[name])
    parts = [{name: value} for name, value in given.items() if name != "filters"]
    if "filters" in given:
        parts.append(given["filters"])
    limits = {"max_depth": settings.max_filter_depth, "max_conditions": settings.max_filter_conditions}
    nodes = tuple(filters.parse(part, **limits) for part in parts)
    if given == dict.fromkeys(OWNER_FIELDS, "*"):
        return Or(nodes), given  # the one request that widens: all four stars together mean the whole project
    return (And(nodes) if len(nodes) > 1 else nodes[0]), given


def object_of(name: str, text: str) -> dict[str, Any]:
    """Read a parameter that is an object: JSON, or the way Python prints one, which its client sends.

    Raises: InvalidRequest.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise errors.InvalidRequest(f"{name} must be a JSON object.") from error
    if not isinstance(value, dict) or not value or not all(isinstance(key, str) for key in value):
        raise errors.InvalidRequest(f"{name} must be a JSON object with at least one key.")
    return value
