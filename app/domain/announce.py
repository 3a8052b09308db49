"""The one place where a transaction says which memories it changed; what follows from that is put down here, with it.

Whatever is put down here happens exactly when the change does: it is a row of the same transaction, and a worker takes it
from there, however often somebody is killed in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.model import Memory, WebhookEvent
from app.runtime import Runtime
from app.store import events
from app.store.db import Conn

CATEGORIZE = "CATEGORIZE"  #: the kind of event that gives memories their categories

#: Changes after which a memory may have a text that nobody has classified.
_OF_TEXT = (WebhookEvent.MEMORY_ADD, WebhookEvent.MEMORY_UPDATE)


async def changed(
    conn: Conn,
    project_id: int,
    change: WebhookEvent,
    memories: Sequence[Memory],
    *,
    custom_categories: Sequence[Any] | None = None,
) -> list[UUID]:
    """Say in the caller's transaction that these memories were changed, and are now as given.

    New texts are classified afterwards, by `custom_categories` or else by the project's list.
    Return the events that follow, to `ring` for after the commit; without a ring they wait for the next sweep.
    """
    if change not in _OF_TEXT:
        return []
    new = [memory.id for memory in memories if memory.categories is None]
    if not new:
        return []
    payload: dict[str, Any] = {"memory_ids": [str(memory_id) for memory_id in new]}
    if custom_categories:
        payload["custom_categories"] = list(custom_categories)
    event = await events.insert(conn, project_id, uuid7(), CATEGORIZE, payload)
    return [event.id]


async def ring(rt: Runtime, following: Sequence[UUID]) -> None:
    """Ring for what follows, once the change is committed."""
    for event_id in following:
        await rt.queue.ring(event_id)
