"""Deliveries: claimed, attempted, retried, logged. Every time is the database's clock, every outcome is fenced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app import errors
from app.model import OWNER_FIELDS, Owners, Status, WebhookEvent
from app.store.db import Conn

STREAK_S = 86_400.0  #: failures further apart are no unbroken row; the schedule's longest wait is ten hours


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to deliver, and what came of it."""

    started_at: datetime
    status_code: int | None  # None: there was no answer
    latency_ms: int | None
    error_code: str | None = None  # why there was none
    error: str | None = None
    response: str | None = None  # the beginning of the answer


@dataclass(frozen=True, slots=True)
class Delivery:
    """One change on its way to one endpoint."""

    project_id: int
    id: UUID  # the header webhook-id
    seq: int
    endpoint_id: str
    event_type: WebhookEvent
    event_id: UUID | None
    memory_id: UUID | None
    owners: Owners
    details: dict[str, Any]
    status: Status
    attempts: int  # since it was made or replayed
    next_at: datetime
    lease_epoch: int
    created_at: datetime
    completed_at: datetime | None
    log: tuple[Attempt, ...] = ()  # newest first, where it was asked for


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this worker holds, with what the request needs."""

    delivery: Delivery
    project: str  # its public id
    url: str
    now: datetime  # of the database
    secrets: tuple[str, ...] = field(repr=False)  # the present one, then those that still sign after a rotation


#: What `_delivery` needs of `deliveries d`.
_COLUMNS = """d.project_id, d.id, d.seq, d.endpoint_id, d.event_type, d.event_id, d.memory_id, d.user_id, d.agent_id,
       d.app_id, d.run_id, d.details, d.status, d.attempts, d.next_at, d.lease_epoch, d.created_at, d.completed_at"""


# The work of a worker ---------------------------------------------------------------------------------------------------

_CLAIM = f"""
WITH RECURSIVE waiting (project_id, endpoint_id) AS (   -- endpoints with pending deliveries: one probe of deliveries_due each
    (SELECT project_id, endpoint_id FROM deliveries WHERE status = 'PENDING' ORDER BY project_id, endpoint_id LIMIT 1)
    UNION ALL
    SELECT behind.project_id, behind.endpoint_id
    FROM waiting t
    CROSS JOIN LATERAL (
        SELECT d.project_id, d.endpoint_id FROM deliveries d
        WHERE d.status = 'PENDING' AND (d.project_id, d.endpoint_id) > (t.project_id, t.endpoint_id)
        ORDER BY d.project_id, d.endpoint_id LIMIT 1
    ) behind
), candidates AS MATERIALIZED (
    SELECT due.project_id, due.id, tenant.running AS of_project, busy.running, due.next_at, due.seq
    FROM waiting t
    JOIN webhooks w ON w.project_id = t.project_id AND w.id = t.endpoint_id AND w.is_active
    CROSS JOIN LATERAL (                        -- deliveries_running; never more than all workers' slots
        SELECT count(*) AS running FROM deliveries r
        WHERE r.project_id = t.project_id AND r.endpoint_id = t.endpoint_id AND r.status = 'RUNNING'
    ) busy
    CROSS JOIN LATERAL (
        SELECT count(*) AS running FROM deliveries r WHERE r.project_id = t.project_id AND r.status = 'RUNNING'
    ) tenant
    CROSS JOIN LATERAL (                        -- deliveries_due in its order
        SELECT d.project_id, d.id, d.next_at, d.seq FROM deliveries d
        WHERE d.project_id = t.project_id AND d.endpoint_id = t.endpoint_id AND d.status = 'PENDING'
          AND d.next_at <= statement_timestamp()
        ORDER BY d.next_at, d.seq
        LIMIT 4                                 -- more than one, because another worker may hold the first
    ) due
    WHERE busy.running < CASE WHEN w.failing_since IS NULL THEN $2::integer ELSE 1 END
    ORDER BY tenant.running, busy.running, due.next_at, due.seq
    LIMIT 64
), chosen AS MATERIALIZED (
    SELECT d.project_id, d.id
    FROM candidates c
    JOIN deliveries d ON d.project_id = c.project_id AND d.id = c.id
    WHERE d.status = 'PENDING'
    ORDER BY c.of_project, c.running, c.next_at, c.seq
    LIMIT 1
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE deliveries d
SET status = 'RUNNING', attempts = d.attempts + 1, lease_epoch = d.lease_epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $1)
FROM chosen, webhooks w, projects p
WHERE d.project_id = chosen.project_id AND d.id = chosen.id
  AND w.project_id = d.project_id AND w.id = d.endpoint_id AND p.id = d.project_id
RETURNING {_COLUMNS}, w.url, p.public_id, clock_timestamp() AS now, ARRAY[w.secret] || ARRAY(
    SELECT f ->> 'secret' FROM jsonb_array_elements(w.former_secrets) AS f
    WHERE (f ->> 'until')::timestamptz > clock_timestamp()) AS secrets
"""  # noqa: S608 - the columns are a constant


async def claim(conn: Conn, *, lease_s: float, per_endpoint: int) -> Claimed | None:
    """Take one due delivery of any project for `lease_s` seconds; None: nothing can be taken now.

    The project with the fewest running deliveries goes first, then the endpoint with the fewest. An endpoint has at most
    `per_endpoint` running, one while it fails; workers that claim at the same instant may exceed that.
    """
    row = await conn.fetchrow(_CLAIM, lease_s, per_endpoint)
    if row is None:
        return None
    return Claimed(_delivery(row), row["public_id"], row["url"], row["now"], tuple(row["secrets"]))


_SETTLE = """
WITH held AS (
    UPDATE deliveries
    SET status = $4, lease_until = NULL,
        next_at = CASE WHEN $4 = 'PENDING' THEN clock_timestamp() + make_interval(secs => $5) ELSE next_at END,
        completed_at = CASE WHEN $4 <> 'PENDING' THEN clock_timestamp() END
    WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
    RETURNING project_id, id
)
INSERT INTO delivery_attempts (project_id, delivery_id, started_at, status_code, latency_ms, error_code, error, response)
SELECT project_id, id, $6, $7, $8, $9, $10, $11 FROM held
"""


#: Erased while it was being sent: whoever holds it drops it, and what was answered is not kept.
_DROP_ERASED = """
DELETE FROM deliveries
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3 AND details = '{}'
"""


async def settle(conn: Conn, delivery: Delivery, attempt: Attempt, status: Status, *, delay_s: float = 0.0) -> bool:
    """Log the attempt and end the delivery, or with PENDING put it off for `delay_s` seconds; False: fenced off."""
    if _count(await conn.execute(_DROP_ERASED, *_fence(delivery))) == 1:
        return True
    told = (attempt.started_at, attempt.status_code, attempt.latency_ms, attempt.error_code, attempt.error)
    tag = await conn.execute(_SETTLE, *_fence(delivery), status.value, delay_s, *told, attempt.response)
    return _count(tag) == 1


_RELEASE = """
UPDATE deliveries SET status = 'PENDING', attempts = attempts - 1, lease_until = NULL
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
"""


async def release(conn: Conn, delivery: Delivery) -> bool:
    """Give the delivery back, as if it had not been claimed; False: fenced off."""
    if _count(await conn.execute(_DROP_ERASED, *_fence(delivery))) == 1:
        return True
    return _count(await conn.execute(_RELEASE, *_fence(delivery))) == 1


_DROP_EXPIRED = """
DELETE FROM deliveries                          -- deliveries_lease
WHERE status = 'RUNNING' AND lease_until < statement_timestamp() AND details = '{}'
"""
_RECLAIM_EXPIRED = """
WITH expired AS (                               -- deliveries_lease
    SELECT project_id, id, lease_until FROM deliveries
    WHERE status = 'RUNNING' AND lease_until < statement_timestamp()
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE deliveries d
    SET status = CASE WHEN d.attempts > cardinality($1::float8[]) THEN 'FAILED' ELSE 'PENDING' END,
        next_at = clock_timestamp() + make_interval(secs => coalesce(($1::float8[])[d.attempts], 0)),
        completed_at = CASE WHEN d.attempts > cardinality($1::float8[]) THEN clock_timestamp() END,
        lease_until = NULL
    FROM expired
    WHERE d.project_id = expired.project_id AND d.id = expired.id
    RETURNING d.project_id, d.id, expired.lease_until
)
INSERT INTO delivery_attempts (project_id, delivery_id, started_at, error_code, error)
SELECT project_id, id, lease_until, 'worker_lost', 'The worker stopped before it knew the answer.' FROM changed
"""


async def reclaim_expired(conn: Conn, delays_s: Sequence[float]) -> int:
    """Make deliveries due again, by the schedule, whose worker let the lease run out. Return how many."""
    await conn.execute(_DROP_EXPIRED)
    return _count(await conn.execute(_RECLAIM_EXPIRED, list(delays_s)))


_PURGE = """
DELETE FROM deliveries d
USING (
    SELECT project_id, id FROM deliveries       -- deliveries_age
    WHERE created_at < statement_timestamp() - make_interval(days => $1) AND status <> 'RUNNING'
    ORDER BY created_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
) old
WHERE d.project_id = old.project_id AND d.id = old.id
"""


async def purge(conn: Conn, *, keep_days: int, limit: int) -> int:
    """Delete up to `limit` deliveries that are older than `keep_days`, with their log. Return how many."""
    return _count(await conn.execute(_PURGE, keep_days, limit))


# The log, and sending again ---------------------------------------------------------------------------------------------

_COUNT = """
SELECT count(*) FROM deliveries
WHERE project_id = $1 AND endpoint_id = $2 AND ($3::text IS NULL OR status = $3)
"""
_LIST = f"""
SELECT {_COLUMNS}
FROM deliveries d                               -- deliveries_newest
WHERE project_id = $1 AND endpoint_id = $2 AND ($3::text IS NULL OR status = $3)
ORDER BY seq DESC
LIMIT $4 OFFSET $5
"""  # noqa: S608 - the columns are a constant
_LOG = """
SELECT delivery_id, started_at, status_code, latency_ms, error_code, error, response
FROM delivery_attempts
WHERE project_id = $1 AND delivery_id = ANY ($2::uuid[])
ORDER BY delivery_id, seq DESC
"""


async def list_page(
    conn: Conn, project_id: int, endpoint_id: str, *, status: Status | None, limit: int, offset: int
) -> tuple[int, list[Delivery]]:
    """Return how many deliveries an endpoint has, and a page of them with their attempts, newest first."""
    selected = (project_id, endpoint_id, None if status is None else status.value)
    total: int = await conn.fetchval(_COUNT, *selected)
    rows = await conn.fetch(_LIST, *selected, limit, offset)
    logs: dict[UUID, list[Attempt]] = {row["id"]: [] for row in rows}
    for row in await conn.fetch(_LOG, project_id, list(logs)):
        logs[row["delivery_id"]].append(Attempt(**{name: row[name] for name in Attempt.__dataclass_fields__}))
    return total, [_delivery(row, tuple(logs[row["id"]])) for row in rows]


_REPLAY = """
UPDATE deliveries
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL
WHERE project_id = $1 AND endpoint_id = $2 AND id = $3 AND status <> 'RUNNING'
RETURNING id
"""
_EXISTS = "SELECT EXISTS (SELECT FROM deliveries WHERE project_id = $1 AND endpoint_id = $2 AND id = $3)"


async def replay(conn: Conn, project_id: int, endpoint_id: str, delivery_id: UUID) -> None:
    """Make a delivery due again, with all its attempts. Raises: NotFound; Conflict when it is just being attempted."""
    if await conn.fetchval(_REPLAY, project_id, endpoint_id, delivery_id) is not None:
        return
    if not await conn.fetchval(_EXISTS, project_id, endpoint_id, delivery_id):
        raise errors.NotFound("Delivery not found")
    raise errors.Conflict("This delivery is just being attempted; ask again in a few seconds.")


_REPLAY_FAILED = """
UPDATE deliveries
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL
WHERE project_id = $1 AND endpoint_id = $2 AND status = 'FAILED'
"""


async def replay_failed(conn: Conn, project_id: int, endpoint_id: str) -> int:
    """Make every delivery of the endpoint that failed due again. Return how many."""
    return _count(await conn.execute(_REPLAY_FAILED, project_id, endpoint_id))


# Rows -------------------------------------------------------------------------------------------------------------------


def _fence(delivery: Delivery) -> tuple[int, UUID, int]:
    return delivery.project_id, delivery.id, delivery.lease_epoch


def _count(tag: str) -> int:
    """Return the number of rows from a command tag such as `UPDATE 3`."""
    return int(tag.rsplit(" ", 1)[-1])


_PLAIN = [name for name in Delivery.__dataclass_fields__ if name not in ("owners", "event_type", "status", "log")]


def _delivery(row: Mapping[str, Any], attempts: tuple[Attempt, ...] = ()) -> Delivery:
    return Delivery(
        **{name: row[name] for name in _PLAIN},
        owners=Owners(*(row[name] for name in OWNER_FIELDS)),
        event_type=WebhookEvent(row["event_type"]),
        status=Status(row["status"]),
        log=attempts,
    )
