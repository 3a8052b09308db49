"""Writes deliveries in the transaction of a change: one for every active endpoint that asks for its kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.model import OWNER_FIELDS, Owners, WebhookEvent
from app.store.db import Conn


@dataclass(frozen=True, slots=True)
class Notice:
    """A change that endpoints may want to hear of."""

    event_type: WebhookEvent
    details: dict[str, Any]  # `event_details` of the body
    owners: Owners | None = None
    event_id: UUID | None = None  # the request that the change belongs to
    memory_id: UUID | None = None


#: How the source `n` becomes rows. The lock keeps an endpoint from being deleted before its deliveries are committed.
FAN_OUT = """
INSERT INTO deliveries (project_id, endpoint_id, event_type, event_id, memory_id, user_id, agent_id, app_id, run_id, details)
SELECT w.project_id, w.id, n.event_type, n.event_id, n.memory_id, n.user_id, n.agent_id, n.app_id, n.run_id, n.details
FROM n
JOIN webhooks w ON w.project_id = n.project_id AND w.is_active AND n.event_type = ANY (w.event_types)
ORDER BY n.position, w.created_at, w.id
FOR KEY SHARE OF w
"""

_WANTED = "SELECT DISTINCT unnest(event_types) AS event_type FROM webhooks WHERE project_id = $1 AND is_active"

_INSERT = f"""
WITH n AS (
    SELECT $1::bigint AS project_id, r.*
    FROM jsonb_to_recordset($2::jsonb) AS r (
        position integer, event_type text, event_id uuid, memory_id uuid, user_id text, agent_id text, app_id text,
        run_id text, details jsonb)
)
{FAN_OUT}
"""  # noqa: S608 - a constant


async def insert(conn: Conn, project_id: int, notices: Sequence[Notice]) -> int:
    """Write the deliveries of these changes; return how many. One small look when no endpoint asks for any."""
    if not notices:
        return 0
    wanted = {row["event_type"] for row in await conn.fetch(_WANTED, project_id)}
    rows = [
        {
            "position": position,
            "event_type": notice.event_type.value,
            "event_id": notice.event_id,
            "memory_id": notice.memory_id,
            "details": notice.details,
            **{name: getattr(notice.owners, name, None) for name in OWNER_FIELDS},
        }
        for position, notice in enumerate(notices)
        if notice.event_type in wanted
    ]
    return _count(await conn.execute(_INSERT, project_id, rows)) if rows else 0


_INSERT_DELETED = f"""
WITH n AS (                                     -- history_deleted
    SELECT h.project_id, row_number() OVER (ORDER BY h.id) AS position, 'memory_delete' AS event_type, h.event_id,
           h.memory_id, h.user_id, h.agent_id, h.app_id, h.run_id,
           jsonb_build_object('id', h.memory_id, 'data', jsonb_build_object('memory', h.old_text), 'event', 'DELETE')
           AS details
    FROM history h
    WHERE h.project_id = $1 AND h.event_id = $2 AND h.event = 'DELETE'
      AND EXISTS (SELECT FROM webhooks w
                  WHERE w.project_id = $1 AND w.is_active AND 'memory_delete' = ANY (w.event_types))
)
{FAN_OUT}
"""  # noqa: S608 - a constant


async def insert_deleted(conn: Conn, project_id: int, event_id: UUID) -> int:
    """Write a delivery for each memory that this request has deleted, as its history tells; return how many."""
    return _count(await conn.execute(_INSERT_DELETED, project_id, event_id))


_INSERT_ERASED = f"""
WITH n AS (
    SELECT $1::bigint AS project_id, m.position, 'memory_delete' AS event_type, $3::uuid AS event_id, NULL::uuid AS memory_id,
           NULL::text AS user_id, NULL::text AS agent_id, NULL::text AS app_id, NULL::text AS run_id,
           jsonb_build_object('id', m.id, 'data', jsonb_build_object('memory', ''), 'event', 'DELETE') AS details
    FROM unnest($2::uuid[]) WITH ORDINALITY AS m (id, position)
)
{FAN_OUT}
"""  # noqa: S608 - a constant


async def insert_erased(conn: Conn, project_id: int, memory_ids: Sequence[UUID], event_id: UUID) -> int:
    """Write a delivery for each of these memories, which an erase has taken: its id, so that receivers drop their copies, and
    nothing that it said or whose it was. Return how many.
    """
    return _count(await conn.execute(_INSERT_ERASED, project_id, list(memory_ids), event_id))


#: What endpoints are told of an add `e` that has failed; `s` is its scope.
OF_FAILED = """e.project_id, 0 AS position, 'ingest_job_failed' AS event_type, e.id AS event_id, NULL::uuid AS memory_id,
       s.user_id, s.agent_id, s.app_id, s.run_id,
       jsonb_build_object('event', 'INGEST_JOB_FAILED', 'event_id', e.id, 'status', e.status, 'results', e.results,
                          'error', e.error) AS details"""

_INSERT_FAILED = f"""
WITH n AS (
    SELECT {OF_FAILED}
    FROM events e
    LEFT JOIN scopes s ON s.project_id = e.project_id AND s.id = e.scope_id
    WHERE e.project_id = $1 AND e.id = $2 AND e.kind = 'ADD' AND e.status = 'FAILED'
)
{FAN_OUT}
"""  # noqa: S608 - constants


async def insert_failed(conn: Conn, project_id: int, event_id: UUID) -> int:
    """Write the deliveries of an add that this transaction has given up; return how many. Other events: none."""
    return _count(await conn.execute(_INSERT_FAILED, project_id, event_id))


def _count(tag: str) -> int:
    """Return the number of rows from a command tag such as `INSERT 0 3`."""
    return int(tag.rsplit(" ", 1)[-1])
