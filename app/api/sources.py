"""Where a memory comes from."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app.api import docs
from app.api.auth import Caller, RuntimeDep
from app.api.memories import MemoryId
from app.api.wire import Reply, Shape, router
from app.domain import sources
from app.store.sources import SourceSpan

routes = router(Shape.ERROR, tag="memories")


class SourceOut(BaseModel):
    """A part of a message that a memory was made from."""

    message_id: UUID = Field(description="Identifies the message.")
    event_id: UUID = Field(description="The add that brought it.")
    index: int = Field(description="Position in the messages of that add, from 0.")
    role: str = Field(description="Who spoke: user or assistant.")
    name: str | None = Field(description="The speaker's name, when the add gave one.")
    said_at: datetime = Field(description="When it was said, UTC.")
    start: int = Field(description="First character of the part, from 0.")
    end: int = Field(description="Character after its last one.")
    length: int = Field(description="Characters of the whole message.")
    text: str = Field(description="That part of the message.")


class MemorySources(BaseModel):
    """How a memory came to be."""

    memory_id: UUID = Field(description="The memory.")
    event_id: UUID | None = Field(description="The request that added it.")
    origin: Literal["message", "extracted", "record", "imported", "unknown"] = Field(
        description="`message`: a copy of one. `extracted`: a fact found in some. `record`: of an agent's run. "
        "`imported`: brought from elsewhere."
    )
    edited_at: datetime | None = Field(description="When its text was changed first by a request; null: it never was.")
    first_memory: str | None = Field(description="The text before that change, which the sources belong to.")
    note: str | None = Field(description="Why there are no sources, or what changed since; null: nothing to know.")
    hidden: int = Field(description="Sources that were said under owners whom the key does not reach.")
    sources: list[SourceOut] = Field(description="In the order of saying.")


@routes.get(
    "/v1/memories/{memory_id}/sources/",
    response_model=MemorySources,
    responses=docs.statuses(400, 404, shape=Shape.ERROR),
)
async def get_sources(memory_id: MemoryId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return the parts of messages that a memory was made from; without any, why there are none."""
    found = await sources.of(rt, caller, memory_id)
    return Reply(
        {
            "memory_id": found.memory.id,
            "event_id": found.memory.event_id,
            "origin": found.origin,
            "edited_at": found.reworded_at,
            "first_memory": found.first_text,
            "note": found.note,
            "hidden": found.hidden,
            "sources": [shown(span) for span in found.spans],
        }
    )


def shown(span: SourceSpan) -> dict[str, Any]:
    """Return a source as answers show it."""
    return {
        "message_id": span.message_id,
        "event_id": span.event_id,
        "index": span.position,
        "role": span.role,
        "name": span.name,
        "said_at": span.said_at,
        "start": span.start,
        "end": span.end,
        "length": span.length,
        "text": span.text,
    }
