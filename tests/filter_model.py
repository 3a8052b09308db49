"""A reference evaluator of the filter language in plain Python, written from its rules and not from the compiler.

A row is a memory as JSON has it: ids and texts as strings, instants as ISO 8601 in UTC, days as YYYY-MM-DD, null as None.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

OWNERS = ("user_id", "agent_id", "app_id", "run_id")
COLUMNS = {  # of the fields that are called otherwise
    "timestamp": "created_at",
    "memory_ids": "id",
    "keywords": "text",
    "userId": "user_id",
    "agentId": "agent_id",
    "appId": "app_id",
    "runId": "run_id",
}
Row = dict[str, Any]


def matches(filters: dict[str, Any], row: Row) -> bool:
    """Whether a memory satisfies valid filters."""
    return all(_entry(key, value, row) for key, value in filters.items())


def _entry(key: str, value: Any, row: Row) -> bool:
    if key == "AND":
        return all(matches(part, row) for part in value)
    if key == "OR":
        return any(matches(part, row) for part in value)
    if key == "NOT":
        return not all(matches(part, row) for part in (value if isinstance(value, list) else [value]))
    if key == "metadata":
        return all(_metadata(name, wanted, row) for name, wanted in value.items())
    if key.startswith("metadata."):
        return _metadata(key.removeprefix("metadata."), value, row)
    if key == "keywords_search":
        return all(_fold(word) in _fold(row["text"]) for word in value.split())
    if isinstance(value, dict):
        return all(_operator(key, operator, operand, row) for operator, operand in value.items())
    if value == "*":
        return _stored(key, row) is not None
    if key in ("categories", "memory_ids"):
        return _operator(key, "in", value if isinstance(value, list) else [value], row)
    return _operator(key, "eq", value, row)


def _operator(key: str, operator: str, operand: Any, row: Row) -> bool:
    stored = _stored(key, row)
    match operator:
        case "exists":
            return (stored is not None) == operand
        case "eq":
            return _equal(key, stored, operand)
        case "ne":
            return not _equal(key, stored, operand)
        case "in":
            return any(_equal(key, stored, member) for member in operand)
        case "nin":
            return not any(_equal(key, stored, member) for member in operand)
        case "contains" | "icontains" if key == "categories":
            return any(_fold(operand) in _fold(name) for name in stored or ())
        case "contains":
            return operand in stored
        case "icontains":
            return _fold(operand) in _fold(stored)
    if stored is None:
        return False
    start, end = _period(key, operand)
    instant = _instant(stored)
    return {"gt": instant >= end, "gte": instant >= start, "lt": instant < start, "lte": instant < end}[operator]


def _stored(key: str, row: Row) -> Any:
    return row[COLUMNS.get(key, key)]


def _equal(key: str, stored: Any, operand: Any) -> bool:
    if stored is None:
        return False
    if key == "categories":
        return operand in stored
    if key in ("created_at", "updated_at", "timestamp", "expiration_date"):
        start, end = _period(key, operand)
        return start <= _instant(stored) < end
    return stored == (operand.strip() if COLUMNS.get(key, key) in OWNERS else operand)


def _period(key: str, operand: Any) -> tuple[datetime, datetime]:
    """Return what an operand covers: a whole day, or one instant as the shortest period that there is."""
    if isinstance(operand, int | float):
        start = datetime.fromtimestamp(operand, UTC)
    elif len(operand) == 10:
        return _day(date.fromisoformat(operand))
    else:
        start = datetime.fromisoformat(operand)
        start = start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)
    if key == "expiration_date":
        return _day(start.date())
    return start, start + timedelta(microseconds=1)


def _day(day: date) -> tuple[datetime, datetime]:
    start = datetime.combine(day, time(), UTC)
    return start, datetime.max.replace(tzinfo=UTC) if day == date.max else start + timedelta(days=1)


def _instant(stored: str) -> datetime:
    read = datetime.fromisoformat(stored)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _metadata(key: str, wanted: Any, row: Row) -> bool:
    stored = (row["metadata"] or {}).get(key)
    if wanted == "*":
        return stored is not None
    if not isinstance(wanted, dict) or not {"eq", "ne", "contains", "exists"} & wanted.keys():
        wanted = {"eq": wanted}
    return all(_metadata_operator(stored, operator, operand) for operator, operand in wanted.items())


def _metadata_operator(stored: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "exists":
            return (stored is not None) == operand
        case "eq":
            return _typed(stored) == _typed(operand)
        case "ne":
            return _typed(stored) != _typed(operand)
    if isinstance(stored, list):
        return any(_typed(member) == _typed(operand) for member in stored)
    return isinstance(stored, str) and isinstance(operand, str) and operand in stored


def _typed(value: Any) -> Any:
    """Return a value that equals another's only when both are the same JSON: True is not 1, while 1.0 is."""
    match value:
        case dict():
            return "object", {key: _typed(part) for key, part in value.items()}
        case list():
            return "array", [_typed(part) for part in value]
        case bool() | None | str():
            return type(value).__name__, value
    return "number", Decimal(repr(value))


def _fold(value: str) -> str:
    """Fold case letter by letter, so that no letter becomes two."""
    return "".join(_letter(character) for character in value)


def _letter(character: str) -> str:
    folded = next((form for form in (character.casefold(), character.lower()) if len(form) == 1), character)
    return character if folded.isascii() and not character.isascii() else folded
