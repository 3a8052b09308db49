"""Feedback on memories: at most one for each, gone when its memory is."""

from __future__ import annotations

from uuid import UUID

from app.store.db import Conn

# The memory's row is locked against deletion for the moment; without it the statement does nothing.
_SET = """
INSERT INTO feedback AS f (project_id, memory_id, feedback, reason)
SELECT m.project_id, m.id, $3, $4
FROM (SELECT project_id, id FROM memories WHERE project_id = $1 AND id = $2 FOR KEY SHARE) m
ON CONFLICT (project_id, memory_id) DO UPDATE
SET feedback = excluded.feedback, reason = excluded.reason, updated_at = clock_timestamp()
RETURNING true
"""


async def put(conn: Conn, project_id: int, memory_id: UUID, *, feedback: str | None, reason: str | None) -> bool:
    """Replace the feedback on a memory; False: there is no such memory. One of the two is not None."""
    return await conn.fetchval(_SET, project_id, memory_id, feedback, reason) is not None


_CLEAR = """
WITH cleared AS (DELETE FROM feedback WHERE project_id = $1 AND memory_id = $2)
SELECT EXISTS (SELECT FROM memories WHERE project_id = $1 AND id = $2)
"""


async def clear(conn: Conn, project_id: int, memory_id: UUID) -> bool:
    """Remove the feedback on a memory, if it has any; False: there is no such memory."""
    known: bool = await conn.fetchval(_CLEAR, project_id, memory_id)
    return known


_GET = "SELECT feedback, reason FROM feedback WHERE project_id = $1 AND memory_id = $2"


async def find(conn: Conn, project_id: int, memory_id: UUID) -> tuple[str | None, str | None] | None:
    """Return the feedback on a memory and its reason; None: it has none."""
    row = await conn.fetchrow(_GET, project_id, memory_id)
    return None if row is None else (row["feedback"], row["reason"])
