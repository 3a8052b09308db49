"""What a request may carry at most, by the settings. Pure; the doors share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from app.config import Settings
from app.errors import InvalidRequest


def check_metadata(settings: Settings, metadata: Mapping[str, Any]) -> None:
    """Refuse metadata that is too large or nests too deep.

    Raises: InvalidRequest, the text names the limit and its setting.
    """
    size = len(orjson.dumps(metadata))
    if size > settings.max_metadata_bytes:
        raise InvalidRequest(
            f"metadata has {size} bytes as JSON; at most {settings.max_metadata_bytes} are taken "
            "(MEMORYD_MAX_METADATA_BYTES)."
        )
    if depth(metadata, settings.max_metadata_depth + 1) > settings.max_metadata_depth:
        raise InvalidRequest(
            f"metadata nests deeper than {settings.max_metadata_depth} levels (MEMORYD_MAX_METADATA_DEPTH)."
        )


def check_text(settings: Settings, name: str, text: str) -> None:
    """Refuse a text that is too long; `name` is what the caller calls it.

    Raises: InvalidRequest, the text names the limit and its setting.
    """
    size = len(text.encode())
    if size > settings.max_message_bytes:
        raise InvalidRequest(
            f"{name} has {size} bytes of text; at most {settings.max_message_bytes} are taken (MEMORYD_MAX_MESSAGE_BYTES)."
        )


def depth(value: Any, limit: int) -> int:
    """Return how many objects and lists of `value` lie inside each other, counting to `limit`. Uses no recursion."""
    level = [value] if isinstance(value, Mapping | list) else []
    found = 0
    while level and found < limit:
        found += 1
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, Mapping) else parent)
            if isinstance(child, Mapping | list)
        ]
    return found
