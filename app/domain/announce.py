"""The one place where a transaction says which memories it changed; what follows from that is put down here, with it.

Whatever is put down here happens exactly when the change does: it is a row of the same transaction, and a worker takes it
from there, however often somebody is killed in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.domain import deliver
from app.model import Memory, Owners, WebhookEvent
from app.runtime import Runtime
from app.store import announcements, events
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
    event_id: UUID | None = None,
    custom_categories: Sequence[Any] | None = None,
) -> list[UUID]:
    """Say in the caller's transaction that these memories were changed, and are now as given.

    Endpoints that ask for such changes get a delivery of each. New texts are classified afterwards, by
    `custom_categories` or else by the project's list. `event_id`: the request, unless it is the one that added them.
    Return what follows, to `ring` for after the commit; without a ring it waits for the next sweep.
    """
    notices = [deliver.of_memory(change, memory, event_id) for memory in memories]
    told = await deliver.announce(conn, project_id, notices)
    following = [event_id or uuid7()] if told else []
    new = [memory.id for memory in memories if memory.categories is None]
    if change not in _OF_TEXT or not new:
        return following
    payload: dict[str, Any] = {"memory_ids": [str(memory_id) for memory_id in new]}
    if custom_categories:
        payload["custom_categories"] = list(custom_categories)
    event = await events.insert(conn, project_id, uuid7(), CATEGORIZE, payload)
    return [event.id]


async def deleted(conn: Conn, project_id: int, event_id: UUID) -> list[UUID]:
    """Say in the caller's transaction that this request has deleted memories; return what follows, as `changed` does."""
    return [event_id] if await announcements.insert_deleted(conn, project_id, event_id) else []


async def ingested(
    conn: Conn,
    project_id: int,
    event_id: UUID,
    owners: Owners,
    results: Sequence[dict[str, Any]],
    *,
    cancelled: bool = False,
) -> list[UUID]:
    """Say in the caller's transaction that an add has ended well; return what follows, as `changed` does.

    `cancelled`: a delete_all kept all of it from being stored, or the part that is not among `results`.
    """
    notice = deliver.of_ingest(event_id, owners, results, cancelled=cancelled)
    return [event_id] if await deliver.announce(conn, project_id, [notice]) else []


async def ring(rt: Runtime, following: Sequence[UUID]) -> None:
    """Ring for what follows, once the change is committed."""
    for event_id in following:
        await rt.queue.ring(event_id)
