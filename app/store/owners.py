"""Owners: the users, agents, apps and runs that memories belong to. Adds make their rows, see `scopes.ensure`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from app.model import Owner, OwnerKind
from app.store.db import Conn

# Each branch sums the counters of the owner's scopes, by the index of its kind: scopes_user, scopes_agent, …
_MEMORIES = """coalesce(CASE o.kind
    WHEN 'user' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.user_id = o.name)
    WHEN 'agent' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.agent_id = o.name)
    WHEN 'app' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.app_id = o.name)
    ELSE (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.run_id = o.name)
END, 0)::bigint"""

_COLUMNS = (
    f"o.project_id, o.id, o.kind, o.name, o.title, o.metadata, o.created_at, o.updated_at, {_MEMORIES} AS memory_count"
)

_COUNTS = "SELECT kind, count(*) AS count FROM owners WHERE project_id = $1 GROUP BY kind"


async def counts(conn: Conn, project_id: int) -> dict[str, int]:
    """Return how many owners of each kind there are; kinds without any are left out."""
    return {row["kind"]: row["count"] for row in await conn.fetch(_COUNTS, project_id)}


_LIST = f"""
SELECT {_COLUMNS}
FROM (                                                          -- the page first, so that only its owners are counted
    SELECT * FROM owners WHERE project_id = $1
    ORDER BY id DESC                                            -- primary key
    LIMIT $2 OFFSET $3
) o
ORDER BY o.id DESC
"""  # noqa: S608 - the columns are a constant


async def list_page(conn: Conn, project_id: int, *, limit: int, offset: int) -> list[Owner]:
    """Return a page of the owners, newest first."""
    return [_owner(row) for row in await conn.fetch(_LIST, project_id, limit, offset)]


_FIND = f"SELECT {_COLUMNS} FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.name = $3"  # noqa: S608


async def find(conn: Conn, project_id: int, kind: OwnerKind, name: str) -> Owner | None:
    """Return the owner of this kind that requests call `name`."""
    row = await conn.fetchrow(_FIND, project_id, kind, name)
    return None if row is None else _owner(row)


_FIND_BY_ID = f"SELECT {_COLUMNS} FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.id = $3"  # noqa: S608


async def find_by_id(conn: Conn, project_id: int, kind: OwnerKind, owner_id: int) -> Owner | None:
    """Return the owner of this kind with this number."""
    row = await conn.fetchrow(_FIND_BY_ID, project_id, kind, owner_id)
    return None if row is None else _owner(row)


_NAMES = """
SELECT name FROM owners WHERE project_id = $1 AND kind = $2
ORDER BY name                                                   -- unique key
LIMIT $3
"""


async def names(conn: Conn, project_id: int, kind: OwnerKind, *, limit: int) -> list[str]:
    """Return the first `limit` names of the owners of one kind, in order."""
    return [row["name"] for row in await conn.fetch(_NAMES, project_id, kind, limit)]


_PUT = """
INSERT INTO owners AS o (project_id, kind, name, title, metadata) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project_id, kind, name) DO UPDATE
SET title = coalesce(excluded.title, o.title), metadata = coalesce(excluded.metadata, o.metadata),
    updated_at = clock_timestamp()
RETURNING o.project_id, o.id, o.kind, o.name, o.title, o.metadata, o.created_at, o.updated_at, 0::bigint AS memory_count
"""


async def put(
    conn: Conn, project_id: int, kind: OwnerKind, name: str, *, title: str | None, metadata: dict[str, Any] | None
) -> Owner:
    """Make an owner, or give one that exists this title and metadata; None leaves what is there.

    Its memories are not counted.
    """
    return _owner(await conn.fetchrow(_PUT, project_id, kind, name, title, metadata))


_RESTORE = """
INSERT INTO owners (project_id, kind, name)
SELECT DISTINCT s.project_id, n.kind, n.name
FROM scopes s
CROSS JOIN LATERAL (
    VALUES ('user', s.user_id), ('agent', s.agent_id), ('app', s.app_id), ('run', s.run_id)
) AS n (kind, name)
WHERE s.project_id = $1 AND s.id = ANY($2::bigint[]) AND n.name IS NOT NULL
  AND NOT EXISTS (SELECT FROM owners o WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name)
ORDER BY n.kind, n.name                                         -- one order for everybody: no deadlock
ON CONFLICT DO NOTHING
"""


async def restore(conn: Conn, project_id: int, scope_ids: Collection[int]) -> None:
    """Make the rows of these scopes' owners where they are missing; the caller holds the scopes.

    They can be: an owner was deleted after an add of the same owner was accepted, and before its memories are stored.
    """
    await conn.execute(_RESTORE, project_id, list(scope_ids))


_DELETE = "DELETE FROM owners WHERE project_id = $1 AND kind = $2 AND name = $3 RETURNING id"


async def delete(conn: Conn, project_id: int, kind: OwnerKind, name: str) -> bool:
    """Delete the row of an owner, in the transaction that deletes its memories; False: there was none."""
    return await conn.fetchval(_DELETE, project_id, kind, name) is not None


def _owner(row: Any) -> Owner:
    return Owner(**row)
