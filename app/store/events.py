"""Events: accepted work and what came of it. Every time is the database's clock, every change of a claimed event is fenced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from app import errors
from app.model import INTERNAL_KINDS, Event, Status
from app.store import announcements
from app.store.db import Conn

CLAIM_TRIES = 5  #: claims lost to another worker before this one waits for its next turn

#: Named, not `*`: a statement that is prepared must outlive the columns that a migration adds while it is in use.
_COLUMNS = (
    "project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint,"
    " results, metadata, error_code, error, created_at, updated_at, started_at, completed_at"
)
_E_COLUMNS = ", ".join(f"e.{name}" for name in _COLUMNS.split(", "))

_INSERT = f"""
INSERT INTO events (project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_key, idempotency_print,
                    results, metadata, started_at, completed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
        CASE WHEN $4 <> 'PENDING' THEN statement_timestamp() END,
        CASE WHEN $4 <> 'PENDING' THEN clock_timestamp() END)
ON CONFLICT (project_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING {_COLUMNS}
"""  # noqa: S608 - the columns are a constant

_BY_KEY = f"""
SELECT {_COLUMNS}
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
        return _event(row)
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
    return _event(row)


# The work of a worker ---------------------------------------------------------------------------------------------------

_CLAIM = f"""
WITH RECURSIVE waiting (project_id) AS (        -- projects with pending events: one probe of events_due each
    (SELECT project_id FROM events WHERE status = 'PENDING' ORDER BY project_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.project_id FROM events e
            WHERE e.status = 'PENDING' AND e.project_id > w.project_id ORDER BY e.project_id LIMIT 1)
    FROM waiting w
    WHERE w.project_id IS NOT NULL
), candidates AS MATERIALIZED (
    SELECT c.project_id, c.id, running.count, c.next_at, c.seq
    FROM waiting w
    CROSS JOIN LATERAL (                        -- events_one_running; never more than all workers' slots
        SELECT count(*) AS count, coalesce(array_agg(r.scope_id) FILTER (WHERE r.scope_id IS NOT NULL), '{{}}') AS scopes
        FROM events r
        WHERE r.project_id = w.project_id AND r.status = 'RUNNING'
    ) running
    CROSS JOIN LATERAL (                        -- events_due in its order, until enough are found
        SELECT e.project_id, e.id, e.next_at, e.seq
        FROM events e
        WHERE e.project_id = w.project_id AND e.status = 'PENDING'
          AND e.next_at <= statement_timestamp()
          AND (e.scope_id IS NULL OR e.scope_id <> ALL (running.scopes))
          AND NOT EXISTS (                      -- events_open; one that has failed before may be overtaken
              SELECT FROM events o
              WHERE o.project_id = e.project_id AND o.scope_id = e.scope_id AND o.seq < e.seq
                AND o.status = 'PENDING' AND o.attempts = 0)
        ORDER BY e.next_at, e.seq
        LIMIT 4                                 -- more than one, because another worker may hold the first
    ) c
    ORDER BY running.count, c.next_at, c.seq
    LIMIT 64
), chosen AS MATERIALIZED (
    SELECT e.project_id, e.id
    FROM candidates c
    JOIN events e ON e.project_id = c.project_id AND e.id = c.id
    WHERE e.status = 'PENDING'
    ORDER BY c.count, c.next_at, c.seq
    LIMIT 1
    FOR UPDATE OF e SKIP LOCKED
)
UPDATE events e
SET status = 'RUNNING', attempts = e.attempts + 1, lease_epoch = e.lease_epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $1),
    started_at = coalesce(e.started_at, clock_timestamp()), updated_at = clock_timestamp()
FROM chosen
WHERE e.project_id = chosen.project_id AND e.id = chosen.id
RETURNING {_E_COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def claim(conn: Conn, *, lease_s: float) -> Event | None:
    """Take one due event of any project for `lease_s` seconds; None: nothing can be taken now.

    The project with the fewest running events goes first, then the event that is due longest. An event waits for a
    running one of its scope, and for an older pending one that has not failed yet. Commits by itself when the
    connection is in no transaction.
    """
    for _ in range(CLAIM_TRIES):
        try:
            async with conn.transaction():
                row = await conn.fetchrow(_CLAIM, lease_s)
        except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
            continue  # another worker has just taken an event of the same scope
        return None if row is None else _event(row)
    return None


_RENEW = """
UPDATE events SET lease_until = clock_timestamp() + make_interval(secs => $4)
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def renew(conn: Conn, event: Event, lease_s: float) -> bool:
    """Hold the event for `lease_s` more seconds; False: another worker has it, stop."""
    return _done(await conn.execute(_RENEW, *_fence(event), lease_s))


_SAVE_CHECKPOINT = """
UPDATE events SET checkpoint = $4, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def save_checkpoint(conn: Conn, event: Event, facts: list[dict[str, Any]]) -> bool:
    """Keep the validated facts, so that another attempt does not ask the model again; False: fenced off."""
    return _done(await conn.execute(_SAVE_CHECKPOINT, *_fence(event), facts))


_LOCK_FOR_FINISH = """
SELECT cancelled_scope_ids FROM events
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
FOR UPDATE
"""


async def lock_for_finish(conn: Conn, event: Event) -> frozenset[int] | None:
    """Lock the event and return the target scopes that a delete_all emptied meanwhile; None: fenced off.

    Call it first in the transaction that writes: a delete_all locks events before memories too.
    """
    row = await conn.fetchrow(_LOCK_FOR_FINISH, *_fence(event))
    return None if row is None else frozenset(row["cancelled_scope_ids"])


_FINISH = """
UPDATE events
SET status = 'SUCCEEDED', results = $4, metadata = $5, error_code = NULL, error = NULL, lease_until = NULL,
    checkpoint = NULL, completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def finish(
    conn: Conn, event: Event, results: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any] | None
) -> bool:
    """End the event well; False: fenced off, roll back."""
    stored = [dict(result) for result in results]
    return _done(await conn.execute(_FINISH, *_fence(event), stored, None if metadata is None else dict(metadata)))


_DISCARD = "DELETE FROM events WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3"


async def discard(conn: Conn, event: Event) -> bool:
    """End an internal event well: nobody asks for its outcome, so nothing stays; False: fenced off, roll back."""
    return _done(await conn.execute(_DISCARD, *_fence(event)))


_RETRY_AT = """
UPDATE events
SET status = 'PENDING', next_at = clock_timestamp() + make_interval(secs => $4), error_code = $5, error = $6,
    lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def retry_at(conn: Conn, event: Event, delay_s: float, code: str, text: str) -> bool:
    """Put the event off for `delay_s` seconds after an attempt that failed; False: fenced off."""
    return _done(await conn.execute(_RETRY_AT, *_fence(event), delay_s, code, text))


_FAIL = """
UPDATE events
SET status = 'FAILED', error_code = $4, error = $5, lease_until = NULL,
    completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def fail(conn: Conn, event: Event, code: str, text: str) -> bool:
    """Give the event up for a stated reason; False: fenced off. Payload and checkpoint stay for `reopen`."""
    return _done(await conn.execute(_FAIL, *_fence(event), code, text))


_RELEASE = """
UPDATE events                                   -- next_at stays: it keeps its place in the queue
SET status = 'PENDING', attempts = attempts - 1, lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def release(conn: Conn, event: Event) -> bool:
    """Give the event back undone, as if it had not been claimed; False: fenced off."""
    return _done(await conn.execute(_RELEASE, *_fence(event)))


# After a worker's death -------------------------------------------------------------------------------------------------

_RECLAIM_EXPIRED = f"""
WITH expired AS (                               -- events_lease
    SELECT project_id, id FROM events
    WHERE status = 'RUNNING' AND lease_until < statement_timestamp()
    FOR UPDATE SKIP LOCKED
), changed AS (
UPDATE events e
SET status = CASE WHEN e.attempts > cardinality($1::float8[]) THEN 'FAILED' ELSE 'PENDING' END,
    -- At once after the first death; then by the schedule, so that an event that kills its worker does not take
    -- its neighbours' attempts with it.
    next_at = clock_timestamp() + make_interval(secs => CASE WHEN e.attempts < 2 THEN 0
        ELSE coalesce(($1::float8[])[e.attempts - 1], 0) END),
    error_code = 'worker_lost', error = 'The worker stopped before it was done.',
    completed_at = CASE WHEN e.attempts > cardinality($1::float8[]) THEN clock_timestamp() END,
    lease_until = NULL, updated_at = clock_timestamp()
FROM expired
WHERE e.project_id = expired.project_id AND e.id = expired.id
RETURNING e.project_id, e.id, e.kind, e.status, e.scope_id, e.results, e.error
), n AS (
    SELECT {announcements.OF_FAILED}
    FROM changed e
    LEFT JOIN scopes s ON s.project_id = e.project_id AND s.id = e.scope_id
    WHERE e.kind = 'ADD' AND e.status = 'FAILED'
), announced AS ({announcements.FAN_OUT})
SELECT count(*) FROM changed
"""  # noqa: S608 - constants


async def reclaim_expired(conn: Conn, retry_delays_s: Sequence[float]) -> int:
    """Make events due again whose worker let the lease run out, and fail those out of attempts. Return how many.

    Endpoints that ask for failures are told in the same statement.
    """
    reclaimed: int = await conn.fetchval(_RECLAIM_EXPIRED, list(retry_delays_s))
    return reclaimed


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
    return _count(await conn.execute(_CANCEL_TARGETS, project_id, list(scope_ids)))


_GET = f"SELECT {_COLUMNS} FROM events WHERE project_id = $1 AND id = $2"  # noqa: S608 - the columns are a constant


async def get(conn: Conn, project_id: int, event_id: UUID) -> Event:
    """Return one event.

    Raises: EventNotFound.
    """
    row = await conn.fetchrow(_GET, project_id, event_id)
    if row is None:
        raise errors.EventNotFound()
    return _event(row)


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
SELECT {_COLUMNS} FROM events                   -- events_newest
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
    return total, [_event(row) for row in await conn.fetch(_LIST, *selected, limit, offset)]


_REOPEN = f"""
UPDATE events
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL, error_code = NULL, error = NULL,
    updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'FAILED'
RETURNING {_COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def reopen(conn: Conn, project_id: int, event_id: UUID) -> Event:
    """Make a failed event due again, with all its attempts.

    Raises: EventNotFound; Conflict when it has not failed.
    """
    row = await conn.fetchrow(_REOPEN, project_id, event_id)
    if row is not None:
        return _event(row)
    event = await get(conn, project_id, event_id)
    raise errors.Conflict(f"Only a FAILED event can be retried; this one is {event.status}.")


_REOPEN_FAILED = """
UPDATE events                                   -- a look through the project's events; an operator asks, rarely
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL, error_code = NULL, error = NULL,
    updated_at = clock_timestamp()
WHERE project_id = $1 AND status = 'FAILED' AND kind <> ALL ($2::text[])
"""


async def reopen_failed(conn: Conn, project_id: int) -> int:
    """Make every failed event of the project due again, as `reopen` does; return how many. Internal ones are left out."""
    return _count(await conn.execute(_REOPEN_FAILED, project_id, list(INTERNAL_KINDS)))


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


# Rows -------------------------------------------------------------------------------------------------------------------


def _fence(event: Event) -> tuple[int, UUID, int]:
    return event.project_id, event.id, event.lease_epoch


def _count(tag: str) -> int:
    """Return the number of rows from a command tag such as `UPDATE 3`."""
    return int(tag.rsplit(" ", 1)[-1])


def _done(tag: str) -> bool:
    return _count(tag) == 1


def _event(row: Mapping[str, Any]) -> Event:
    return Event(
        project_id=row["project_id"],
        id=row["id"],
        kind=row["kind"],
        status=Status(row["status"]),
        scope_id=row["scope_id"],
        target_scope_ids=tuple(row["target_scope_ids"]),
        payload=row["payload"],
        attempts=row["attempts"],
        lease_epoch=row["lease_epoch"],
        checkpoint=row["checkpoint"],
        results=row["results"],
        metadata=row["metadata"],
        error_code=row["error_code"],
        error=row["error"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
    )
