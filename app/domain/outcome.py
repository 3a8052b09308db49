"""Wait for what comes of an event, for clients that know no events."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from app.model import Caller, Event, Status
from app.runtime import Runtime
from app.store import events

FIRST_LOOK_S = 0.02
LONGEST_PAUSE_S = 0.5


async def wait(rt: Runtime, caller: Caller, event_id: UUID, *, within_s: float) -> Event:
    """Return the event as soon as it has ended, or as it is after `within_s` seconds. Holds no connection meanwhile.

    Raises: EventNotFound.
    """
    deadline, pause = time.monotonic() + within_s, FIRST_LOOK_S
    while True:
        async with rt.db.acquire(caller.project.id) as conn:
            event = await events.get(conn, caller.project.id, event_id)
        if event.status in (Status.SUCCEEDED, Status.FAILED) or time.monotonic() >= deadline:
            return event
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
