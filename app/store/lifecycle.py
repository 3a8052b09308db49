"""What becomes of memories after they are stored: categories, the newer ones that replace them, and when they were found.

None of it changes a text, so none of it is a row of a memory's history or moves its `updated_at`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from app.model import Memory, State, Vector
from app.store import memories, memory_rows, scopes
from app.store.db import Conn

KEPT_ACCESSES = 20  #: newest accesses that are kept of a memory, as on the hosted platform; the table's CHECK knows it

# Categories

_UNCATEGORIZED = """
SELECT m.id FROM memories m WHERE m.project_id = $1 AND m.id = ANY($2::uuid[]) AND m.categories IS NULL
"""


async def uncategorized(conn: Conn, project_id: int, ids: Sequence[UUID], *, limit: int) -> list[Memory]:
    """Return those of these memories that have no categories yet, at most `limit`, in the order of `ids`."""
    open_ = {row["id"] for row in await conn.fetch(_UNCATEGORIZED, project_id, list(ids))}
    chosen = [memory_id for memory_id in ids if memory_id in open_][:limit]
    found = await memories.get_many(conn, project_id, chosen)
    return [found[memory_id] for memory_id in chosen if memory_id in found]


_CATEGORIZE = """
UPDATE memories m SET categories = ARRAY(SELECT jsonb_array_elements_text(c.categories))
FROM jsonb_to_recordset($2::jsonb) AS c (id uuid, hash text, categories jsonb)
WHERE m.project_id = $1 AND m.id = c.id AND m.hash = c.hash AND m.categories IS NULL
RETURNING m.id
"""


async def categorize(conn: Conn, project_id: int, found: Sequence[tuple[Memory, Sequence[str]]]) -> list[Memory]:
    """Give memories their categories, in the caller's transaction; return those that got them, as they are now.

    One whose text was changed since it was read is left alone: its change is followed by a classification of its own.
    """
    ids = [memory.id for memory, _ in found]
    await scopes.lock(conn, project_id, await memory_rows.scopes_of(conn, project_id, ids))
    rows = [{"id": memory.id, "hash": memory.hash, "categories": list(names)} for memory, names in found]
    changed = {row["id"] for row in await conn.fetch(_CATEGORIZE, project_id, rows)}
    return [replace(memory, categories=tuple(names)) for memory, names in found if memory.id in changed]


_VECTORS = """
SELECT v.memory_id, v.embedding FROM memory_vectors v           -- index memory_vectors_memory
WHERE v.project_id = $1 AND v.memory_id = ANY($2::uuid[]) AND v.model = $3
"""


async def vectors(conn: Conn, project_id: int, ids: Collection[UUID], *, model: str) -> dict[UUID, Vector]:
    """Return the stored vectors of `model`, float32[dims], of those of these memories that have one."""
    rows = await conn.fetch(_VECTORS, project_id, list(ids), model)
    return {row["memory_id"]: row["embedding"].to_numpy().astype("float32") for row in rows}


# Replacement

_SUPERSEDE = """
WITH pairs AS (
    SELECT DISTINCT ON (old.id) old.id, new.id AS by            -- of several that replace it, the newest
    FROM unnest($2::uuid[], $3::uuid[]) AS p (one, other)
    JOIN memories a ON a.project_id = $1 AND a.id = p.one
    JOIN memories b ON b.project_id = $1 AND b.id = p.other AND b.scope_id = a.scope_id AND b.id <> a.id
    -- Whichever was said later stands, whichever was stored later.
    CROSS JOIN LATERAL (SELECT * FROM (VALUES (a.id, a.created_at), (b.id, b.created_at)) v (id, at)
                        ORDER BY at, id LIMIT 1) old
    CROSS JOIN LATERAL (SELECT * FROM (VALUES (a.id, a.created_at), (b.id, b.created_at)) v (id, at)
                        ORDER BY at DESC, id DESC LIMIT 1) new
    ORDER BY old.id, new.at DESC, new.id DESC
)
UPDATE memories m SET state = 'superseded', replaced_by = pairs.by
FROM pairs
WHERE m.project_id = $1 AND m.id = pairs.id AND m.state = 'active' AND NOT m.immutable
RETURNING m.id
"""


async def supersede(conn: Conn, project_id: int, pairs: Collection[tuple[UUID, UUID]]) -> list[UUID]:
    """Mark the older memory of each pair as replaced by the newer one; return the ids of those that were marked.

    Which one is older, `created_at` says, then the id. Passed over: pairs of different scopes, memories that are gone,
    immutable or replaced already. The caller's transaction holds their scopes.
    """
    if not pairs:
        return []
    rows = await conn.fetch(_SUPERSEDE, project_id, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return [row["id"] for row in rows]


_RESTATE = """
WITH pairs AS (
    SELECT DISTINCT a.id AS again, b.id AS other
    FROM unnest($2::uuid[], $3::uuid[]) AS p (one, other)
    JOIN memories a ON a.project_id = $1 AND a.id = p.one AND a.state = 'superseded'
    JOIN memories b ON b.project_id = $1 AND b.id = p.other AND b.scope_id = a.scope_id
                   AND b.state = 'active' AND NOT b.immutable AND b.created_at <= $4
)
UPDATE memories m
SET state = CASE WHEN m.id = pairs.again THEN 'active' ELSE 'superseded' END,
    replaced_by = CASE WHEN m.id = pairs.again THEN NULL ELSE pairs.again END
FROM pairs
WHERE m.project_id = $1 AND m.id IN (pairs.again, pairs.other)
RETURNING m.id, m.state
"""


async def restate(conn: Conn, project_id: int, pairs: Collection[tuple[UUID, UUID]], said_at: datetime) -> list[UUID]:
    """Make the first of each pair active again, which was replaced and is now said once more, and mark the other one.

    Return the ids of those that were marked. Passed over: pairs whose other memory is newer than `said_at`, immutable,
    of another scope, or replaced already. The caller's transaction holds their scopes.
    """
    if not pairs:
        return []
    rows = await conn.fetch(_RESTATE, project_id, [pair[0] for pair in pairs], [pair[1] for pair in pairs], said_at)
    return [row["id"] for row in rows if row["state"] == State.SUPERSEDED]


_MERGE = """
UPDATE memories m SET state = 'merged', replaced_by = pairs.other
FROM unnest($2::uuid[], $3::uuid[]) AS pairs (id, other)
JOIN memories f ON f.project_id = $1 AND f.id = pairs.other AND f.state = 'active'
WHERE m.project_id = $1 AND m.id = pairs.id AND m.scope_id = f.scope_id AND m.state = 'active' AND NOT m.immutable
RETURNING m.id
"""


async def merge(conn: Conn, project_id: int, pairs: Collection[tuple[UUID, UUID]]) -> list[UUID]:
    """Mark the first memory of each pair as merged into the second; return the ids of those that were marked.

    Passed over: pairs of different scopes, memories that are gone or immutable, and pairs of which one is not active.
    No memory may be in two pairs. The caller's transaction holds their scopes.
    """
    if not pairs:
        return []
    rows = await conn.fetch(_MERGE, project_id, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return [row["id"] for row in rows]


_ACTIVE = """
SELECT m.id, m.text FROM memories m
WHERE m.project_id = $1 AND m.scope_id = $2 AND m.state = 'active' AND length(m.text) <= $5
  AND m.id IN (SELECT t.memory_id FROM terms t                  -- primary key of terms, index-only
               WHERE t.project_id = $1 AND t.scope_id = $2 AND t.term = ANY($3::text[]))
ORDER BY m.created_at DESC, m.id DESC
LIMIT $4
"""
_SHORT = 400  # characters; a longer text states more than one thing


async def active(
    conn: Conn, project_id: int, scope_id: int, terms: Sequence[str], *, limit: int
) -> list[tuple[UUID, str]]:
    """Return short active memories of a scope that hold any of these index terms, id and text, newest first."""
    rows = await conn.fetch(_ACTIVE, project_id, scope_id, list(terms), limit, _SHORT)
    return [(row["id"], row["text"]) for row in rows]


_OF_HASHES = """
SELECT m.id, m.scope_id, m.hash
FROM unnest($2::bigint[], $3::text[]) AS wanted (scope_id, hash)
JOIN memories m ON m.project_id = $1 AND m.scope_id = wanted.scope_id AND m.hash = wanted.hash     -- its unique key
"""


async def of_hashes(conn: Conn, project_id: int, pairs: Collection[tuple[int, str]]) -> dict[tuple[int, str], UUID]:
    """Return the memories that have these (scope id, MD5 of a text)."""
    rows = await conn.fetch(_OF_HASHES, project_id, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return {(row["scope_id"], row["hash"]): row["id"] for row in rows}


# Accesses and standing


@dataclass(frozen=True, slots=True)
class Standing:
    """What a search knows of a memory's life beside its text."""

    state: State
    replaced_by: UUID | None
    replaced_at: datetime | None  # created_at of the memory that replaced it, while that exists
    happened_from: datetime | None
    updated_at: datetime
    accessed_at: tuple[datetime, ...]  # newest first; none: no search found it while its project's decay was on


_STANDING = """
SELECT m.id, m.state, m.replaced_by, newer.created_at AS replaced_at, m.happened_from, m.updated_at, a.accessed_at
FROM memories m
LEFT JOIN memories newer ON newer.project_id = $1 AND newer.id = m.replaced_by
LEFT JOIN memory_access a ON a.project_id = $1 AND a.memory_id = m.id
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
"""


async def standing(conn: Conn, project_id: int, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    """Return the standing of those of these memories that exist."""
    return {
        row["id"]: Standing(
            state=State(row["state"]),
            replaced_by=row["replaced_by"],
            replaced_at=row["replaced_at"],
            happened_from=row["happened_from"],
            updated_at=row["updated_at"],
            accessed_at=tuple(row["accessed_at"] or ()),
        )
        for row in await conn.fetch(_STANDING, project_id, list(ids))
    }


_ACCESSED = """
WITH found AS MATERIALIZED (
    SELECT m.id FROM memories m
    WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
    FOR KEY SHARE SKIP LOCKED                                   -- one that is just being deleted needs no history
)
INSERT INTO memory_access AS a (project_id, memory_id, accessed_at)
SELECT $1, f.id, ARRAY[$3::timestamptz] FROM found f
ORDER BY f.id                                                   -- one order for everybody: no deadlock
ON CONFLICT (project_id, memory_id) DO UPDATE SET accessed_at = (excluded.accessed_at || a.accessed_at)[1:$4::integer]
"""


async def accessed(conn: Conn, project_id: int, ids: Collection[UUID], at: datetime) -> None:
    """Note that these memories were found at this time; the newest `KEPT_ACCESSES` of each are kept."""
    await conn.execute(_ACCESSED, project_id, list(ids), at, KEPT_ACCESSES)
