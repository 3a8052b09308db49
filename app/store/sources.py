"""What memories were made from: parts of stored messages, and whether a text is still the one that came of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.model import OWNER_FIELDS, Message, Owners
from app.store.db import Conn


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A part of a message that a memory was made from."""

    message_id: UUID
    event_id: UUID  # the add that brought the message
    position: int  # of the message in that add, from 0
    role: str
    name: str | None  # the speaker, when the application says so
    said_at: datetime
    start: int  # characters of the message, from 0
    end: int  # exclusive
    text: str  # that part
    length: int  # of the whole message, in characters
    owners: Owners  # of the scope that the message was said in, which may be another one than the memory's


_OF = """
SELECT s.memory_id, s.message_id, g.event_id, g.position, g.role, g.name, g.said_at, s.span_start, s.span_end,
       substr(g.content, s.span_start + 1, least(s.span_end - s.span_start, $3)) AS text, length(g.content) AS length,
       c.user_id, c.agent_id, c.app_id, c.run_id
FROM memory_sources s                                           -- its primary key
JOIN messages g ON g.project_id = $1 AND g.id = s.message_id
JOIN scopes c ON c.project_id = $1 AND c.id = g.scope_id
WHERE s.project_id = $1 AND s.memory_id = ANY($2::uuid[])
ORDER BY s.memory_id, g.id, s.span_start
"""


async def of(
    conn: Conn, project_id: int, memory_ids: Collection[UUID], *, shown: int | None = None
) -> dict[UUID, list[SourceSpan]]:
    """Return the sources of each memory that has any, in the order of saying. `shown`: characters of each; None: all."""
    found: dict[UUID, list[SourceSpan]] = {}
    for row in await conn.fetch(_OF, project_id, list(memory_ids), shown):
        found.setdefault(row["memory_id"], []).append(_span(row))
    return found


def _span(row: Any) -> SourceSpan:
    return SourceSpan(
        **{name: row[name] for name in ("message_id", "event_id", "position", "role", "name", "said_at", "text")},
        start=row["span_start"],
        end=row["span_end"],
        length=row["length"],
        owners=Owners(*(row[name] for name in OWNER_FIELDS)),
    )


_REWORDED = """
SELECT min(updated_at) AS first_at, (array_agg(old_text ORDER BY id))[1] AS text
FROM history                                                    -- index history_memory
WHERE project_id = $1 AND memory_id = $2 AND event = 'UPDATE' AND old_text IS DISTINCT FROM new_text
"""


async def reworded(conn: Conn, project_id: int, memory_id: UUID) -> tuple[datetime, str] | None:
    """Return when the text of a memory was changed first, and what it was before; None: it is as it was added."""
    row = await conn.fetchrow(_REWORDED, project_id, memory_id)
    return None if row["first_at"] is None else (row["first_at"], row["text"])


_ADDED_BY = """
SELECT e.kind, e.payload ->> 'infer' AS infer, e.payload ->> 'memory_type' AS memory_type
FROM events e
WHERE e.project_id = $1 AND e.id = $2
"""


async def added_by(conn: Conn, project_id: int, event_id: UUID) -> tuple[str, bool, str | None] | None:
    """Return what kind of event it was, whether its messages were read for facts, and the memory type it asked for."""
    row = await conn.fetchrow(_ADDED_BY, project_id, event_id)
    return None if row is None else (row["kind"], row["infer"] != "false", row["memory_type"])


_AROUND = """
SELECT g.id AS of, n.id, n.position, n.role, n.name, left(n.content, $3) AS content, n.said_at
FROM messages g
JOIN messages n ON n.project_id = $1 AND n.event_id = g.event_id AND n.scope_id = g.scope_id    -- index messages_event
               AND n.position BETWEEN g.position - 1 AND g.position + 1 AND n.id <> g.id
WHERE g.project_id = $1 AND g.id = ANY($2::uuid[])
ORDER BY g.id, n.id
"""
_AROUND_CHARS = 2000  # of a neighbour


async def around(conn: Conn, project_id: int, message_ids: Collection[UUID]) -> dict[UUID, list[Message]]:
    """Return what was said just before and after each of these messages, in the same add and scope; their beginnings."""
    found: dict[UUID, list[Message]] = {}
    for row in await conn.fetch(_AROUND, project_id, list(message_ids), _AROUND_CHARS):
        said = Message(row["role"], row["content"], row["name"], row["position"], id=row["id"], said_at=row["said_at"])
        found.setdefault(row["of"], []).append(said)
    return found
