"""Change and delete what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.domain import dedupe, filters, lexemes, limits, link, remember, request
from app.model import OWNER_FIELDS, Caller, Event, FilterNode, Memory, Status
from app.runtime import Runtime
from app.store import events, memories, scopes
from app.store.memories import UNSET, MemoryEdit, Unset


@dataclass(frozen=True, slots=True)
class Update:
    """What a caller changes of a memory; what is unset stays."""

    text: str | Unset = UNSET
    metadata: dict[str, Any] | Unset = UNSET  # replaces the whole
    expiration_date: date | None | Unset = UNSET  # None: for ever
    created_at: datetime | Unset = UNSET  # aware


async def update(rt: Runtime, caller: Caller, memory_id: UUID, change: Update) -> Memory:
    """Change one memory and return it as it is then; a failure leaves it whole.

    Raises: MemoryNotFound; InvalidRequest when it is immutable or a limit is passed; Conflict when another memory of the
    same owners has the text; EmbedderUnavailable, EmbedderRefused.
    """
    project_id = caller.project.id
    if change.text is not UNSET:
        limits.check_text(rt.settings, "text", change.text)
    if change.metadata is not UNSET:
        limits.check_metadata(rt.settings, change.metadata)
    async with rt.db.acquire(project_id) as conn:
        memory = await memories.get(conn, project_id, memory_id)
    if memory.immutable:
        raise errors.InvalidRequest("This memory is immutable: it can be deleted, but not changed.")
    edit = MemoryEdit(
        metadata=change.metadata,
        expiration_date=change.expiration_date,
        created_at=change.created_at,
        **await _reworded(rt, memory, change),
    )
    async with rt.db.transaction(project_id) as conn:
        if edit.model is not UNSET:
            await remember.know_model(rt, conn)
        return await memories.update(conn, project_id, memory_id, edit)


async def _reworded(rt: Runtime, memory: Memory, change: Update) -> dict[str, Any]:
    """Return everything that is made from a new text; nothing when the text stays."""
    text = change.text
    if text is UNSET or text == memory.text:
        return {}
    vectors = remember.checked(await rt.embedder.embed([text]), 1, rt.embedder.dims)
    said_at = memory.created_at if change.created_at is UNSET else change.created_at
    terms = await asyncio.to_thread(lexemes.document, text, actor=memory.actor, said_at=said_at, previous=None)
    return {
        "text": text,
        "hash": dedupe.md5(text),
        "embedding": vectors[0],
        "model": rt.embedder.model,
        "terms": terms,
        "entities": await asyncio.to_thread(link.entities, text),
        "input": ({"role": memory.role or "user", "content": text},),
    }


async def delete(rt: Runtime, caller: Caller, memory_id: UUID, *, linked: bool = False) -> int:
    """Delete one memory, and with `linked` the chain of older ones that it superseded; return how many of those went.

    Raises: MemoryNotFound.
    """
    project_id = caller.project.id
    async with rt.db.transaction(project_id) as conn:
        memory = await memories.get(conn, project_id, memory_id)
        older = await memories.superseded_by(conn, project_id, memory) if linked else []
        deleted = await memories.delete(conn, project_id, [memory_id, *older])
        if memory_id not in deleted:  # another request was faster
            raise errors.MemoryNotFound
    return len(deleted) - 1


async def delete_all(
    rt: Runtime, caller: Caller, node: FilterNode, asked: Mapping[str, Any], *, idempotency_key: str | None = None
) -> Event:
    """Delete every memory that matches, and return the event, which is finished then.

    Adds that were accepted before and are not done yet store nothing in the scopes that are emptied as a whole. A tree
    that asks about more than owners empties no scope as a whole: such adds go on, because what they will store is not
    known, and cancelling them would lose memories that nobody asked to delete.
    Implicit null scoping does not apply. Raises: KeyReused.
    """
    project_id = caller.project.id
    payload = dict(asked)
    body_print = request.fingerprint("DELETE_ALL", payload) if idempotency_key else None
    async with rt.db.transaction(project_id) as conn:
        event_id = uuid7()
        event = await events.insert(
            conn,
            project_id,
            event_id,
            "DELETE_ALL",
            payload,
            status=Status.SUCCEEDED,
            idempotency_key=idempotency_key,
            idempotency_print=body_print,
        )
        if event.id != event_id:  # asked before, with the same key
            return event
        cancelled = 0
        if all(condition.field in OWNER_FIELDS for condition in filters.conditions(node)):
            cancelled = await events.cancel_targets(conn, project_id, await scopes.matching(conn, project_id, node))
        deleted = await memories.delete_where(conn, project_id, node)
        await events.record(conn, project_id, event_id, [], {"deleted": deleted, "cancelled_adds": cancelled})
    return event
