"""What a project may decide for itself: reads each setting strictly, keeps the rest."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any

import orjson

from app import errors
from app.config import Settings
from app.domain import limits
from app.model import Project, ProjectSettings

NAME_CHARS = 255
MAX_TOP_K = 1000
MAX_LIMIT = 10**12
LIMITS = ("adds_per_minute", "searches_per_minute", "max_memories")  #: an owner's key sets these, or the operator
CATEGORIES_BYTES = 64 * 1024  #: of all custom categories, as JSON; they go into every classification
RAW_ROLES = ("user", "assistant")  #: system messages are never stored

#: Stored and shown, without an effect: the hosted platform has them, and programs read back what they wrote.
WITHOUT_EFFECT = (
    "usecase", "usecase_setting", "retrieval_criteria", "memory_depth", "inclusion_prompt", "exclusion_prompt",
    "update_custom_instructions", "summary_custom_instructions", "summary_batch_size", "summary_max_tokens",
    "enable_graph", "version", "active_prompt_profile",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Changed:
    """What a project becomes."""

    name: str
    description: str | None
    settings: ProjectSettings


def changed(limits_of: Settings, project: Project, changes: Mapping[str, Any]) -> Changed:
    """Return `project` with `changes`, by the names of the wire; None takes a setting back to its default.

    Raises: InvalidRequest, which names the field.
    """
    values = {name: read(limits_of, name, value) for name, value in changes.items()}
    name = values.pop("name", project.name)
    description = values.pop("description", project.description)
    extra = {**project.settings.extra, **{key: values.pop(key) for key in list(values) if key not in _OWN}}
    extra = {key: value for key, value in extra.items() if value is not None}
    if len(orjson.dumps(extra)) > limits_of.max_metadata_bytes:
        raise errors.InvalidRequest(
            f"The settings without effect have more than {limits_of.max_metadata_bytes} bytes "
            "(MEMORYD_MAX_METADATA_BYTES)."
        )
    return Changed(name, description, replace(project.settings, **values, extra=extra))


def read(limits_of: Settings, name: str, value: object) -> Any:
    """Return the value of one setting as it is kept. Raises: InvalidRequest, which names the field."""
    reader = READERS.get(name)
    if reader is None:
        raise errors.InvalidRequest(f"There is no setting {name}.", field=name)
    if value is None and name in NULLABLE:
        return None
    try:
        kept = reader(value)
    except ValueError as error:
        raise errors.InvalidRequest(f"{name} {error}", field=name) from error
    if isinstance(kept, str):
        limits.check_text(limits_of, name, kept)
    return kept


# One value each


def named(value: object) -> str:
    """Return a name, trimmed: 1 to `NAME_CHARS` characters, none of them a control character. Raises: ValueError."""
    text = value.strip() if isinstance(value, str) else ""
    if not 1 <= len(text) <= NAME_CHARS or any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError(f"must be a text of 1 to {NAME_CHARS} characters.")
    return text


def _text(value: object) -> str | None:
    """Return a text as it is, or the lines of a list of texts; blank is none."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "\n".join(value)
    if not isinstance(value, str):
        raise ValueError("must be a text.")
    return value if value.strip() else None


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("must be true or false.")


def _day(value: object) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("must be a calendar date, YYYY-MM-DD.") from None


def _categories(value: object) -> list[Any]:
    """Return custom categories exactly as given: bare names, or objects from names to descriptions."""
    refusal = 'must be a list of names, or of objects such as {"travel": "Trips and plans for trips"}.'
    if not isinstance(value, list):
        raise ValueError(refusal)
    for item in value:
        described = item if isinstance(item, dict) else {item: None} if isinstance(item, str) else {}
        if not described or not all(
            name.strip() and (text is None or isinstance(text, str)) for name, text in described.items()
        ):
            raise ValueError(refusal)
    size = len(orjson.dumps(value))
    if size > CATEGORIES_BYTES:
        raise ValueError(f"has {size} bytes as JSON; at most {CATEGORIES_BYTES} are taken.")
    return value


def _compatibility(value: object) -> str:
    if value in ("architecture", "hosted"):
        return str(value)
    raise ValueError("must be architecture or hosted.")


def _roles(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and value and all(role in RAW_ROLES for role in value):
        return tuple(dict.fromkeys(value))
    raise ValueError(f"must be a list of roles: {', '.join(RAW_ROLES)}.")


def _limit(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LIMIT:
        return value
    raise ValueError(f"must be a whole number from 1 to {MAX_LIMIT}, or null for no limit.")


def _top_k(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TOP_K:
        return value
    raise ValueError(f"must be a whole number from 1 to {MAX_TOP_K}.")


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    raise ValueError("must be a whole number, 0 or more.")


def _anything(value: object) -> object:
    return value


READERS: dict[str, Callable[[object], Any]] = {
    "name": named,
    "description": _text,
    "custom_instructions": _text,
    "agent_custom_instructions": _text,
    "custom_categories": _categories,
    "multilingual": _flag,
    "decay": _flag,
    "expiration_date": _day,
    "compatibility": _compatibility,
    "implicit_null_scoping": _flag,
    "raw_roles": _roles,
    "default_top_k": _top_k,
    "split_by_attribution": _flag,
    **dict.fromkeys(LIMITS, _limit),
    "memory_depth": _text,
    "usecase": _anything,
    "usecase_setting": _anything,
    "retrieval_criteria": _anything,
    "inclusion_prompt": _text,
    "exclusion_prompt": _text,
    "update_custom_instructions": _text,
    "summary_custom_instructions": _text,
    "summary_batch_size": _count,
    "summary_max_tokens": _count,
    "enable_graph": _flag,
    "version": named,
    "active_prompt_profile": _anything,
}

_TEXTS = frozenset(name for name, reader in READERS.items() if reader in (named, _text, _day, _compatibility))


def from_text(name: str, text: str) -> Any:
    """Return what a person who typed `text` means for a setting: JSON, unless the setting is itself a text."""
    if text == "null":
        return None
    if name in _TEXTS:
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


#: What null takes back to its default; for the others null is as good as absent.
NULLABLE = frozenset(READERS) - {"name", "compatibility", "multilingual", "decay", "split_by_attribution"}
_OWN = frozenset(field.name for field in fields(ProjectSettings))
