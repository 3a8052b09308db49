"""Exports: what was asked for and, once it is made, the object; kept for a week."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any
from uuid import UUID

from app.model import Export, Status
from app.store.db import Conn

_INSERT = """
INSERT INTO exports (project_id, id, schema, instructions, filters, null_scoping) VALUES ($1, $2, $3, $4, $5, $6)
"""


async def insert(
    conn: Conn,
    project_id: int,
    export_id: UUID,
    *,
    schema: dict[str, Any],
    instructions: str | None,
    filters: dict[str, Any],
    null_scoping: bool,
) -> None:
    """Put down what is asked for, in the transaction that inserts the event of the same id."""
    await conn.execute(_INSERT, project_id, export_id, schema, instructions, filters, null_scoping)


_FINISH = """
UPDATE exports SET result = $3, scope_ids = $4, updated_at = clock_timestamp() WHERE project_id = $1 AND id = $2
"""


async def finish(
    conn: Conn, project_id: int, export_id: UUID, result: dict[str, Any], *, scope_ids: Collection[int]
) -> None:
    """Keep the object. `scope_ids`: whose memories it was made from."""
    await conn.execute(_FINISH, project_id, export_id, result, list(scope_ids))


_FIND = """
SELECT x.project_id, x.id, x.schema, x.instructions, x.filters, x.null_scoping, x.result, x.created_at, x.updated_at,
       e.status, e.error
FROM exports x LEFT JOIN events e ON e.project_id = x.project_id AND e.id = x.id
WHERE x.project_id = $1 AND x.id = $2 AND x.created_at > clock_timestamp() - make_interval(days => $3)
"""


async def find(
    conn: Conn, project_id: int, export_id: UUID, *, kept_days: int
) -> tuple[Export, Status | None, str | None] | None:
    """Return an export with the status and error of its event; None: there is none, or it is too old."""
    row = await conn.fetchrow(_FIND, project_id, export_id, kept_days)
    if row is None:
        return None
    return _export(row), None if row["status"] is None else Status(row["status"]), row["error"]


_NEWEST = """
SELECT project_id, id, '{}'::json AS schema, instructions, filters, null_scoping, NULL::json AS result, created_at, updated_at
FROM exports
WHERE project_id = $1 AND created_at > clock_timestamp() - make_interval(days => $2)
ORDER BY created_at DESC                                        -- index exports_newest
LIMIT $3
"""


async def newest(conn: Conn, project_id: int, *, kept_days: int, limit: int) -> list[Export]:
    """Return the newest exports, newest first, without their schemas and results."""
    return [_export(row) for row in await conn.fetch(_NEWEST, project_id, kept_days, limit)]


_DELETE_OF = "DELETE FROM exports WHERE project_id = $1 AND scope_ids && $2::bigint[]"


async def delete_of(conn: Conn, project_id: int, scope_ids: Collection[int]) -> None:
    """Delete the exports that were made from memories of these scopes."""
    await conn.execute(_DELETE_OF, project_id, list(scope_ids))


_DELETE_OLD = "DELETE FROM exports WHERE created_at <= clock_timestamp() - make_interval(days => $1)"


async def delete_old(conn: Conn, *, kept_days: int) -> None:
    """Delete the exports of all projects that nobody can fetch any more; index exports_age."""
    await conn.execute(_DELETE_OLD, kept_days)


def _export(row: Any) -> Export:
    return Export(**{field.name: row[field.name] for field in fields(Export)})
