"""Change and delete what is stored. Each change is an event that is finished when the request is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.config import Settings
from app.domain import announce, audit, dedupe, filters, lexemes, limits, link, pins, remember, request
from app.model import OWNER_FIELDS, Caller, Event, FilterNode, Memory, Status, Vectors, WebhookEvent
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
    check(rt.settings, change)
    async with rt.db.acquire(project_id) as conn:
        memory = await memories.get(conn, project_id, memory_id)
    pins.hide(caller, memory)
    if memory.immutable:
        raise errors.InvalidRequest("This memory is immutable: it can be deleted, but not changed.")
    made = (await reworded(rt, [(memory, change)])).get(memory_id, {})
    payload = {"memory_id": str(memory_id), **change.sent()}
    async with rt.db.transaction(project_id) as conn:
        event, first = await note(conn, caller, "UPDATE", payload, idempotency_key)
        if not first:
            return await memories.get(conn, project_id, memory_id)
        if made:
            await remember.know_model(rt, conn)
        changed = await memories.update(conn, project_id, memory_id, edit_of(change, made, event.id))
        await events.record(conn, project_id, event.id, [updated(changed)])
        following = await announce.changed(conn, project_id, WebhookEvent.MEMORY_UPDATE, [changed], event_id=event.id)
    await announce.ring(rt, following)
    return changed


def check(settings: Settings, change: Update) -> None:
    """Refuse a change that passes a limit. Raises: InvalidRequest."""
    if change.text is not UNSET:
        limits.check_text(settings, "text", change.text)
    if change.metadata is not UNSET:
        limits.check_metadata(settings, change.metadata)


def edit_of(change: Update, made: Mapping[str, Any], event_id: UUID) -> MemoryEdit:
    """Return what the store writes: the change, what `reworded` made for it, and the event that it belongs to."""
    return MemoryEdit(
        metadata=change.metadata,
        expiration_date=change.expiration_date,
        created_at=change.created_at,
        event_id=event_id,
        **made,
    )


def updated(memory: Memory) -> dict[str, Any]:
    """Return what an event tells about a memory that it changed."""
    result = {"id": str(memory.id), "event": "UPDATE", "memory": memory.text, "data": {"memory": memory.text}}
    return result | memory.owners.named()


async def reworded(rt: Runtime, changes: Sequence[tuple[Memory, Update]]) -> dict[UUID, dict[str, Any]]:
    """Return, by memory, what of a MemoryEdit is made from its new text; memories whose text stays are left out.

    All texts are embedded together. Holds no connection.
    Raises: EmbedderUnavailable, EmbedderRefused.
    """
    new = [
        (memory, change.text, memory.created_at if change.created_at is UNSET else change.created_at)
        for memory, change in changes
        if change.text is not UNSET and change.text != memory.text
    ]
    if not new:
        return {}
    texts = [text for _, text, _ in new]
    vectors = remember.checked(await rt.embedder.embed(texts), len(texts), rt.embedder.dims)
    return await asyncio.to_thread(_analysed, new, vectors, rt.embedder.model)


def _analysed(new: Sequence[tuple[Memory, str, datetime]], vectors: Vectors, model: str) -> dict[UUID, dict[str, Any]]:
    return {
        memory.id: {
            "text": text,
            "hash": dedupe.md5(text),
            "embedding": vector,
            "model": model,
            "terms": lexemes.document(text, actor=memory.actor, said_at=said_at, previous=None),
            "entities": link.entities(text),
            "categories": None,  # those of the old text; the new one is classified afterwards
            "input": ({"role": memory.role or "user", "content": text},),
        }
        for (memory, text, said_at), vector in zip(new, vectors, strict=True)
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
        event, first = await note(conn, caller, "DELETE", payload, idempotency_key)
        if not first:
            return len(event.results) - 1
        memory = await memories.get(conn, project_id, memory_id)
        pins.hide(caller, memory)
        older = await memories.superseded_by(conn, project_id, memory) if linked else []
        for found in (await memories.get_many(conn, project_id, older)).values() if caller.pins else ():
            pins.hide(caller, found)
        deleted = await memories.delete(conn, project_id, [memory_id, *older], event_id=event.id)
        if memory_id not in deleted:  # another request was faster
            raise errors.MemoryNotFound
        await events.record(conn, project_id, event.id, [{"id": str(gone), "event": "DELETE"} for gone in deleted])
        following = await announce.deleted(conn, project_id, event.id)
    await announce.ring(rt, following)
    return len(deleted) - 1


async def delete_all(
    rt: Runtime, caller: Caller, node: FilterNode, asked: Mapping[str, Any], *, idempotency_key: str | None = None
) -> Event:
    """Delete every memory that matches, and return the event. `asked`: the parameters, as the event keeps them.

    Adds that were accepted before and are not done yet store nothing in the scopes that are emptied as a whole. A tree
    that asks about more than owners empties no scope as a whole: such adds go on, because what they will store is not
    known, and cancelling them would lose memories that nobody asked to delete.
    Implicit null scoping does not apply; the pins of the key do. With an `idempotency_key` that was used for the same request, delete nothing.
    Raises: KeyReused.
    """
    node = pins.narrowed(caller, node)
    project_id = caller.project.id
    async with rt.db.transaction(project_id) as conn:
        event, first = await note(conn, caller, "DELETE_ALL", asked, idempotency_key)
        if not first:
            return event
        cancelled = 0
        if all(condition.field in OWNER_FIELDS for condition in filters.conditions(node)):
            cancelled = await events.cancel_targets(conn, project_id, await scopes.matching(conn, project_id, node))
        deleted = await memories.delete_where(conn, project_id, node, event_id=event.id)
        await events.record(conn, project_id, event.id, [], {"deleted": deleted, "cancelled_adds": cancelled})
        about = audit.marks(caller.project, list(filters.conditions(node)))
        await audit.note(conn, "memories.delete_all", project=caller.project, objects=[event.id, *about])
        following = await announce.deleted(conn, project_id, event.id)
    await announce.ring(rt, following)
    return event


async def note(
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
