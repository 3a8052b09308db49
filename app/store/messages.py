"""Messages: the contextual window of later adds, and the sources of memories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.model import Message
from app.store.db import Conn

_INSERT = """
INSERT INTO messages (project_id, id, scope_id, event_id, position, role, name, content, said_at)
SELECT $1, m.id, $2, $3, m.position, m.role, m.name, m.content, coalesce(m.said_at, clock_timestamp())
FROM unnest($4::uuid[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::timestamptz[])
     AS m (id, position, role, name, content, said_at)
ON CONFLICT DO NOTHING
RETURNING id, said_at
"""


async def insert_many(
    conn: Conn, project_id: int, scope_id: int, event_id: UUID, messages: Sequence[Message]
) -> list[Message]:
    """Store the messages of one add, in the order they were said; return them with ids and times.

    A message without an id gets one, without a time the database's clock. Messages whose id is stored already are left
    as they are and not returned.
    """
    named = [message if message.id else replace(message, id=uuid7()) for message in messages]
    columns = (
        [message.id for message in named],
        [message.index for message in named],
        [message.role for message in named],
        [message.name for message in named],
        [message.content for message in named],
        [message.said_at for message in named],
    )
    rows = await conn.fetch(_INSERT, project_id, scope_id, event_id, *columns)
    said_at = {row["id"]: row["said_at"] for row in rows}
    return [replace(message, said_at=said_at[message.id]) for message in named if message.id in said_at]


_NEWEST = """
SELECT id, position, role, name, content, said_at
FROM messages
WHERE project_id = $1 AND scope_id = $2
ORDER BY id DESC                                                -- index messages_newest
LIMIT $3
"""


async def newest(conn: Conn, project_id: int, scope_id: int, limit: int) -> list[Message]:
    """Return the last `limit` messages of the scope, oldest first."""
    rows = await conn.fetch(_NEWEST, project_id, scope_id, limit)
    return [_message(row) for row in reversed(rows)]


_DELETE = """
DELETE FROM messages WHERE project_id = $1 AND scope_id = ANY($2::bigint[])     -- index messages_newest
"""


async def delete_of(conn: Conn, project_id: int, scope_ids: Collection[int]) -> None:
    """Forget what was said in these scopes; later adds begin without an earlier conversation."""
    await conn.execute(_DELETE, project_id, list(scope_ids))


def _message(row: Any) -> Message:
    return Message(
        role=row["role"],
        content=row["content"],
        name=row["name"],
        index=row["position"],
        id=row["id"],
        said_at=row["said_at"],
    )
