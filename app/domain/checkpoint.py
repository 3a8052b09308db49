"""The facts of one attempt as JSON, so that the next attempt need not ask the model again. Pure.

A model asked twice answers in other words; other words have another hash, and the same fact would be remembered twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.model import Fact, Source


def to_json(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Return the facts, in order, as `from_json` reads them back."""
    return [
        {
            "text": fact.text,
            "role": fact.role,
            "actor": fact.actor,
            "sources": [[source.message_index, source.start, source.end] for source in fact.sources],
            "linked": [str(memory_id) for memory_id in fact.linked_ids],
            "from": fact.happened_from and fact.happened_from.isoformat(),
            "to": fact.happened_to and fact.happened_to.isoformat(),
        }
        for fact in facts
    ]


def from_json(stored: Sequence[Mapping[str, Any]]) -> list[Fact]:
    """Return the facts of `to_json`."""
    return [
        Fact(
            text=item["text"],
            role=item["role"],
            actor=item["actor"],
            sources=tuple(Source(*source) for source in item["sources"]),
            linked_ids=tuple(UUID(memory_id) for memory_id in item["linked"]),
            happened_from=_instant(item["from"]),
            happened_to=_instant(item["to"]),
        )
        for item in stored
    ]


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
