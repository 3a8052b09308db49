"""Single values of a request: read what clients really send, refuse the rest in a sentence."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any
from urllib.parse import unquote, unquote_to_bytes
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from app import errors
from app.domain import parts as media
from app.domain import procedure
from app.model import Part

OWNER_CHARS = 255
MAX_PARTS = 1000  #: of one message's content
ROLES = {"user": "user", "assistant": "assistant", "agent": "assistant", "system": "system"}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].+)?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Seconds: beyond the year 5138, and so surely milliseconds. Before the year 1: no calendar has it.
_SECONDS = (-62_135_596_800, 100_000_000_000)


def owner(value: object) -> str | None:
    """Return an owner's id, trimmed; numbers become their text."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a string.")
    text = str(value).strip()
    if not text:
        raise ValueError("must not be blank.")
    if len(text) > OWNER_CHARS:
        raise ValueError(f"is longer than {OWNER_CHARS} characters.")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("holds a control character.")
    return text


def new_owner(value: object) -> str | None:
    """Return the id of an owner that memories are added to."""
    text = owner(value)
    if text == "*":
        raise ValueError('must name one owner; "*" means any of them in filters.')
    return text


def day(value: object) -> date | None:
    """Return a calendar date, written as YYYY-MM-DD."""
    if value is None:
        return None
    if isinstance(value, str) and _DAY.fullmatch(value.strip()):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            pass
    raise ValueError("must be a calendar date, YYYY-MM-DD.")


def instant(value: object) -> datetime | None:
    """Return the instant that Unix seconds, a date or an ISO 8601 date and time name; without a zone it is UTC."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value >= _SECONDS[1]:
            raise ValueError("must be Unix seconds; this looks like milliseconds.")
        if value < _SECONDS[0]:
            raise ValueError("is before the year 1.")
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, str) and _ISO.fullmatch(value.strip()):
        try:
            parsed = datetime.fromisoformat(value.strip())
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError("must be Unix seconds or an ISO 8601 date and time.")


def local_instant(value: object) -> datetime | None:
    """Return an ISO 8601 date and time; without a zone it stays naive, to be read in the request's time zone."""
    if value is None:
        return None
    if isinstance(value, str) and _ISO.fullmatch(value.strip()):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise ValueError("must be an ISO 8601 date and time.")


def zone(value: object) -> str | None:
    """Return the IANA name of a time zone that exists."""
    if value is None:
        return None
    if isinstance(value, str) and value and len(value) < 100:
        try:
            return ZoneInfo(value.strip()).key
        except (KeyError, ValueError, OSError):  # unknown, not a name, or the name of a folder
            pass
    raise ValueError("must be the name of a time zone, such as Europe/Berlin.")


def flag(value: object) -> bool:
    """Return a boolean; the words of query strings are taken too."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false", "1", "0"):
        return value.strip().lower() in ("true", "1")
    raise ValueError("must be true or false.")


def whole(value: object) -> object:
    """Refuse the booleans that count as numbers in Python."""
    if isinstance(value, bool):
        raise ValueError("must be a number.")
    return value


def mapping(value: object) -> object:
    """Refuse what is no object, in the words that clients of the hosted platform know."""
    if not isinstance(value, dict):
        raise ValueError(f'Expected a dictionary of items but got type "{type(value).__name__}".')
    return value


def names(value: object) -> object:
    """Take one name for a list of one."""
    return [value] if isinstance(value, str) else value


def words(value: object) -> str | None:
    """Return a text or a list of texts as one text; blank is as good as absent."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "\n".join(part for part in value if part.strip())
    if not isinstance(value, str):
        raise ValueError("must be a string.")
    return value.strip() or None


def categories(value: object) -> list[dict[str, str]]:
    """Return categories: a list of objects that map a name to its description."""
    if not isinstance(value, list) or not all(isinstance(item, dict) and item for item in value):
        raise ValueError('must be a list of objects such as {"travel": "Trips and plans for trips"}.')
    for item in value:
        for name, description in item.items():
            if not name.strip() or not isinstance(description, str):
                raise ValueError("needs a name and a description, both text, for each category.")
    return value


# Messages


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says, and which of its parts cannot be read."""

    text: str
    parts: tuple[Part, ...] = ()  # all of it, when it holds images or documents
    unread: tuple[str, ...] = ()  # types of parts that nobody knows


def content(value: object) -> Content:
    """Return the content of a message: a text, a part, or a list of parts whose texts are joined by lines."""
    if value is None:  # turns that only call a tool
        return Content("")
    if isinstance(value, str):
        return Content(value)
    parts = value if isinstance(value, list) else [value]
    if len(parts) > MAX_PARTS:
        raise ValueError(f"has more than {MAX_PARTS} parts.")
    found: list[Part] = []
    unread: list[str] = []
    for part in parts:
        if isinstance(part, str):
            found.append(Part("text", part))
        elif not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise ValueError("must be a string, a part with a type, or a list of parts.")
        elif part["type"] in ("text", "input_text", "output_text"):
            if not isinstance(part.get("text"), str):
                raise ValueError("has a text part without text.")
            found.append(Part("text", part["text"]))
        elif part["type"] in media.KINDS:
            found.append(media.from_wire(part))
        else:
            unread.append(part["type"][:40])
    texts = [part.value for part in found if part.kind == "text"]
    return Content("\n".join(texts), tuple(found) if len(texts) < len(found) else (), tuple(unread))


def memory_type(value: object) -> str:
    """Return the only kind of memory that has to be asked for."""
    if value != procedure.KIND:
        raise ValueError(f"must be {procedure.KIND}, or absent.")
    return procedure.KIND


def messages(value: object) -> object:
    """Take a text or one message for a list of one."""
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list):
        raise ValueError("must be a list of messages.")
    if not value:
        raise ValueError("must not be empty.")
    return [{"role": "user", "content": item} if isinstance(item, str) else item for item in value]


def role(value: object) -> str:
    """Return who speaks: user, assistant or system."""
    known = ROLES.get(value.strip().lower()) if isinstance(value, str) else None
    if known is None:
        raise ValueError("must be user, assistant, agent or system.")
    return known


def speaker(value: object) -> str | None:
    """Return the speaker's name, or None when it is blank."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("must be a string.")
    if len(value.strip()) > OWNER_CHARS:
        raise ValueError(f"is longer than {OWNER_CHARS} characters.")
    return value.strip() or None


# Path parameters


def segment(raw: str) -> str:
    """Decode a path segment, once.

    Raises: InvalidRequest when it is not UTF-8.
    """
    try:
        return unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidRequest("The path is not valid UTF-8.") from error


def uuid(raw: str) -> UUID | None:
    """Return the UUID that a path segment is, in its usual form of 36 characters, or None."""
    text = unquote(raw, errors="replace")
    return UUID(text) if _UUID.fullmatch(text) else None


def number(name: str, *given: object, default: int, most: int) -> int:
    """Return the first of `given` that is not None, a whole number from 1 to `most`.

    Raises: InvalidRequest.
    """
    value = next((candidate for candidate in given if candidate is not None), default)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise errors.InvalidRequest(f"{name} must be a whole number, 1 or more.")
    if value > most:
        raise errors.InvalidRequest(f"{name} must be <= {most}")
    return value


_TIME_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "number"}, {"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}
)

Owner = Annotated[
    str, BeforeValidator(new_owner), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": OWNER_CHARS})
]
Day = Annotated[date, PlainValidator(day), WithJsonSchema({"type": "string", "format": "date"})]
Instant = Annotated[datetime, PlainValidator(instant), _TIME_SCHEMA]
LocalInstant = Annotated[
    datetime, PlainValidator(local_instant), WithJsonSchema({"type": "string", "format": "date-time"})
]
Zone = Annotated[str, PlainValidator(zone), WithJsonSchema({"type": "string"})]
Flag = Annotated[bool, BeforeValidator(flag)]
Confidence = Annotated[float, Field(ge=0, le=1), BeforeValidator(whole)]
MIN_CONFIDENCE: Any = Field(0.0, description="No hits when `answerable` is below this; 0 never.")
Mapping = Annotated[dict[str, Any], BeforeValidator(mapping)]
Names = Annotated[list[str], BeforeValidator(names)]
Words = Annotated[str | None, BeforeValidator(words), WithJsonSchema({"type": "string"})]
Categories = Annotated[list[dict[str, str]], PlainValidator(categories), WithJsonSchema(
    {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}
)]  # fmt: skip
