"""Changes of memories: one row for every ADD, UPDATE and DELETE, kept after the memory is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.model import OWNER_FIELDS, Change, Memory, Owners
from app.store.db import Conn

_INSERT = """
INSERT INTO history (project_id, id, memory_id, scope_id, event, old_text, new_text, user_id, agent_id, app_id, run_id,
                     metadata, categories, input, event_id, created_at, updated_at)
SELECT $1, c.id, m.id, m.scope_id, c.event, c.old_text, m.text, m.user_id, m.agent_id, m.app_id, m.run_id,
       m.metadata, m.categories, c.input, c.event_id, m.created_at, m.updated_at
FROM jsonb_to_recordset($2::jsonb) AS c (id uuid, memory_id uuid, event text, old_text text, input jsonb, event_id uuid)
JOIN memories m ON m.project_id = $1 AND m.id = c.memory_id
"""


async def record_added(
    conn: Conn, project_id: int, memories: Iterable[Memory], inputs: dict[UUID, Sequence[dict[str, Any]]]
) -> None:
    """Note that these memories were added. `inputs`: by memory id, the messages that each was made from."""
    rows = [
        {"id": uuid7(), "memory_id": m.id, "event": "ADD", "input": inputs[m.id], "event_id": m.event_id}
        for m in memories
    ]
    await conn.execute(_INSERT, project_id, rows)


async def record_updated(
    conn: Conn, project_id: int, changed: Iterable[tuple[Memory, Sequence[dict[str, Any]], UUID | None]]
) -> None:
    """Note that memories were changed to what their rows hold now: (as it was, messages that changed it, event id)."""
    rows = [
        {
            "id": uuid7(),
            "memory_id": old.id,
            "event": "UPDATE",
            "old_text": old.text,
            "input": said,
            "event_id": event_id,
        }
        for old, said, event_id in changed
    ]
    if rows:
        await conn.execute(_INSERT, project_id, rows)


_INSERT_DELETED = """
INSERT INTO history (project_id, id, memory_id, scope_id, event, old_text, user_id, agent_id, app_id, run_id,
                     metadata, categories, event_id, created_at, updated_at)
SELECT $1, d.id, m.id, m.scope_id, 'DELETE', m.text, m.user_id, m.agent_id, m.app_id, m.run_id,
       m.metadata, m.categories, $4, m.created_at, clock_timestamp()
FROM unnest($2::uuid[], $3::uuid[]) AS d (id, memory_id)
JOIN memories m ON m.project_id = $1 AND m.id = d.memory_id
"""


async def record_deleted(
    conn: Conn, project_id: int, memory_ids: Collection[UUID], event_id: UUID | None = None
) -> None:
    """Note that those of these memories that exist are being deleted by this request; call it before they are."""
    await conn.execute(_INSERT_DELETED, project_id, [uuid7() for _ in memory_ids], list(memory_ids), event_id)


_LIST = """
SELECT id, memory_id, event, old_text, new_text, user_id, agent_id, app_id, run_id, metadata, categories, input,
       created_at, updated_at
FROM history
WHERE project_id = $1 AND memory_id = $2
ORDER BY id                                                     -- index history_memory
"""


async def list_for(conn: Conn, project_id: int, memory_id: UUID) -> list[Change]:
    """Return the memory's changes, oldest first; none when it never existed."""
    return [_change(row) for row in await conn.fetch(_LIST, project_id, memory_id)]


_COUNT = "SELECT count(*) FROM history WHERE project_id = $1"

_NEWEST = """
SELECT id, memory_id, event, old_text, new_text, user_id, agent_id, app_id, run_id, metadata, categories, input,
       created_at, updated_at
FROM history
WHERE project_id = $1
ORDER BY id DESC                                                -- primary key
LIMIT $2 OFFSET $3
"""


async def list_page(conn: Conn, project_id: int, *, limit: int, offset: int) -> tuple[int, list[Change]]:
    """Return how many changes the project has seen, and a page of them, newest first."""
    total: int = await conn.fetchval(_COUNT, project_id)
    return total, [_change(row) for row in await conn.fetch(_NEWEST, project_id, limit, offset)]


_ORIGINS = """
SELECT memory_id, (array_agg(input ORDER BY id))[1] AS input,
       bool_or(event = 'UPDATE') AS updated
FROM history
WHERE project_id = $1 AND memory_id = ANY($2::uuid[])          -- index history_memory
GROUP BY memory_id
"""


async def origins(
    conn: Conn, project_id: int, memory_ids: Collection[UUID]
) -> dict[UUID, tuple[list[dict[str, Any]], bool]]:
    """Return of each memory the messages that it was made from, and whether it was changed since."""
    rows = await conn.fetch(_ORIGINS, project_id, list(memory_ids))
    return {row["memory_id"]: (row["input"], row["updated"]) for row in rows}


def _change(row: Any) -> Change:
    return Change(
        id=row["id"],
        memory_id=row["memory_id"],
        event=row["event"],
        old_text=row["old_text"],
        new_text=row["new_text"],
        owners=Owners(*(row[name] for name in OWNER_FIELDS)),
        categories=None if row["categories"] is None else tuple(row["categories"]),
        metadata=row["metadata"],
        input=row["input"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
