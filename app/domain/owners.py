"""Make and delete owners: users, agents, apps and runs."""

from __future__ import annotations

from typing import Any

from app import errors
from app.domain import announce, edit, pins
from app.model import Caller, Condition, Event, Operator, Owner, OwnerKind
from app.runtime import Runtime
from app.store import events, memories, messages, owners, scopes


async def make(
    rt: Runtime, caller: Caller, kind: OwnerKind, name: str, *, title: str | None, metadata: dict[str, Any] | None
) -> Owner:
    """Make an owner before its first memory, or say more about one that exists. Safe to repeat.

    Raises: NotAllowed.
    """
    pins.require_owner(caller, kind, name)
    async with rt.db.transaction(caller.project.id) as conn:
        return await owners.put(conn, caller.project.id, kind, name, title=title, metadata=metadata)


async def find(rt: Runtime, caller: Caller, kind: OwnerKind, name: str) -> Owner:
    """Return the owner that requests call `name`. Raises: NotFound."""
    async with rt.db.acquire(caller.project.id) as conn:
        found = await owners.find(conn, caller.project.id, kind, name)
    if found is None or not pins.covers(caller.pins, kind, name):
        raise _unknown()
    return found


async def find_by_id(rt: Runtime, caller: Caller, kind: OwnerKind, owner_id: int) -> Owner:
    """Return the owner with this number. Raises: NotFound."""
    async with rt.db.acquire(caller.project.id) as conn:
        found = await owners.find_by_id(conn, caller.project.id, kind, owner_id)
    if found is None or not pins.covers(caller.pins, kind, found.name):
        raise _unknown()
    return found


async def delete(
    rt: Runtime, caller: Caller, kind: OwnerKind, name: str, *, idempotency_key: str | None = None
) -> Event:
    """Delete an owner with every memory whose scope names it, and what was said there; return the finished event.

    Memories that it shares with other owners go too. Adds that were accepted before store nothing in those scopes. The
    history of the memories stays, with a DELETE at its end.
    With an `idempotency_key` that was used for the same request, delete nothing.
    Raises: NotFound, NotAllowed, KeyReused.
    """
    pins.require_owner(caller, kind, name)
    project_id = caller.project.id
    node = Condition(f"{kind}_id", Operator.EQ, name)  # the name as it is: "*" is no wildcard here
    payload = {"entity_type": kind, "entity_id": name}
    async with rt.db.transaction(project_id) as conn:
        event, first = await edit.note(conn, caller, "DELETE_USER", payload, idempotency_key)
        if not first:
            return event
        scope_ids = await scopes.matching(conn, project_id, node)
        cancelled = await events.cancel_targets(conn, project_id, scope_ids)
        # Holds the scopes from here on.
        deleted = await memories.delete_where(conn, project_id, node, event_id=event.id)
        await messages.delete_of(conn, project_id, scope_ids)
        if not await owners.delete(conn, project_id, kind, name):
            raise _unknown()
        await events.record(conn, project_id, event.id, [], {"deleted": deleted, "cancelled_adds": cancelled})
        following = await announce.deleted(conn, project_id, event.id)
    await announce.ring(rt, following)
    return event


def _unknown() -> errors.NotFound:
    return errors.NotFound("Entity not found")
