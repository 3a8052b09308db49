"""Approximate indexes of vectors: wished for by searches, built and dropped by workers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import asyncpg

from app.store.db import Conn

WHOLE = 0  #: stands for all scopes of a project where the id of a scope stands else

#: Of the session that builds: a graph of 200,000 halfvec of 384 dimensions takes 224 MB, and one that does not fit is built
#: many times slower. No parallel workers: they would need as much shared memory, of which containers have 64 MB.
_BUILD_MEMORY = "512MB"


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An index that was wished for."""

    project_id: int
    scope_id: int  # WHOLE: all of the project
    model: str
    name: str


# Searches


_LARGE = """
WITH large AS (
    SELECT id FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[]) AND memory_count > $4
    UNION ALL
    SELECT 0 WHERE $5
)
SELECT l.id AS scope_id, v.built_at IS NOT NULL AS built, v.project_id IS NOT NULL AS wanted, s.memory_count AS size
FROM large l
LEFT JOIN vector_indexes v ON v.project_id = $1 AND v.scope_id = l.id AND v.model = $3
LEFT JOIN scopes s ON s.project_id = $1 AND s.id = l.id
"""


@dataclass(frozen=True, slots=True)
class Large:
    """A scope of more rows than are compared, or the whole project."""

    scope_id: int
    built: bool  # its index can be used
    wanted: bool  # somebody has wished for one
    size: int | None  # memories; None: the whole project


async def large(
    conn: Conn, project_id: int, scope_ids: Collection[int], *, model: str, above: int, whole: bool
) -> list[Large]:
    """Return those of the scopes that have more than `above` memories; with `whole`, the project as well."""
    rows = await conn.fetch(_LARGE, project_id, list(scope_ids), model, above, whole)
    return [Large(row["scope_id"], row["built"], row["wanted"], row["size"]) for row in rows]


_WANT = """
INSERT INTO vector_indexes (project_id, scope_id, model) SELECT $1, id, $3 FROM unnest($2::bigint[]) AS u (id)
ON CONFLICT DO NOTHING
"""


async def want(conn: Conn, project_id: int, scope_ids: Collection[int], *, model: str) -> None:
    """Wish for indexes. Safe to repeat."""
    await conn.execute(_WANT, project_id, sorted(scope_ids), model)


# Workers


_CLAIM = """
UPDATE vector_indexes v SET lease_until = clock_timestamp() + make_interval(secs => $1), refused = NULL
FROM (
    SELECT project_id, scope_id, model FROM vector_indexes
    WHERE built_at IS NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())
    ORDER BY wanted_at LIMIT 1
    FOR UPDATE SKIP LOCKED
) due
WHERE v.project_id = due.project_id AND v.scope_id = due.scope_id AND v.model = due.model
RETURNING v.project_id, v.scope_id, v.model, v.name
"""


async def claim(conn: Conn, *, lease_s: float) -> VectorIndex | None:
    """Take the index that was wished for first, to build it; None: there is none to build."""
    row = await conn.fetchrow(_CLAIM, lease_s)
    return None if row is None else VectorIndex(**row)


_RENEW = """
UPDATE vector_indexes SET lease_until = clock_timestamp() + make_interval(secs => $4), refused = $5
WHERE project_id = $1 AND scope_id = $2 AND model = $3 AND built_at IS NULL
"""


async def renew(conn: Conn, index: VectorIndex, *, lease_s: float, refused: str | None = None) -> None:
    """Keep others from building it for so long; `refused`: why it cannot be built now."""
    await conn.execute(_RENEW, index.project_id, index.scope_id, index.model, lease_s, refused)


# m: pgvector's default. ef_construction: its default is 64; a graph built with more care finds more, and nobody waits for it.
_BUILD = """
SELECT format('CREATE INDEX CONCURRENTLY %I ON memory_vectors USING hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) '
              'WITH (m = 16, ef_construction = 128) WHERE project_id = %s AND model = %L',
              $1::text, dims, $2::bigint, model)
       || CASE WHEN $3::bigint = 0 THEN '' ELSE format(' AND scope_id = %s', $3::bigint) END
FROM embedding_models WHERE model = $4
"""
_DROP = "SELECT format('DROP INDEX CONCURRENTLY IF EXISTS %I', $1::text)"
_MEMORY = """
SELECT set_config('maintenance_work_mem', $1, false), set_config('max_parallel_maintenance_workers', '0', false)
"""


async def build(conn: Conn, index: VectorIndex) -> str | None:
    """Build it, which takes minutes; return why the database does not allow it, or None. Whatever is left of an earlier try goes.

    `conn`: of its own, with no transaction open and no limit of time, acting as the owner of the tables.
    """
    await conn.execute(_MEMORY, _BUILD_MEMORY)
    statement = await conn.fetchval(_BUILD, index.name, index.project_id, index.scope_id, index.model)
    try:
        await drop(conn, index.name)
        await conn.execute(statement)
    except (asyncpg.InsufficientPrivilegeError, asyncpg.ProgramLimitExceededError) as error:  # too many dimensions
        return str(error)
    return None


async def drop(conn: Conn, name: str) -> None:
    """Drop an index, if it is there. `conn`: as for `build`."""
    await conn.execute(await conn.fetchval(_DROP, name))


_BUILT = """
UPDATE vector_indexes SET built_at = clock_timestamp(), lease_until = NULL
WHERE project_id = $1 AND scope_id = $2 AND model = $3
"""


async def built(conn: Conn, index: VectorIndex) -> None:
    """Let searches use it from now on."""
    await conn.execute(_BUILT, index.project_id, index.scope_id, index.model)


_RETIRE = """
WITH sizes AS (
    SELECT v.project_id, v.scope_id, v.model, coalesce(sum(s.memory_count), 0) AS size
    FROM vector_indexes v
    LEFT JOIN scopes s ON s.project_id = v.project_id AND v.scope_id IN (s.id, 0)
    GROUP BY v.project_id, v.scope_id, v.model
)
DELETE FROM vector_indexes v USING sizes z
WHERE v.project_id = z.project_id AND v.scope_id = z.scope_id AND v.model = z.model
  AND z.size < $1 AND (v.lease_until IS NULL OR v.lease_until < clock_timestamp())
"""
_STRAYS = r"""
SELECT c.relname::text AS name FROM pg_class c
WHERE c.relkind = 'i' AND c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'memory\_vectors\_near\_%'
  AND NOT EXISTS (SELECT FROM vector_indexes v WHERE v.name = c.relname)
ORDER BY c.relname
"""


async def retire(conn: Conn, *, below: int) -> list[str]:
    """Forget the indexes of what has shrunk below so many memories; return the names of all that are to be dropped."""
    await conn.execute(_RETIRE, below)
    return [row["name"] for row in await conn.fetch(_STRAYS)]


_REFUSED = "SELECT refused FROM vector_indexes WHERE refused IS NOT NULL ORDER BY wanted_at LIMIT 1"


async def refusal(conn: Conn) -> str | None:
    """Return why an index could not be built, or None: none was refused."""
    reason: str | None = await conn.fetchval(_REFUSED)
    return reason
