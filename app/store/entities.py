"""Named things, and which memories mention them. An entity that no memory mentions any more is deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from app.model import Entity
from app.store import event_rows
from app.store.db import Conn

_MAX_NORM_BYTES = 1_000  # an entry of a B-tree has 2,704 bytes at most

_INSERT = """
INSERT INTO entities (project_id, scope_id, name, norm, kind)
SELECT $1, e.scope_id, e.name, e.norm, e.kind
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) AS e (scope_id, name, norm, kind)
WHERE NOT EXISTS (SELECT FROM entities k WHERE k.project_id = $1 AND k.scope_id = e.scope_id AND k.norm = e.norm)
ORDER BY e.scope_id, e.norm COLLATE "C"
ON CONFLICT (project_id, scope_id, norm) DO NOTHING
"""

_LINK = """
INSERT INTO memory_entities (project_id, entity_id, memory_id)
SELECT $1, e.id, l.memory_id
FROM unnest($2::bigint[], $3::text[], $4::uuid[]) AS l (scope_id, norm, memory_id)
JOIN entities e ON e.project_id = $1 AND e.scope_id = l.scope_id AND e.norm = l.norm    -- its unique key
ON CONFLICT DO NOTHING
"""


async def link(conn: Conn, project_id: int, mentions: Iterable[tuple[int, UUID, Collection[Entity]]]) -> None:
    """Link memories to what they mention: (scope id, memory id, entities); new entities are inserted.

    The first way of writing a name stays. Names whose folded form has over 1,000 bytes are left out.
    """
    links = [
        (scope_id, entity.name, entity.norm, entity.kind, memory_id)
        for scope_id, memory_id, found in mentions
        for entity in found
        if len(entity.norm.encode()) <= _MAX_NORM_BYTES
    ]
    if not links:
        return
    scopes, names, norms, kinds, memories = map(list, zip(*links, strict=True))
    await conn.execute(_INSERT, project_id, scopes, names, norms, kinds)
    await conn.execute(_LINK, project_id, scopes, norms, memories)


_LINKED = """
SELECT DISTINCT entity_id FROM memory_entities
WHERE project_id = $1 AND memory_id = ANY($2::uuid[])           -- index memory_entities_memory
"""


async def linked_to(conn: Conn, project_id: int, memory_ids: Collection[UUID]) -> list[int]:
    """Return the ids of the entities that these memories mention."""
    return [row["entity_id"] for row in await conn.fetch(_LINKED, project_id, list(memory_ids))]


_UNLINK = "DELETE FROM memory_entities WHERE project_id = $1 AND memory_id = ANY($2::uuid[])"  # memory_entities_memory


async def unlink(conn: Conn, project_id: int, memory_ids: Collection[UUID]) -> None:
    """Forget what memories mention."""
    await conn.execute(_UNLINK, project_id, list(memory_ids))


_DELETE_UNMENTIONED = """
DELETE FROM entities e
WHERE e.project_id = $1 AND e.id = ANY($2::bigint[])
  AND NOT EXISTS (SELECT FROM memory_entities l WHERE l.project_id = $1 AND l.entity_id = e.id)
"""


async def delete_unmentioned(conn: Conn, project_id: int, ids: Collection[int]) -> int:
    """Delete those of these entities that no memory mentions; the caller holds their scopes. Return how many."""
    return event_rows.count(await conn.execute(_DELETE_UNMENTIONED, project_id, list(ids))) if ids else 0
