"""Rows of events: their columns, and how one is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.model import Event, Status

COLUMNS = (
    "project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint,"
    " results, metadata, error_code, error, created_at, updated_at, started_at, completed_at"
)
E_COLUMNS = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))


def count(tag: str) -> int:
    """Return the number of rows from a command tag such as `UPDATE 3`."""
    return int(tag.rsplit(" ", 1)[-1])


def done(tag: str) -> bool:
    """True if the command changed its one row; False: there was none, or another worker has it."""
    return count(tag) == 1


def event(row: Mapping[str, Any]) -> Event:
    """Return the event of a row with COLUMNS."""
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
