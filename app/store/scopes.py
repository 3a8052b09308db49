"""Scopes: the combinations of owners that memories belong to, and the owners themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from app import errors
from app.model import OWNER_FIELDS, FilterNode, Owners, Scope
from app.store import filters
from app.store.db import Conn

_ENSURE = """
WITH named AS (
    SELECT kind, name FROM unnest($7::text[], $8::text[]) AS n (kind, name)
    WHERE NOT EXISTS (SELECT FROM owners o WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name)
), new_owners AS (
    INSERT INTO owners (project_id, kind, name) SELECT $1, kind, name FROM named ORDER BY kind, name
    ON CONFLICT DO NOTHING
), found AS (                                                   -- the unique key (project_id, owners_hash)
    SELECT id FROM scopes
    WHERE project_id = $1 AND owners_hash = $6
      AND user_id IS NOT DISTINCT FROM $2 AND agent_id IS NOT DISTINCT FROM $3
      AND app_id IS NOT DISTINCT FROM $4 AND run_id IS NOT DISTINCT FROM $5
    FOR KEY SHARE                                               -- an erase deletes scopes: before this, or after the commit
), made AS (
    INSERT INTO scopes (project_id, user_id, agent_id, app_id, run_id)
    SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM found)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT id FROM found UNION ALL SELECT id FROM made
"""


async def ensure(conn: Conn, project_id: int, owners: Owners) -> Scope:
    """Return the scope of these owners; make it, and the owners' own rows, where they are missing. Safe to race."""
    named = owners.named()
    kinds = [name.removesuffix("_id") for name in named]
    values = [getattr(owners, name) for name in OWNER_FIELDS]
    # Two rounds: the first may lose a race, and only a new statement sees what the winner committed.
    for _ in range(2):
        scope_id = await conn.fetchval(_ENSURE, project_id, *values, hash_of(owners), kinds, list(named.values()))
        if scope_id is not None:
            return Scope(project_id, scope_id, owners)
    raise errors.DatabaseUnavailable("The scope could not be made; try again.")


_GET = "SELECT project_id, id, user_id, agent_id, app_id, run_id FROM scopes WHERE project_id = $1 AND id = $2"


async def get(conn: Conn, project_id: int, scope_id: int) -> Scope:
    """Return the scope. Raises: NotFound."""
    row = await conn.fetchrow(_GET, project_id, scope_id)
    if row is None:
        raise errors.NotFound("Scope not found.")
    return _scope(row)


async def matching(conn: Conn, project_id: int, node: FilterNode | None) -> list[int]:
    """Return the ids of the scopes that can hold memories matching `node`, in order; None: all of the project.

    More than need be when the tree asks about anything but owners, never fewer.
    Indexes scopes_user, scopes_agent, scopes_app, scopes_run.
    """
    condition = filters.Compiled("TRUE", []) if node is None else filters.compile_scopes(node, first=2)
    sql = f"SELECT s.id FROM scopes s WHERE s.project_id = $1 AND ({condition.sql}) ORDER BY s.id"  # noqa: S608
    return [row["id"] for row in await conn.fetch(sql, project_id, *condition.args)]


_LOCK = """
SELECT id FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])
ORDER BY id                         -- one order for everybody: no deadlock
FOR NO KEY UPDATE                   -- an add that is being accepted refers to the scope and must not wait
"""


async def lock(conn: Conn, project_id: int, scope_ids: Iterable[int]) -> None:
    """Hold these scopes until the end of the transaction: whoever changes memories of a scope holds it.

    Raises: NotFound when one is not a scope of this project.
    """
    wanted = set(scope_ids)
    found = {row["id"] for row in await conn.fetch(_LOCK, project_id, list(wanted))}
    if found != wanted:
        raise errors.NotFound("Scope not found.")


_COUNT = """
UPDATE scopes s SET memory_count = s.memory_count + d.memories, term_total = s.term_total + d.terms
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS d (scope_id, memories, terms)
WHERE s.project_id = $1 AND s.id = d.scope_id
"""


async def count(conn: Conn, project_id: int, deltas: dict[int, tuple[int, int]]) -> None:
    """Add to the counters of locked scopes: memories, and terms of their documents, by scope id."""
    memories = [delta[0] for delta in deltas.values()]
    terms = [delta[1] for delta in deltas.values()]
    await conn.execute(_COUNT, project_id, list(deltas), memories, terms)


_TOTAL = "SELECT coalesce(sum(memory_count), 0)::bigint FROM scopes WHERE project_id = $1"


async def total(conn: Conn, project_id: int) -> int:
    """Return how many memories the project keeps, by the counters of its scopes."""
    found: int = await conn.fetchval(_TOTAL, project_id)
    return found


def hash_of(owners: Owners) -> str:
    """Return what the column owners_hash is generated from: the owners, each with its letter and length."""
    letters = zip("uapr", (getattr(owners, name) for name in OWNER_FIELDS), strict=True)
    text = "".join(f"{letter}{len(value)}:{value}" for letter, value in letters if value is not None)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _scope(row: Any) -> Scope:
    return Scope(row["project_id"], row["id"], Owners(*(row[name] for name in OWNER_FIELDS)))
