"""Adds that arrive together: one statement makes what is missing of their owners and scopes, and their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from app.model import OWNER_FIELDS, Event, Owners, Status
from app.store import scopes
from app.store.db import Conn


@dataclass(frozen=True, slots=True)
class Arrival:
    """An add that is about to be accepted."""

    event_id: UUID
    payload: Mapping[str, Any]
    owners: Owners  # of its conversation, and of the order in which it is processed
    targets: tuple[Owners, ...]  # that its memories may belong to


_INSERT = """
WITH wanted AS (                                    -- the scopes of all arrivals, each once
    SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
        WITH ORDINALITY AS w (hash, user_id, agent_id, app_id, run_id, place)
), new_owners AS (
    INSERT INTO owners (project_id, kind, name)
    SELECT DISTINCT $1::bigint, n.kind, n.name
    FROM wanted w
    CROSS JOIN LATERAL (VALUES ('user', w.user_id), ('agent', w.agent_id), ('app', w.app_id), ('run', w.run_id)) n (kind, name)
    WHERE n.name IS NOT NULL
      AND NOT EXISTS (SELECT FROM owners o WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name)
    ORDER BY 2, 3                                   -- one order for everybody: no deadlock
    ON CONFLICT DO NOTHING
), found AS (                                       -- the unique key (project_id, owners_hash)
    SELECT w.place, s.id FROM wanted w
    JOIN scopes s ON s.project_id = $1 AND s.owners_hash = w.hash
      AND s.user_id IS NOT DISTINCT FROM w.user_id AND s.agent_id IS NOT DISTINCT FROM w.agent_id
      AND s.app_id IS NOT DISTINCT FROM w.app_id AND s.run_id IS NOT DISTINCT FROM w.run_id
    FOR KEY SHARE OF s                              -- an erase deletes scopes: before this, or after the commit
), made AS (
    INSERT INTO scopes (project_id, user_id, agent_id, app_id, run_id)
    SELECT $1, w.user_id, w.agent_id, w.app_id, w.run_id FROM wanted w
    WHERE NOT EXISTS (SELECT FROM found f WHERE f.place = w.place)
    ORDER BY w.hash
    ON CONFLICT DO NOTHING
    RETURNING id, owners_hash
), known AS (
    SELECT place, id FROM found
    UNION ALL
    SELECT w.place, m.id FROM made m JOIN wanted w ON w.hash = m.owners_hash
)
INSERT INTO events (project_id, id, kind, status, scope_id, target_scope_ids, payload)
SELECT $1, a.id, 'ADD', 'PENDING', s.id, t.ids, a.payload
FROM unnest($7::uuid[], $8::jsonb[], $9::bigint[], $10::text[]) WITH ORDINALITY AS a (id, payload, scope, targets, turn)
JOIN known s ON s.place = a.scope
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(k.id ORDER BY p.nth), '{}') AS ids, count(*) AS wanted
    FROM unnest(string_to_array(a.targets, ',')::bigint[]) WITH ORDINALITY AS p (place, nth)
    LEFT JOIN known k ON k.place = p.place
) t
WHERE array_position(t.ids, NULL) IS NULL           -- a scope that another connection is just making: not with this statement
ORDER BY a.turn                                     -- seq is the order of acceptance
RETURNING id, scope_id, target_scope_ids, created_at, updated_at
"""

# Planning is most of the full statement's time. A scope that was deleted meanwhile fails the foreign key, and an owner that
# was deleted comes back with its first memory (owners.restore).
_INSERT_PLAIN = """
INSERT INTO events (project_id, id, kind, status, scope_id, target_scope_ids, payload)
SELECT $1, a.id, 'ADD', 'PENDING', a.scope_id, ARRAY[a.scope_id], a.payload
FROM unnest($2::uuid[], $3::jsonb[], $4::bigint[]) AS a (id, payload, scope_id)
RETURNING id, scope_id, target_scope_ids, created_at, updated_at
"""

# For targets that are no foreign key. All or nothing: what was known may have been deleted.
_INSERT_KNOWN = """
INSERT INTO events (project_id, id, kind, status, scope_id, target_scope_ids, payload)
SELECT $1, a.id, 'ADD', 'PENDING', a.scope_id, string_to_array(a.targets, ',')::bigint[], a.payload
FROM unnest($2::uuid[], $3::jsonb[], $4::bigint[], $5::text[]) WITH ORDINALITY AS a (id, payload, scope_id, targets, turn)
WHERE (SELECT count(*) FROM scopes s WHERE s.project_id = $1 AND s.id = ANY ($6::bigint[])) = cardinality($6::bigint[])
  AND NOT EXISTS (
      SELECT FROM unnest($7::text[], $8::text[]) AS n (kind, name)
      WHERE NOT EXISTS (SELECT FROM owners o WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name))
ORDER BY a.turn
RETURNING id, scope_id, target_scope_ids, created_at, updated_at
"""


async def insert_known(
    conn: Conn, project_id: int, arrived: Sequence[Arrival], known: Mapping[Owners, int]
) -> dict[UUID, Event]:
    """Do as `insert` does, with the scopes that its owners had a moment ago, by `known`; nothing when one is gone."""
    if all(one.targets == (one.owners,) for one in arrived):
        ids, payloads = [one.event_id for one in arrived], [one.payload for one in arrived]
        scope_ids = [known[one.owners] for one in arrived]
        return await _fetch(conn, _INSERT_PLAIN, project_id, arrived, ids, payloads, scope_ids)
    owners = dict.fromkeys(owners for one in arrived for owners in (one.owners, *one.targets))
    named = {(name.removesuffix("_id"), value) for one in owners for name, value in one.named().items()}
    return await _fetch(
        conn,
        _INSERT_KNOWN,
        project_id,
        arrived,
        [one.event_id for one in arrived],
        [one.payload for one in arrived],
        [known[one.owners] for one in arrived],
        [",".join(str(known[target]) for target in one.targets) for one in arrived],
        [known[one] for one in owners],
        [kind for kind, _ in named],
        [name for _, name in named],
    )


async def insert(conn: Conn, project_id: int, arrived: Sequence[Arrival]) -> dict[UUID, Event]:
    """Record the adds as pending events, in their order; return those by id. One round trip and one commit of its own.

    Some may be missing in what is returned, and nothing of them is stored: their scope was just being made by somebody
    else, or one of the others has something that cannot be stored. Such an add is to be recorded by itself.
    Raises: DatabaseUnavailable when it is not known what is stored.
    """
    places: dict[Owners, int] = {}
    for one in arrived:
        for owners in (one.owners, *one.targets):
            places.setdefault(owners, len(places) + 1)
    columns = [[getattr(owners, name) for owners in places] for name in OWNER_FIELDS]
    return await _fetch(
        conn,
        _INSERT,
        project_id,
        arrived,
        [scopes.hash_of(owners) for owners in places],
        *columns,
        [one.event_id for one in arrived],
        [one.payload for one in arrived],
        [places[one.owners] for one in arrived],
        [",".join(str(places[owners]) for owners in one.targets) for one in arrived],
    )


async def _fetch(
    conn: Conn, statement: str, project_id: int, arrived: Sequence[Arrival], *args: Any
) -> dict[UUID, Event]:
    try:
        rows = await conn.fetch(statement, project_id, *args)
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.TransactionRollbackError):
        return {}  # the server has refused it whole
    payloads = {one.event_id: dict(one.payload) for one in arrived}
    return {row["id"]: _event(project_id, row, payloads[row["id"]]) for row in rows}


def _event(project_id: int, row: Mapping[str, Any], payload: dict[str, Any]) -> Event:
    return Event(
        project_id=project_id,
        id=row["id"],
        kind="ADD",
        status=Status.PENDING,
        scope_id=row["scope_id"],
        target_scope_ids=tuple(row["target_scope_ids"]),
        payload=payload,
        attempts=0,
        lease_epoch=0,
        checkpoint=None,
        results=[],
        metadata=None,
        error_code=None,
        error=None,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        started_at=None,
        completed_at=None,
    )
