"""Where a memory comes from: the messages that it was made of, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from app.domain import move, pins, procedure
from app.model import Caller, Memory
from app.runtime import Runtime
from app.store import memories
from app.store import sources as source_store
from app.store.sources import SourceSpan

Origin = Literal["message", "extracted", "record", "imported", "unknown"]

_NONE: dict[Origin, str] = {
    "message": "The message that it is a copy of has been deleted.",
    "extracted": "It names no message. What its add was given stands in its history.",
    "record": "It is a record of a whole run. What it was made from stands in its history.",
    "imported": "It was imported, and an import brings no messages.",
    "unknown": "The request that added it is not known any more, and its messages are not kept.",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known of how a memory came to be."""

    memory: Memory
    origin: Origin
    spans: tuple[SourceSpan, ...]  # in the order of saying
    hidden: int  # sources said under owners whom the key does not reach
    reworded_at: datetime | None  # when its text was first changed by a request; the spans are of the text before
    first_text: str | None  # that text
    note: str | None  # what a reader must know: why there is no source, or what changed since


async def of(rt: Runtime, caller: Caller, memory_id: UUID) -> Sources:
    """Return the sources of one memory, whatever its state. Raises: MemoryNotFound."""
    project_id = caller.project.id
    async with rt.db.acquire(project_id) as conn:
        memory = await memories.get(conn, project_id, memory_id)
        pins.hide(caller, memory)
        spans = (await source_store.of(conn, project_id, [memory_id])).get(memory_id, [])
        change = await source_store.reworded(conn, project_id, memory_id)
        event = await source_store.added_by(conn, project_id, memory.event_id) if memory.event_id else None
    seen = tuple(span for span in spans if pins.allows(caller.pins, span.owners))
    origin = _origin(event)
    notes = [] if seen else [_NONE[origin] if not spans else "It was said under owners whom this key does not reach."]
    if change is not None:
        notes.append("Its text was changed after it was added; the sources are those of its first text.")
    return Sources(
        memory=memory,
        origin=origin,
        spans=seen,
        hidden=len(spans) - len(seen),
        reworded_at=change[0] if change else None,
        first_text=change[1] if change else None,
        note=" ".join(notes) or None,
    )


def _origin(event: tuple[str, bool, str | None] | None) -> Origin:
    if event is None:
        return "unknown"
    kind, inferred, memory_type = event
    if kind == move.KIND:
        return "imported"
    if memory_type == procedure.KIND:
        return "record"
    return "extracted" if inferred else "message"
