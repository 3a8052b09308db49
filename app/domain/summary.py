"""What memories say, in short: by the model, or the ones that say most when there is none."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.domain import fill_words as words
from app.domain import shaping
from app.model import FilterNode, Memory, Project
from app.runtime import Runtime
from app.store import memories as memory_store

LINES = 15  #: memories in a summary without a model
NEWEST = 5  #: of them, the newest, whatever they say
LINE_CHARS = 400  #: of each
LOOKED_AT = 500  #: newest memories among which those that say most are looked for
_ALIKE = 0.6  #: share of its words that a memory has in common with one that is chosen, to be left out

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary"],
    "properties": {"summary": {"type": "string"}},
}
_ORDERS = (
    "Fill `summary` with a summary of the memories in plain sentences, at most 250 words: who and what they are about, what "
    "holds now, what has changed and what is planned. Write it in the language that most of the memories are in."
)


async def make(
    rt: Runtime, project: Project, node: FilterNode, *, instructions: str | None = None
) -> list[dict[str, Any]]:
    """Return one entry with the `summary` of the memories that match, and how many they are; none when nothing matches.

    Raises: ModelUnavailable, ModelRefused, ShapeUnfilled.
    """
    if rt.llm is not None:
        orders = _ORDERS if instructions is None else f"{_ORDERS}\n{instructions}"
        made = await shaping.make(rt, project, _SCHEMA, node, instructions=orders)
        return [{"summary": made.value["summary"], "memories": made.memories + made.left_out}] if made.memories else []
    async with rt.db.acquire(project.id) as conn:
        total, newest = await memory_store.list_page(conn, project.id, node, limit=LOOKED_AT, offset=0)
    if not newest:
        return []
    return [{"summary": await asyncio.to_thread(digest, newest), "memories": total}]


def digest(newest: Sequence[Memory]) -> str:
    """Return the memories that say most, oldest first, a line each; `newest`: newest first. Pure and deterministic.

    The newest few are always there. The others are those whose words many memories share, without repeating each other.
    """
    known = [words.keys(memory.text) for memory in newest]
    counts = Counter(key for keys in known for key in keys)
    worth = {
        at: sum(math.log(counts[key]) for key in keys) / (3 + len(keys)) for at, keys in enumerate(known)
    }  # a long memory shares words with many, so its length counts against it
    chosen: list[int] = []
    for at in [*range(min(NEWEST, len(newest))), *sorted(worth, key=lambda at: (-worth[at], at))]:
        if len(chosen) >= LINES:
            break
        if at not in chosen and not any(_alike(known[at], known[other]) for other in chosen):
            chosen.append(at)
    return "\n".join(_line(newest[at]) for at in sorted(chosen, reverse=True))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and len(one & other) >= _ALIKE * len(one)


def _line(memory: Memory) -> str:
    text = " ".join(memory.text.split())
    return text if len(text) <= LINE_CHARS else f"{text[:LINE_CHARS]}…"
