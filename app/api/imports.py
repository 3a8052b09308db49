"""Imports: memories of another service, as they are."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson
from pydantic import BaseModel, Field

from app import errors
from app.api import docs, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.config import Settings
from app.domain import limits, move
from app.domain.filter_fields import CAMEL
from app.model import OWNER_FIELDS, Owners, State

routes = router(Shape.ERROR, tag="exports")

_TEXTS = ("memory", "text", "content", "data")  # where services put the text; the first that is there counts
_NAMES = {"session_id": "run_id", **CAMEL}


class ImportRequest(schemas.Body):
    """Memories to take in."""

    cleaned = frozenset({"memories"})

    memories: Annotated[list[Any], Field(max_length=move.BATCH)] = Field(
        description=f"At most {move.BATCH} memories as `/v1/exports/raw/` or a list shows them. `memory` and an owner are "
        "needed; ids and times stay as they are, where they are given. What is refused, and why, is told for each.",
        json_schema_extra={"items": {"type": "object"}},
    )


class Taken(BaseModel):
    """What became of a memory."""

    index: int = Field(description="Position in `memories`, from 0.")
    id: UUID | None = Field(description="Its id here; null when it was refused.")
    outcome: Literal["imported", "exists", "duplicate", "conflict", "refused"] = Field(
        description="`exists`: it is here already. `duplicate`: its owners have the text under another id. `conflict`: its "
        "id belongs to another memory. `refused`: it cannot be read."
    )
    reason: str | None = Field(description="Why it was not imported.")
    digest: str | None = Field(
        description="SHA-256 of the line that `/v1/exports/raw/` has for it now; null unless it was imported or exists."
    )


class ImportOut(BaseModel):
    """What became of each memory."""

    results: list[Taken] = Field(description="In the order of the request.")
    counts: dict[str, int] = Field(description="How many of each outcome.")


@routes.post("/v1/import/", response_model=ImportOut, responses=docs.statuses(403, 502, shape=Shape.ERROR, body=True))
async def import_memories(body: ImportRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Take in memories with their ids, times, metadata, categories and states. Safe to repeat: what is here stays as it is.

    Needs an owner's key. Nothing is extracted, no webhook is called, and memories that are refused keep no other one out.
    """
    items: list[move.Item] = []
    results: list[dict[str, Any] | None] = []
    for index, raw in enumerate(body.memories):
        try:
            items.append(_item(rt.settings, raw))
            results.append(None)
        except (ValueError, errors.InvalidRequest) as error:
            results.append(_refused(index, str(error)))
    taken = iter(zip(items, await move.take(rt, caller, items), strict=True))
    shown = [result or _taken(index, *next(taken)) for index, result in enumerate(results)]
    outcomes = [one["outcome"] for one in shown]
    return Reply({"results": shown, "counts": {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}})


def _refused(index: int, reason: str) -> dict[str, Any]:
    return {"index": index, "id": None, "outcome": "refused", "reason": reason, "digest": None}


def _taken(index: int, item: move.Item, taken: move.Taken) -> dict[str, Any]:
    digest = hashlib.sha256(move.line(taken.memory)).hexdigest() if taken.memory else None
    return {"index": index, "id": item.id, "outcome": taken.outcome, "reason": taken.reason, "digest": digest}


def _item(settings: Settings, raw: object) -> move.Item:
    """Read one memory, in the words of any service that speaks this interface. Raises: ValueError, InvalidRequest."""
    if not isinstance(raw, dict):
        raise ValueError("a memory must be an object")
    given: dict[str, Any] = {_NAMES.get(key, str(key)): value for key, value in raw.items() if value is not None}
    text = next((given[name] for name in _TEXTS if name in given), None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError("memory must be a text that is not blank")
    limits.check_text(settings, "memory", text)
    owners = Owners(**{name: _value(name, read.new_owner, given.get(name)) for name in OWNER_FIELDS})
    if not owners.named():
        raise ValueError(schemas.NO_OWNER)
    metadata = given.get("metadata") or None
    if "metadata" in given:
        read.mapping(given["metadata"])
        metadata = given["metadata"]
        limits.check_metadata(settings, metadata)
    created_at = _value("created_at", read.instant, given.get("created_at"))
    return move.Item(
        id=_id(given, text, owners, created_at),
        text=text,
        owners=owners,
        metadata=metadata,
        categories=_categories(given.get("categories")),
        immutable=_value("immutable", read.flag, given.get("immutable", False)),
        expiration_date=_value("expiration_date", _day, given.get("expiration_date")),
        state=_value("lifecycle_state", State, given.get("lifecycle_state", State.ACTIVE)),
        replaced_by=_value("replaced_by", _uuid, given.get("replaced_by")),
        synthesized=_value("synthesized", read.flag, given.get("synthesized", False)),
        role=_value("role", _role, given.get("role")),
        actor=_value("actor", read.speaker, given.get("actor")),
        position=_value("position", _position, given.get("position", 0)),
        happened_from=_value("happened_from", read.instant, given.get("happened_from")),
        happened_to=_value("happened_to", read.instant, given.get("happened_to")),
        created_at=created_at,
        updated_at=_value("updated_at", read.instant, given.get("updated_at")),
    )


def _value(name: str, reader: Any, value: object) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def _id(given: dict[str, Any], text: str, owners: Owners, created_at: datetime | None) -> UUID:
    """Return the id of a memory; one that is no UUID, or absent, becomes one that the same memory has every time."""
    raw = given.get("id", given.get("memory_id"))
    known = read.uuid(raw) if isinstance(raw, str) else None
    if known is not None:
        return known
    name = orjson.dumps(
        [None if raw is None else str(raw), text, owners.named(), created_at], option=orjson.OPT_SORT_KEYS
    )
    return uuid5(NAMESPACE_URL, f"memory:{hashlib.sha256(name).hexdigest()}")


def _uuid(value: object) -> UUID | None:
    if value is None:
        return None
    known = read.uuid(value) if isinstance(value, str) else None
    if known is None:
        raise ValueError("must be a UUID.")
    return known


def _day(value: object) -> Any:
    """Read a date; of a date and time, which some services show, the day."""
    return read.day(value[:10] if isinstance(value, str) and value[10:11] in ("T", " ") else value)


def _role(value: object) -> str | None:
    return None if value is None else read.role(value)


def _position(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError("must be a whole number, 0 or more.")
    return value


def _categories(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError("categories must be a list of names")
    return tuple(names)
