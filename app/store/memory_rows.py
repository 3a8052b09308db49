"""The rows of the table memories: read as Memory, inserted and edited. What finds a memory is in memory_index."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from app.model import OWNER_FIELDS, Memory, NewMemory, Owners, State
from app.store.db import Conn

#: What `read` needs of `memories m`.
COLUMNS = """m.project_id, m.id, m.scope_id, m.user_id, m.agent_id, m.app_id, m.run_id, m.text, m.hash, m.role, m.actor,
       m.metadata, m.categories, m.immutable, m.expiration_date, m.state, m.replaced_by, m.synthesized, m.event_id,
       m.position, m.happened_from, m.happened_to, m.created_at, m.updated_at"""


def read(row: Any) -> Memory:
    """Return the memory of a row that has `COLUMNS`."""
    values = {name: row[name] for name in _PLAIN}
    return Memory(
        **values,
        owners=Owners(*(row[name] for name in OWNER_FIELDS)),
        categories=None if row["categories"] is None else tuple(row["categories"]),
        state=State(row["state"]),
    )


_PLAIN = [name for name in Memory.__dataclass_fields__ if name not in ("owners", "categories", "state")]


_INSERT = f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS at)     -- one instant for all of them
INSERT INTO memories AS m (
    project_id, id, scope_id, user_id, agent_id, app_id, run_id, text, hash, role, actor, metadata, categories, immutable,
    expiration_date, event_id, position, happened_from, happened_to, lexemes, term_count, created_at, updated_at, state,
    replaced_by, synthesized)
SELECT $1, r.id, r.scope_id, r.user_id, r.agent_id, r.app_id, r.run_id, r.text, r.hash, r.role, r.actor, r.metadata,
       r.categories, r.immutable, r.expiration_date, r.event_id, r.position, r.happened_from, r.happened_to, r.lexemes,
       r.term_count, coalesce(r.created_at, clock.at), coalesce(r.updated_at, clock.at), r.state, r.replaced_by,
       r.synthesized
FROM clock, jsonb_to_recordset($2::jsonb) AS r (
    n integer, id uuid, scope_id bigint, user_id text, agent_id text, app_id text, run_id text, text text, hash text,
    role text, actor text, metadata jsonb, categories text[], immutable boolean, expiration_date date, event_id uuid,
    position integer, happened_from timestamptz, happened_to timestamptz, lexemes text[], term_count integer,
    created_at timestamptz, updated_at timestamptz, state text, replaced_by uuid, synthesized boolean)
ORDER BY r.scope_id, r.hash, r.n                                -- one order for everybody: no deadlock on the unique key
ON CONFLICT DO NOTHING                                          -- the scope has the text, or the project has the id
RETURNING {COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def insert(
    conn: Conn, project_id: int, memories: Iterable[NewMemory], lexemes: dict[UUID, dict[str, int]]
) -> list[Memory]:
    """Insert the rows of memories whose text their scope does not have yet; return those, in no order.

    Of equal texts in one scope the first wins. `lexemes`: the terms of each memory, as memory_index.fitting gives them.
    """
    rows = [
        {name: getattr(memory, name) for name in _GIVEN}
        | {name: getattr(memory.owners, name) for name in OWNER_FIELDS}
        | {"n": n, "lexemes": list(lexemes[memory.id]), "term_count": sum(lexemes[memory.id].values())}
        for n, memory in enumerate(memories)
    ]
    return [read(row) for row in await conn.fetch(_INSERT, project_id, rows)]


_GIVEN = (
    "id", "scope_id", "text", "hash", "role", "actor", "metadata", "categories", "immutable", "expiration_date",
    "event_id", "position", "happened_from", "happened_to", "created_at", "updated_at", "state", "replaced_by",
    "synthesized",
)  # fmt: skip


_WRITE = f"""
UPDATE memories m
SET text = $3, hash = $4, metadata = CASE WHEN $5 THEN $6 ELSE m.metadata END, categories = $7, expiration_date = $8,
    created_at = $9, lexemes = coalesce($10, m.lexemes), term_count = coalesce($11, m.term_count),
    updated_at = clock_timestamp()
WHERE m.project_id = $1 AND m.id = $2
RETURNING {COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def write(
    conn: Conn, project_id: int, memory: Memory, *, with_metadata: bool, lexemes: dict[str, int] | None
) -> Memory:
    """Write what may change of a memory that this transaction has locked; return it as it is now.

    `with_metadata`: False leaves the metadata as they are stored, which may be finer than Python's numbers.
    `lexemes`: its new terms; None keeps the old ones.
    """
    row = await conn.fetchrow(
        _WRITE,
        project_id,
        memory.id,
        memory.text,
        memory.hash,
        with_metadata,
        memory.metadata,
        memory.categories,
        memory.expiration_date,
        memory.created_at,
        None if lexemes is None else list(lexemes),
        None if lexemes is None else sum(lexemes.values()),
    )
    return read(row)


_SCOPES_OF = "SELECT DISTINCT scope_id FROM memories WHERE project_id = $1 AND id = ANY($2::uuid[])"


async def scopes_of(conn: Conn, project_id: int, ids: Collection[UUID]) -> list[int]:
    """Return the scopes that those of these memories that exist are in."""
    return [row["scope_id"] for row in await conn.fetch(_SCOPES_OF, project_id, list(ids))]


_DELETE = """
DELETE FROM memories WHERE project_id = $1 AND id = ANY($2::uuid[])     -- takes vectors, links and sources along
RETURNING id, scope_id, term_count
"""


async def delete(conn: Conn, project_id: int, ids: Collection[UUID]) -> tuple[list[UUID], dict[int, tuple[int, int]]]:
    """Delete rows; return the ids of those that existed, and by scope how its counters change."""
    deleted = []
    deltas: dict[int, tuple[int, int]] = {}
    for row in await conn.fetch(_DELETE, project_id, list(ids)):
        deleted.append(row["id"])
        count, terms = deltas.get(row["scope_id"], (0, 0))
        deltas[row["scope_id"]] = (count - 1, terms - row["term_count"])
    return deleted, deltas
