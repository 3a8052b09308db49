"""The audit log: lines are added and read, and nothing else."""

from __future__ import annotations

from datetime import datetime

from app.model import AuditLine
from app.store.db import Conn

_INSERT = """
INSERT INTO audit_log (project_id, by_project_id, actor, action, organization, project, objects, outcome, address, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""


async def insert(conn: Conn, project_id: int, by_project_id: int | None, line: AuditLine) -> None:
    """Add a line; its time is the database's. `project_id`: what was acted upon, 0 for none; `by_project_id`: the key's."""
    await conn.execute(
        _INSERT,
        project_id,
        by_project_id,
        line.actor,
        line.action,
        line.organization,
        line.project,
        list(line.objects),
        line.outcome,
        line.address,
        line.request_id,
    )


# NULL in place of a project is the operator, who sees everything.
_WHERE = """
WHERE ($1::bigint IS NULL OR project_id = $1 OR by_project_id = $1)
  AND ($2::text IS NULL OR action = $2)
  AND ($3::text IS NULL OR actor = $3)
  AND ($4::timestamptz IS NULL OR at >= $4)
  AND ($5::timestamptz IS NULL OR at < $5)
"""
_COUNT = f"SELECT count(*) FROM audit_log {_WHERE}"  # noqa: S608 - the condition is a constant
_LIST = f"""
SELECT at, actor, action, organization, project, objects, outcome, address, request_id
FROM audit_log
{_WHERE}
ORDER BY id DESC
LIMIT $6 OFFSET $7
"""  # noqa: S608 - the condition is a constant


async def list_page(
    conn: Conn,
    project_id: int | None,
    *,
    action: str | None = None,
    actor: str | None = None,
    since: datetime | None = None,
    before: datetime | None = None,
    limit: int,
    offset: int = 0,
) -> tuple[int, list[AuditLine]]:
    """Return how many lines there are and a page of them, newest first.

    `project_id`: lines about this project, or written for a key of it; None: all. `since` is inclusive, `before` is not.
    """
    selected = (project_id, action, actor, since, before)
    count: int = await conn.fetchval(_COUNT, *selected)
    rows = await conn.fetch(_LIST, *selected, limit, offset)
    return count, [AuditLine(**{**row, "objects": tuple(row["objects"])}) for row in rows]


_PURGE = "SELECT memoryd_purge_audit($1)"


async def purge(conn: Conn, *, keep_days: int) -> int:
    """Delete the lines of all projects that are older; return how many."""
    count: int = await conn.fetchval(_PURGE, keep_days)
    return count
