"""What an attempt at an add has found, kept for the next one: nothing is fetched, looked at or asked twice. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain import extract
from app.model import Fact


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known so far."""

    texts: Mapping[int, str] | None = None  # of messages that hold more than text, by index; None: not read yet
    facts: Sequence[Fact] | None = None  # None: not extracted yet; empty: nothing is worth remembering
    refused: Mapping[str, int] = field(default_factory=dict)  # items of a model's answers that are no facts, by reason


def read(rows: Sequence[dict[str, Any]] | None) -> Kept:
    """Return what `rows` says. Without a head, all rows are facts."""
    if rows is None:
        return Kept()
    if not rows or "texts" not in rows[0]:
        return Kept(facts=extract.from_json(rows))
    first = rows[0]
    texts = {int(index): text for index, text in first["texts"].items()}
    facts = extract.from_json(rows[1:]) if first["extracted"] else None
    refused = first.get("refused") or (
        {"wrong_shape": first["dropped"]} if first.get("dropped") else {}
    )  # an older release's
    return Kept(texts or None, facts, refused)


def rows(kept: Kept) -> list[dict[str, Any]]:
    """Return what an event keeps; `read` reads it back."""
    facts = extract.to_json(kept.facts or ())
    if not kept.texts and not kept.refused:
        return facts
    texts = {str(index): text for index, text in (kept.texts or {}).items()}
    return [{"texts": texts, "extracted": kept.facts is not None, "refused": dict(kept.refused)}, *facts]
