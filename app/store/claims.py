"""Events in a worker's hands: claimed, leased, fenced, ended. Every time is the database's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from app.model import Event
from app.store import announcements, event_rows
from app.store.db import Conn

CLAIM_TRIES = 5  #: claims lost to another worker before this one waits for its next turn

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
          -- events_open; one that has failed before may be overtaken. The first of the scope, not NOT EXISTS: that may be
          -- planned as a join, which reads the whole queue for every candidate.
          AND coalesce((
              SELECT o.seq FROM events o
              WHERE o.project_id = e.project_id AND o.scope_id = e.scope_id AND o.status = 'PENDING' AND o.attempts = 0
              ORDER BY o.seq LIMIT 1), e.seq) >= e.seq
          AND (e.attempts < 2 OR e.error_code IS DISTINCT FROM 'worker_lost'
              OR NOT EXISTS (                   -- events_lease; of those that outlived two workers one at a time: it may be the killer
                  SELECT FROM events r
                  WHERE r.status = 'RUNNING' AND r.attempts > 2 AND r.error_code = 'worker_lost'))
        ORDER BY e.next_at, e.seq
        LIMIT 4                                 -- more than one, because another worker may hold the first
    ) c
    ORDER BY running.count, c.next_at, c.seq
    LIMIT 64
), chosen AS MATERIALIZED (
    SELECT locked.project_id, locked.id
    FROM (SELECT c.project_id, c.id FROM candidates c ORDER BY c.count, c.next_at, c.seq) c
    CROSS JOIN LATERAL (                        -- one after the other, by the primary key, until one can be locked
        SELECT e.project_id, e.id FROM events e
        WHERE e.project_id = c.project_id AND e.id = c.id
          AND e.lease_until IS NULL AND e.completed_at IS NULL  -- PENDING, as the checks of the table have it; named so, the
        FOR UPDATE SKIP LOCKED                                  -- planner may read all that are instead of the one
    ) locked
    LIMIT 1
)
UPDATE events e
SET status = 'RUNNING', attempts = e.attempts + 1, lease_epoch = e.lease_epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $1),
    started_at = coalesce(e.started_at, clock_timestamp()), updated_at = clock_timestamp()
FROM chosen
WHERE e.project_id = chosen.project_id AND e.id = chosen.id
RETURNING {event_rows.E_COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def claim(conn: Conn, *, lease_s: float) -> Event | None:
    """Take one due event of any project for `lease_s` seconds; None: nothing can be taken now.

    The project with the fewest running events goes first, then the event that is due longest. An event waits for a
    running one of its scope, and for an older pending one that has not failed yet; one whose workers died twice also
    for any other such one. Commits by itself when the connection is in no transaction.
    """
    for _ in range(CLAIM_TRIES):
        try:
            if conn.is_in_transaction():  # which goes on after a claim that is lost
                async with conn.transaction():
                    row = await conn.fetchrow(_CLAIM, lease_s)
            else:  # a statement is a transaction by itself, in one round trip instead of three
                row = await conn.fetchrow(_CLAIM, lease_s)
        except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
            continue  # another worker has just taken an event of the same scope
        return None if row is None else event_rows.event(row)
    return None


_RENEW = """
UPDATE events SET lease_until = clock_timestamp() + make_interval(secs => $4)
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def renew(conn: Conn, event: Event, lease_s: float) -> bool:
    """Hold the event for `lease_s` more seconds; False: another worker has it, stop."""
    return event_rows.done(await conn.execute(_RENEW, *_fence(event), lease_s))


_SAVE_CHECKPOINT = """
UPDATE events SET checkpoint = $4, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def save_checkpoint(conn: Conn, event: Event, facts: list[dict[str, Any]]) -> bool:
    """Keep the validated facts, so that another attempt does not ask the model again; False: fenced off."""
    return event_rows.done(await conn.execute(_SAVE_CHECKPOINT, *_fence(event), facts))


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
    return event_rows.done(
        await conn.execute(_FINISH, *_fence(event), stored, None if metadata is None else dict(metadata))
    )


_DISCARD = "DELETE FROM events WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3"


async def discard(conn: Conn, event: Event) -> bool:
    """End an internal event well: nobody asks for its outcome, so nothing stays; False: fenced off, roll back."""
    return event_rows.done(await conn.execute(_DISCARD, *_fence(event)))


_RETRY_AT = """
UPDATE events
SET status = 'PENDING', next_at = clock_timestamp() + make_interval(secs => $4), error_code = $5, error = $6,
    lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def retry_at(conn: Conn, event: Event, delay_s: float, code: str, text: str) -> bool:
    """Put the event off for `delay_s` seconds after an attempt that failed; False: fenced off."""
    return event_rows.done(await conn.execute(_RETRY_AT, *_fence(event), delay_s, code, text))


_FAIL = """
UPDATE events
SET status = 'FAILED', error_code = $4, error = $5, lease_until = NULL,
    completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def fail(conn: Conn, event: Event, code: str, text: str) -> bool:
    """Give the event up for a stated reason; False: fenced off. Payload and checkpoint stay for `reopen`."""
    return event_rows.done(await conn.execute(_FAIL, *_fence(event), code, text))


_RELEASE = """
UPDATE events                                   -- next_at stays: it keeps its place in the queue
SET status = 'PENDING', attempts = attempts - 1, lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def release(conn: Conn, event: Event) -> bool:
    """Give the event back undone, as if it had not been claimed; False: fenced off."""
    return event_rows.done(await conn.execute(_RELEASE, *_fence(event)))


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


def _fence(event: Event) -> tuple[int, UUID, int]:
    return event.project_id, event.id, event.lease_epoch
