"""Change and delete what is stored. Each change is an event that is finished when the request is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.domain import dedupe, filters, lexemes, limits, link, remember, request
from app.model import OWNER_FIELDS, Caller, Event, FilterNode, Memory, Status
from app.runtime import Runtime
from app.store import events, memories, scopes
from app.store.db import Conn
from app.store.memories import UNSET, MemoryEdit, Unset


@dataclass(frozen=True, slots=True)
class Update:
    """What a caller changes of a memory; what is unset stays."""

    text: str | Unset = UNSET
    metadata: dict[str, Any] | Unset = UNSET  # replaces the whole
    expiration_date: date | None | Unset = UNSET  # None: for ever
    created_at: datetime | Unset = UNSET  # aware

    def sent(self) -> dict[str, Any]:
        """Return what is set, as JSON has it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in values.items()
            if value is not UNSET
        }


async def update(
    rt: Runtime, caller: Caller, memory_id: UUID, change: Update, *, idempotency_key: str | None = None
) -> Memory:
    """Change one memory and return it as it is then; a failure leaves it whole.

    With an `idempotency_key` that was used for the same change, change nothing.
    Raises: MemoryNotFound; InvalidRequest when it is immutable or a limit is passed; Conflict when another memory of the
    same owners has the text; KeyReused; EmbedderUnavailable, EmbedderRefused.
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
    reworded = await _reworded(rt, memory, change)
    payload = {"memory_id": str(memory_id), **change.sent()}
    async with rt.db.transaction(project_id) as conn:
        event, first = await _note(conn, caller, "UPDATE", payload, idempotency_key)
        if not first:
            return await memories.get(conn, project_id, memory_id)
        if reworded:
            await remember.know_model(rt, conn)
        edit = MemoryEdit(
            metadata=change.metadata,
            expiration_date=change.expiration_date,
            created_at=change.created_at,
            event_id=event.id,
            **reworded,
        )
        changed = await memories.update(conn, project_id, memory_id, edit)
        result = {"id": str(memory_id), "event": "UPDATE", "memory": changed.text, "data": {"memory": changed.text}}
        await events.record(conn, project_id, event.id, [result | changed.owners.named()])
    return changed


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


async def delete(
    rt: Runtime, caller: Caller, memory_id: UUID, *, linked: bool = False, idempotency_key: str | None = None
) -> int:
    """Delete one memory, and with `linked` the chain of older ones that it superseded; return how many of those went.

    With an `idempotency_key` that was used for the same request, return its answer again.
    Raises: MemoryNotFound, KeyReused.
    """
    project_id = caller.project.id
    payload = {"memory_id": str(memory_id), "delete_linked": linked}
    async with rt.db.transaction(project_id) as conn:
        event, first = await _note(conn, caller, "DELETE", payload, idempotency_key)
        if not first:
            return len(event.results) - 1
        memory = await memories.get(conn, project_id, memory_id)
        older = await memories.superseded_by(conn, project_id, memory) if linked else []
        deleted = await memories.delete(conn, project_id, [memory_id, *older])
        if memory_id not in deleted:  # another request was faster
            raise errors.MemoryNotFound
        await events.record(conn, project_id, event.id, [{"id": str(gone), "event": "DELETE"} for gone in deleted])
    return len(deleted) - 1


async def delete_all(
    rt: Runtime, caller: Caller, node: FilterNode, asked: Mapping[str, Any], *, idempotency_key: str | None = None
) -> Event:
    """Delete every memory that matches, and return the event. `asked`: the parameters, as the event keeps them.

    Adds that were accepted before and are not done yet store nothing in the scopes that are emptied as a whole. A tree
    that asks about more than owners empties no scope as a whole: such adds go on, because what they will store is not
    known, and cancelling them would lose memories that nobody asked to delete.
    Implicit null scoping does not apply. With an `idempotency_key` that was used for the same request, delete nothing.
    Raises: KeyReused.
    """
    project_id = caller.project.id
    async with rt.db.transaction(project_id) as conn:
        event, first = await _note(conn, caller, "DELETE_ALL", asked, idempotency_key)
        if not first:
            return event
        cancelled = 0
        if all(condition.field in OWNER_FIELDS for condition in filters.conditions(node)):
            cancelled = await events.cancel_targets(conn, project_id, await scopes.matching(conn, project_id, node))
        deleted = await memories.delete_where(conn, project_id, node)
        await events.record(conn, project_id, event.id, [], {"deleted": deleted, "cancelled_adds": cancelled})
    return event


async def _note(
    conn: Conn, caller: Caller, kind: str, payload: Mapping[str, Any], key: str | None
) -> tuple[Event, bool]:
    """Insert the event of a change that this transaction makes; False: it was made before, under the same key.

    Raises: KeyReused.
    """
    event_id = uuid7()
    event = await events.insert(
        conn,
        caller.project.id,
        event_id,
        kind,
        payload,
        status=Status.SUCCEEDED,
        idempotency_key=key,
        idempotency_print=None if key is None else request.fingerprint(kind, payload),
    )
    return event, event.id == event_id
