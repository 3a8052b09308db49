"""Backpressure: work is refused before it is accepted, never lost afterwards."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from app import errors
from app.model import Project
from app.runtime import Runtime
from app.store import events

CHECK_S = 1.0  #: a project's backlog is looked at so often at most, in each process
CACHE_PROJECTS = 10_000  #: projects remembered at most
RETRY_AFTER_S = 10  #: what a refusal advises; a backlog of thousands does not clear sooner


@dataclass(slots=True)
class _Room:
    read_at: float = float("-inf")  # by the monotonic clock
    left: int = 0  # events that may still be accepted
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)


_rooms: dict[str, _Room] = {}  # public id of a project


async def require_room(rt: Runtime, project: Project) -> None:
    """Refuse when `max_pending` events of the project wait already.

    What other processes accept within `CHECK_S` is not seen, so that the limit can be passed by that much.
    Raises: RateLimited, with seconds to wait.
    """
    limit = rt.settings.max_pending
    if limit == 0:
        return
    room = _rooms.get(project.public_id)
    if room is None:
        if len(_rooms) >= CACHE_PROJECTS:
            _rooms.clear()
        room = _rooms[project.public_id] = _Room()
    async with room.looking:
        now = time.monotonic()
        if now - room.read_at >= CHECK_S:
            async with rt.db.acquire(project.id) as conn:
                room.left = limit - await events.count_pending(conn, project.id, most=limit)
            room.read_at = now
    if room.left <= 0:
        raise errors.RateLimited(
            f"{limit} events of this project wait to be processed; try again later (MEMORYD_MAX_PENDING).",
            retry_after_s=RETRY_AFTER_S,
        )
    room.left -= 1


def forget() -> None:
    """Look at every backlog anew; for tests, and after one was cleared."""
    _rooms.clear()
