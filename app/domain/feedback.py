"""Say whether a memory is useful."""

from __future__ import annotations

from uuid import UUID

from app import errors
from app.domain import pins
from app.model import Caller
from app.runtime import Runtime
from app.store import feedback, memories

VALUES = ("POSITIVE", "NEGATIVE", "VERY_NEGATIVE")


async def give(rt: Runtime, caller: Caller, memory_id: UUID, value: str | None, reason: str | None) -> None:
    """Replace the feedback on a memory; without a value and a reason, remove it. Safe to repeat.

    Raises: MemoryNotFound.
    """
    project_id = caller.project.id
    async with rt.db.transaction(project_id) as conn:
        if caller.pins:
            pins.hide(caller, await memories.get(conn, project_id, memory_id))
        if value is None and reason is None:
            known = await feedback.clear(conn, project_id, memory_id)
        else:
            known = await feedback.put(conn, project_id, memory_id, feedback=value, reason=reason)
        if not known:
            raise errors.MemoryNotFound
