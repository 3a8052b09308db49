"""Events: accepted work and what came of it. What a worker does with them is in claims.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app import errors
from app.model import INTERNAL_KINDS, Event, Status
from app.store import event_rows
from app.store.db import Conn

#: Named, not `*`: a statement that is prepared must outlive the columns that a migration adds while it is in use.

_INSERT = f"""
INSERT INTO events (project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_key, idempotency_print,
                    results, metadata, started_at, completed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
        CASE WHEN $4 <> 'PENDING' THEN statement_timestamp() END,
        CASE WHEN $4 <> 'PENDING' THEN clock_timestamp() END)
ON CONFLICT (project_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING {event_rows.COLUMNS}
"""  # noqa: S608 - the columns are a constant

_BY_KEY = f"""
SELECT {event_rows.COLUMNS}
FROM events
WHERE project_id = $1 AND idempotency_key = $2
"""  # noqa: S608 - the columns are a constant


async def insert(
    conn: Conn,
    project_id: int,
    event_id: UUID,
    kind: str,
    payload: Mapping[str, Any],
    *,
    status: Status = Status.PENDING,
    scope_id: int | None = None,
    target_scope_ids: Sequence[int] = (),
    results: Sequence[Mapping[str, Any]] = (),
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    idempotency_print: bytes | None = None,
) -> Event:
    """Record one requested change: PENDING for the worker, or SUCCEEDED when it is done in this transaction.

    With an `idempotency_key` that is taken, return the event that took it: its id is not `event_id` then. Waits for a
    transaction that is just inserting the same key.
    Raises: KeyReused when that event was requested with another body.
    """
    row = await conn.fetchrow(
        _INSERT,
        project_id,
        event_id,
        kind,
        status.value,
        scope_id,
        list(target_scope_ids),
        dict(payload),
        idempotency_key,
        idempotency_print,
        [dict(result) for result in results],
        None if metadata is None else dict(metadata),
    )
    if row is not None:
        return event_rows.event(row)
    earlier = await find_by_key(conn, project_id, str(idempotency_key), idempotency_print)
    if earlier is None:  # deleted between the two statements
        raise errors.Conflict("The event of this Idempotency-Key is just being deleted; send the request again.")
    return earlier


async def find_by_key(conn: Conn, project_id: int, key: str, body_print: bytes | None) -> Event | None:
    """Return the event that was requested with this key; None: the key is free.

    Raises: KeyReused when it was requested with another body.
    """
    row = await conn.fetchrow(_BY_KEY, project_id, key)
    if row is None:
        return None
    if row["idempotency_print"] != body_print:
        raise errors.KeyReused()
    return event_rows.event(row)


# Reading and changing from the outside ----------------------------------------------------------------------------------

_RECORD = """
UPDATE events SET results = $3, metadata = $4, completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'SUCCEEDED'
"""


async def record(
    conn: Conn,
    project_id: int,
    event_id: UUID,
    results: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Note what came of an event that this transaction inserted as SUCCEEDED."""
    stored = [dict(result) for result in results]
    await conn.execute(_RECORD, project_id, event_id, stored, None if metadata is None else dict(metadata))


_CANCEL_TARGETS = """
WITH hit AS (                                   -- events_open; in one order, so that two deletes cannot deadlock
    SELECT project_id, id FROM events
    WHERE project_id = $1 AND status IN ('PENDING', 'RUNNING') AND target_scope_ids && $2::bigint[]
    ORDER BY seq
    FOR UPDATE
)
UPDATE events e
SET cancelled_scope_ids = e.cancelled_scope_ids || ARRAY(
        SELECT target FROM unnest(e.target_scope_ids) AS target
        WHERE target = ANY ($2::bigint[]) AND target <> ALL (e.cancelled_scope_ids)),
    updated_at = clock_timestamp()
FROM hit
WHERE e.project_id = hit.project_id AND e.id = hit.id
"""


async def cancel_targets(conn: Conn, project_id: int, scope_ids: Sequence[int]) -> int:
    """Make adds that are accepted and not finished store nothing in these scopes. Return how many it concerns.

    For delete_all, before it deletes memories in the same transaction: so every add either ends before the delete,
    which then removes its memories, or finds itself cancelled.
    """
    return event_rows.count(await conn.execute(_CANCEL_TARGETS, project_id, list(scope_ids)))


_GET = f"SELECT {event_rows.COLUMNS} FROM events WHERE project_id = $1 AND id = $2"  # noqa: S608 - the columns are a constant


async def find(conn: Conn, project_id: int, event_id: UUID) -> Event | None:
    """Return one event; None: there is none."""
    row = await conn.fetchrow(_GET, project_id, event_id)
    return None if row is None else event_rows.event(row)


async def get(conn: Conn, project_id: int, event_id: UUID) -> Event:
    """Return one event. Raises: EventNotFound."""
    found = await find(conn, project_id, event_id)
    if found is None:
        raise errors.EventNotFound()
    return found


_COUNT = """
SELECT count(*) FROM events
WHERE project_id = $1
  AND kind <> ALL ($6::text[])
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::text IS NULL OR status = $3)
  AND ($4::timestamptz IS NULL OR created_at >= $4)
  AND ($5::timestamptz IS NULL OR created_at < $5)
"""

_LIST = f"""
SELECT {event_rows.COLUMNS} FROM events                   -- events_newest
WHERE project_id = $1
  AND kind <> ALL ($6::text[])
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::text IS NULL OR status = $3)
  AND ($4::timestamptz IS NULL OR created_at >= $4)
  AND ($5::timestamptz IS NULL OR created_at < $5)
ORDER BY seq DESC
LIMIT $7 OFFSET $8
"""  # noqa: S608 - the columns are a constant


async def list_page(
    conn: Conn,
    project_id: int,
    *,
    kind: str | None = None,
    status: Status | None = None,
    since: datetime | None = None,
    before: datetime | None = None,
    limit: int,
    offset: int = 0,
) -> tuple[int, list[Event]]:
    """Return how many events there are and a page of them, newest first; internal ones are left out.

    `since` is inclusive, `before` is not.
    """
    internal = list(INTERNAL_KINDS)
    selected = (project_id, kind, None if status is None else status.value, since, before, internal)
    total: int = await conn.fetchval(_COUNT, *selected)
    return total, [event_rows.event(row) for row in await conn.fetch(_LIST, *selected, limit, offset)]


_REOPEN = f"""
UPDATE events
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL, error_code = NULL, error = NULL,
    updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'FAILED' AND error_code IS DISTINCT FROM 'erased'
RETURNING {event_rows.COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def reopen(conn: Conn, project_id: int, event_id: UUID) -> Event:
    """Make a failed event due again, with all its attempts.

    Raises: EventNotFound; Conflict when it has not failed.
    """
    row = await conn.fetchrow(_REOPEN, project_id, event_id)
    if row is not None:
        return event_rows.event(row)
    event = await get(conn, project_id, event_id)
    if event.error_code == "erased":
        raise errors.Conflict("What was asked for is erased; there is nothing to try again.")
    raise errors.Conflict(f"Only a FAILED event can be retried; this one is {event.status}.")


_REOPEN_FAILED = """
UPDATE events                                   -- a look through the project's events; an operator asks, rarely
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL, error_code = NULL, error = NULL,
    updated_at = clock_timestamp()
WHERE project_id = $1 AND status = 'FAILED' AND kind <> ALL ($2::text[]) AND error_code IS DISTINCT FROM 'erased'
"""


async def reopen_failed(conn: Conn, project_id: int) -> int:
    """Make every failed event of the project due again, as `reopen` does; return how many. Internal ones are left out."""
    return event_rows.count(await conn.execute(_REOPEN_FAILED, project_id, list(INTERNAL_KINDS)))


_COUNT_PENDING = """
SELECT count(*) FROM (                          -- events_due, at most so many entries of it
    SELECT FROM events WHERE project_id = $1 AND status = 'PENDING' AND kind <> ALL ($3::text[]) LIMIT $2
) waiting
"""


async def count_pending(conn: Conn, project_id: int, *, most: int) -> int:
    """Return how many events of the project wait, counted up to `most`; internal ones do not count."""
    count: int = await conn.fetchval(_COUNT_PENDING, project_id, most, list(INTERNAL_KINDS))
    return count


_OLDEST_PENDING_AGE = """
WITH RECURSIVE waiting (project_id) AS (
    (SELECT project_id FROM events WHERE status = 'PENDING' ORDER BY project_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.project_id FROM events e
            WHERE e.status = 'PENDING' AND e.project_id > w.project_id ORDER BY e.project_id LIMIT 1)
    FROM waiting w
    WHERE w.project_id IS NOT NULL
)
SELECT extract(epoch FROM statement_timestamp() - min(head.next_at))::float8
FROM waiting w
CROSS JOIN LATERAL (
    SELECT e.next_at FROM events e
    WHERE e.project_id = w.project_id AND e.status = 'PENDING' AND e.next_at <= statement_timestamp()
    ORDER BY e.next_at LIMIT 1
) head
"""


async def oldest_pending_age(conn: Conn) -> float | None:
    """Return for how many seconds the longest-waiting due event of any project has been due; None: nothing is due."""
    age: float | None = await conn.fetchval(_OLDEST_PENDING_AGE)
    return age
