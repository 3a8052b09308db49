"""Pure: single values of a filter, checked. Every refusal names the key that the value was written under."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from datetime import UTC, date, datetime
from uuid import UUID

from app.errors import InvalidRequest

MAX_OWNER_CHARACTERS = 255
MAX_LIST_VALUES = 1000  #: of one `in`; as many as a batch request may name
MAX_VALUE_DEPTH = 64  #: nesting of one metadata value; nothing deeper can be stored
_MAX_INTEGER_BITS = 1024  # the largest double has as many; beyond 4300 digits Python refuses to write an integer at all
_MAX_SHOWN = 80  # characters of a key that a refusal repeats

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}\S*", re.ASCII)


def shown(key: object) -> str:
    """Quote a caller's key for a message: bounded in length, and printable whatever it holds."""
    key = str(key)
    cut = key if len(key) <= _MAX_SHOWN else key[:_MAX_SHOWN] + "…"
    return json.dumps(cut.encode("utf-8", "backslashreplace").decode(), ensure_ascii=False)


def refusal(name: str, why: str) -> InvalidRequest:
    """Build the error of one key: `name` as the caller wrote it, `why` continues the sentence."""
    return InvalidRequest(f"{shown(name)} {why}")


def text(name: str, value: object) -> str:
    """Return a string that may be empty. Raises InvalidRequest for another type, U+0000 and lone surrogates."""
    if not isinstance(value, str):
        raise refusal(name, f"must be a string, not {_kind(value)}.")
    if "\0" in value:
        raise refusal(name, "must not contain U+0000.")
    if not _encodes(value):
        raise refusal(name, "contains half of a surrogate pair, which is not text.")
    return value


def words(name: str, value: object) -> str:
    """Return a string to look for; an empty one would be found everywhere and is refused."""
    value = text(name, value)
    if not value:
        raise refusal(name, "must not be empty.")
    return value


def owner(name: str, value: object) -> str:
    """Return an owner id, trimmed, 1 to 255 characters, without control characters (line breaks and tabs included)."""
    value = text(name, value).strip()
    if not value:
        raise refusal(name, "must not be empty or blank.")
    if len(value) > MAX_OWNER_CHARACTERS:
        raise refusal(name, f"must not be longer than {MAX_OWNER_CHARACTERS} characters.")
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise refusal(name, "must not contain control characters.")
    return value


def moment(name: str, value: object) -> date | datetime:
    """Return a date for `YYYY-MM-DD`, else an instant in UTC.

    Reads ISO 8601 date-times (without a zone: UTC) and numbers (seconds since 1970-01-01T00:00:00Z).
    """
    try:
        match value:
            case bool():
                pass
            case int() | float():
                return datetime.fromtimestamp(value, UTC)
            case datetime():
                return _utc(value)
            case date():
                return value
            case str() if _DAY.fullmatch(value.strip()):
                return date.fromisoformat(value.strip())
            case str() if _INSTANT.fullmatch(value.strip()):
                return _utc(datetime.fromisoformat(value.strip().upper()))
    except (ValueError, OverflowError, OSError):
        pass  # no day of the calendar, or outside the years 1 to 9999: refused below
    raise refusal(name, "must be a date YYYY-MM-DD, an ISO 8601 date-time or a number of seconds since 1970.")


def day(name: str, value: object) -> date:
    """Return a date; of a date-time, its day in UTC."""
    value = moment(name, value)
    return value.date() if isinstance(value, datetime) else value


def memory_id(name: str, value: object) -> UUID:
    """Return the id of a memory."""
    try:
        return UUID(text(name, value))
    except ValueError:
        raise refusal(name, "must hold ids of memories (UUIDs).") from None


def flag(name: str, value: object) -> bool:
    """Return true or false; nothing else is taken for either."""
    if not isinstance(value, bool):
        raise refusal(name, f"must be true or false, not {_kind(value)}.")
    return value


def json_value(name: str, value: object) -> object:
    """Return any JSON value that a database can hold; checked without recursion."""
    pending: list[tuple[object, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if depth > MAX_VALUE_DEPTH:
            raise refusal(name, f"is nested deeper than {MAX_VALUE_DEPTH} levels.")
        match item:
            case str():
                text(name, item)
            case float() if not math.isfinite(item):
                raise refusal(name, "must not be NaN or infinite.")
            case int() if item.bit_length() > _MAX_INTEGER_BITS:
                raise refusal(name, "must not hold a number of more than 300 digits.")
            case None | bool() | int() | float():
                pass
            case list():
                pending.extend((part, depth + 1) for part in item)
            case dict():
                for key, part in item.items():
                    text(name, key)
                    pending.append((part, depth + 1))
            case _:
                raise refusal(name, f"must be a JSON value, not {_kind(item)}.")
    return value


def scalar(name: str, value: object) -> str | int | float | bool:
    """Return a string that is not empty, a number, true or false."""
    json_value(name, value)
    if isinstance(value, str):
        return words(name, value)
    if isinstance(value, bool | int | float):
        return value
    raise refusal(name, f"must be a string, a number, true or false, not {_kind(value)}.")


def values(name: str, value: object) -> list[object]:
    """Return a list of 1 to 1000 values, themselves unchecked."""
    if not isinstance(value, list | tuple):
        raise refusal(name, f"must be a list, not {_kind(value)}.")
    if not value:
        raise refusal(name, "must not be an empty list.")
    if len(value) > MAX_LIST_VALUES:
        raise refusal(name, f"must not list more than {MAX_LIST_VALUES} values.")
    return list(value)


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
    return type(value).__name__
