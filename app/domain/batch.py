"""Change or delete many memories at once: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app import errors
from app.domain import announce, audit, edit, pins, remember
from app.model import Caller, Memory, WebhookEvent
from app.runtime import Runtime
from app.store import events, memories
from app.store.db import Conn

LIMIT = 1000  #: memories in one request, as on the hosted platform


async def update(
    rt: Runtime, caller: Caller, changes: Sequence[tuple[UUID, edit.Update]], *, idempotency_key: str | None = None
) -> int:
    """Change memories in one transaction and return how many. New texts are embedded together.

    With an `idempotency_key` that was used for the same changes, change nothing.
    Raises: InvalidRequest when a memory is named twice or is immutable, or a limit is passed; MemoryNotFound; Conflict
    when a new text is another memory's of the same owners; KeyReused; EmbedderUnavailable, EmbedderRefused.
    """
    project_id = caller.project.id
    _refuse_repeats([memory_id for memory_id, _ in changes])
    for _, change in changes:
        edit.check(rt.settings, change)
    async with rt.db.acquire(project_id) as conn:
        found = await _all(conn, caller, [memory_id for memory_id, _ in changes])
    for memory in found.values():
        if memory.immutable:
            raise errors.InvalidRequest(
                f"The memory {memory.id} is immutable: it can be deleted, but not changed. Nothing was changed."
            )
    made = await edit.reworded(rt, [(found[memory_id], change) for memory_id, change in changes])
    payload = {"memories": [{"memory_id": str(memory_id), **change.sent()} for memory_id, change in changes]}
    async with rt.db.transaction(project_id) as conn:
        event, first = await edit.note(conn, caller, "UPDATE", payload, idempotency_key)
        if not first:
            return len(event.results)
        if made:
            await remember.know_model(rt, conn)
        edits = {memory_id: edit.edit_of(change, made.get(memory_id, {}), event.id) for memory_id, change in changes}
        changed = await memories.update_many(conn, project_id, edits)
        await events.record(conn, project_id, event.id, [edit.updated(memory) for memory in changed])
        following = await announce.changed(conn, project_id, WebhookEvent.MEMORY_UPDATE, changed, event_id=event.id)
    await announce.ring(rt, following)
    return len(changed)


async def delete(rt: Runtime, caller: Caller, ids: Sequence[UUID], *, idempotency_key: str | None = None) -> int:
    """Delete memories in one transaction and return how many; one that is named twice is deleted once.

    With an `idempotency_key` that was used for the same memories, return its answer again.
    Raises: MemoryNotFound, with nothing deleted; KeyReused.
    """
    project_id = caller.project.id
    wanted = list(dict.fromkeys(ids))
    payload = {"memories": [{"memory_id": str(memory_id)} for memory_id in wanted]}
    async with rt.db.transaction(project_id) as conn:
        event, first = await edit.note(conn, caller, "DELETE", payload, idempotency_key)
        if not first:
            return len(event.results)
        await _all(conn, caller, wanted)
        deleted = await memories.delete(conn, project_id, wanted, event_id=event.id)
        if len(deleted) < len(wanted):  # another request was faster
            raise errors.MemoryNotFound
        await events.record(conn, project_id, event.id, [{"id": str(gone), "event": "DELETE"} for gone in wanted])
        await audit.note(conn, "memories.delete_batch", project=caller.project, objects=[event.id])
        following = await announce.deleted(conn, project_id, event.id)
    await announce.ring(rt, following)
    return len(deleted)


async def _all(conn: Conn, caller: Caller, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Return these memories. Raises: MemoryNotFound when one does not exist; the text names it."""
    found = await memories.get_many(conn, caller.project.id, ids)
    found = {memory.id: memory for memory in found.values() if pins.allows(caller.pins, memory.owners)}
    missing = next((memory_id for memory_id in ids if memory_id not in found), None)
    if missing is not None:
        raise errors.MemoryNotFound(f"Memory not found! There is no memory {missing}; nothing was changed.")
    return found


def _refuse_repeats(ids: Sequence[UUID]) -> None:
    seen: set[UUID] = set()
    for position, memory_id in enumerate(ids):
        if memory_id in seen:
            raise errors.InvalidRequest(f"memories[{position}].memory_id is given twice: {memory_id}.")
        seen.add(memory_id)
