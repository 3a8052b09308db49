"""Make and find owners: users, agents, apps and runs."""

from __future__ import annotations

from typing import Any

from app.domain import erase, pins
from app.model import Caller, Owner, OwnerKind
from app.runtime import Runtime
from app.store import owners


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
        raise erase.unknown()
    return found
