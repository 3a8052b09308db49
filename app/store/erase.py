"""Everything of a project goes: table by table, which is much quicker than row by row through the foreign keys."""

from __future__ import annotations

from collections.abc import Collection

from app.store import event_rows
from app.store.db import Conn

#: Every table of a project's rows. Whoever holds one of them also wants the project's row at some time, so the project comes
#: after them: the other way round, the two would wait for each other. Events first: a worker that finishes one is waited for.
TABLES = (
    "events",
    "memory_entities",
    "memory_sources",
    "memory_vectors",
    "memory_access",
    "feedback",
    "entities",
    "memories",
    "messages",
    "history",
    "idempotency_answers",
    "delivery_attempts",
    "deliveries",
    "webhooks",
    "exports",
    "profiles",
    "profile_settings",
    "vector_indexes",
    "scopes",
    "owners",
    "erased_owners",
    "retrievals",
    "project_members",
    "api_keys",
)
#: These refer to nothing: what somebody wrote while the project went is deleted after it, when nobody writes any more.
LOOSE = ("terms", "idempotency_answers")
_WAIT_S = 600.0  #: for one table; a million rows take about a minute

_ENDPOINTS = (
    "SELECT id FROM webhooks WHERE project_id = $1 FOR UPDATE"  # before what is delivered to them, as its workers
)
_PROJECT = "DELETE FROM projects WHERE id = $1 RETURNING id"  # takes with it whatever refers to it, stragglers too
_DELETE = {table: f"DELETE FROM {table} WHERE project_id = $1" for table in (*TABLES, *LOOSE)}  # noqa: S608
_COUNT = {table: f"SELECT count(*) FROM {table} WHERE project_id = $1" for table in (*TABLES, *LOOSE)}  # noqa: S608


async def project(conn: Conn, project_id: int) -> dict[str, int]:
    """Delete a project with all its rows, keys included; in the caller's transaction. Return how many rows went, by table;
    none at all: there was no such project.
    """
    gone = dict.fromkeys((*TABLES, *LOOSE), 0)
    for table in TABLES:
        if table == "delivery_attempts":
            await conn.execute(_ENDPOINTS, project_id, timeout=_WAIT_S)
        gone[table] += event_rows.count(await conn.execute(_DELETE[table], project_id, timeout=_WAIT_S))
    found = await conn.fetchval(_PROJECT, project_id, timeout=_WAIT_S)
    for table in LOOSE:
        gone[table] += event_rows.count(await conn.execute(_DELETE[table], project_id, timeout=_WAIT_S))
    return {} if found is None else {table: count for table, count in gone.items() if count} | {"projects": 1}


async def left(conn: Conn, project_id: int) -> dict[str, int]:
    """Return how many rows of a project there are, by table; tables without any are left out."""
    counts = {table: await conn.fetchval(sql, project_id, timeout=_WAIT_S) for table, sql in _COUNT.items()}
    return {table: count for table, count in counts.items() if count}


_QUIET = "UPDATE webhooks SET is_active = false WHERE project_id = ANY ($1::bigint[]) AND is_active"
_SENDING = """
SELECT count(*) FROM deliveries                                 -- deliveries_running
WHERE project_id = ANY ($1::bigint[]) AND status = 'RUNNING'
  AND lease_until > clock_timestamp() + make_interval(secs => $2)
"""


async def quiet(conn: Conn, project_ids: Collection[int]) -> None:
    """Let nothing more be sent to the endpoints of these projects."""
    await conn.execute(_QUIET, list(project_ids))


async def sending(conn: Conn, project_ids: Collection[int], *, margin_s: float) -> int:
    """Return how many deliveries of these projects are just being sent. `margin_s`: the end of a delivery's lease in which
    its request is over for sure.
    """
    found: int = await conn.fetchval(_SENDING, list(project_ids), margin_s)
    return found
