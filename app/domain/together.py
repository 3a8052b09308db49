"""Adds that arrive at the same time are committed together: one statement and one flush to disk for all of them.

Nobody waits for company: an add that finds nothing under way goes at once, and what arrives meanwhile goes next. Each is
answered after the commit that holds it. A group is of one project, because a connection does the work of one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID
from weakref import WeakKeyDictionary

from app import errors
from app.model import Event, Owners
from app.store import arrivals
from app.store.arrivals import Arrival
from app.store.db import Database

GROUP = 100  #: adds in one commit, at most
GROUP_CHARS = 256 * 1024  #: characters of their messages, at most; an add that has more goes by itself
#: A group that takes longer waits for somebody's lock or for a dead connection, and the next goes beside it. A commit
#: takes a few milliseconds.
SLOW_S = 0.1
SCOPES = 2000  #: of one project, that are remembered with their ids
ABREAST = 4  #: groups of one project under way, at most


@dataclass(slots=True, eq=False)
class _Waiting:
    arrival: Arrival
    chars: int
    answer: asyncio.Future[Event | None]


@dataclass(slots=True, eq=False)
class _Group:
    members: Sequence[_Waiting]
    timer: asyncio.TimerHandle | None = None
    slow: bool = False


class _Line:
    """The adds of one project that wait, and the groups that are under way."""

    def __init__(self, db: Database, project_id: int) -> None:
        self._db = db
        self._project_id = project_id
        self._waiting: deque[_Waiting] = deque()
        self._under_way: dict[asyncio.Task[None], _Group] = {}
        self._scopes: dict[Owners, int] = {}  # ids that they had when they were last seen

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is under way."""
        return not self._waiting and not self._under_way

    def join(self, arrival: Arrival, chars: int) -> asyncio.Future[Event | None]:
        """Get in line."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(arrival, chars, loop.create_future())
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            loop.call_soon(self._look)  # after those who arrive in the same turn of the loop
        return waiting.answer

    def _look(self) -> None:
        """Send the next group off, unless one is under way that will be back in a moment."""
        groups = self._under_way.values()
        if len(groups) >= ABREAST or any(not group.slow for group in groups):
            return
        members = self._next()
        if not members:
            return
        group = _Group(members)
        task = asyncio.create_task(self._go(members))
        self._under_way[task] = group
        group.timer = asyncio.get_running_loop().call_later(SLOW_S, self._slow, group)
        task.add_done_callback(self._ended)

    def _slow(self, group: _Group) -> None:
        group.slow = True
        self._look()

    def _ended(self, task: asyncio.Task[None]) -> None:
        group = self._under_way.pop(task)
        if group.timer is not None:
            group.timer.cancel()
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            for member in group.members:
                if not member.answer.done():
                    member.answer.set_exception(_own(error))
        self._look()

    def _next(self) -> list[_Waiting]:
        members: list[_Waiting] = []
        chars = 0
        while self._waiting and len(members) < GROUP:
            first = self._waiting[0]
            if members and chars + first.chars > GROUP_CHARS:
                break
            self._waiting.popleft()
            if not first.answer.done():  # its caller has left before anything was done
                members.append(first)
                chars += first.chars
        return members

    async def _go(self, members: Sequence[_Waiting]) -> None:
        stored: Mapping[UUID, Event] = {}
        try:
            stored = await self._insert([one.arrival for one in members])
        except errors.TryLater:
            raise
        except errors.AppError:
            pass  # of one of them, who hears of it when it goes alone
        for one in members:
            if not one.answer.done():
                one.answer.set_result(stored.get(one.arrival.event_id))

    async def _insert(self, arrived: Sequence[Arrival]) -> Mapping[UUID, Event]:
        if all(owners in self._scopes for one in arrived for owners in (one.owners, *one.targets)):
            async with self._db.acquire(self._project_id) as conn:
                stored = await arrivals.insert_known(conn, self._project_id, arrived, self._scopes)
            if stored:
                return stored
            self._scopes.clear()  # one of them was deleted; the other statement makes what is missing
        async with self._db.acquire(self._project_id) as conn:
            stored = await arrivals.insert(conn, self._project_id, arrived)
        if len(self._scopes) > SCOPES:
            self._scopes.clear()
        for one in arrived:
            if (event := stored.get(one.event_id)) is not None and event.scope_id is not None:
                self._scopes[one.owners] = event.scope_id
                self._scopes.update(zip(one.targets, event.target_scope_ids, strict=True))
        return stored


def _own(error: BaseException) -> BaseException:
    """Return the error for one of several callers: a traceback belongs to one."""
    if not isinstance(error, errors.DatabaseUnavailable):
        return error
    own = errors.DatabaseUnavailable(error.message)
    own.__cause__ = error.__cause__
    return own


_lines: WeakKeyDictionary[Database, dict[int, _Line]] = WeakKeyDictionary()
LINES = 1000  #: projects remembered at most; those that are idle are forgotten then


async def insert(db: Database, project_id: int, arrival: Arrival, *, chars: int) -> Event | None:
    """Record an add as a pending event and return it, committed; None: it is to be recorded by itself, nothing is stored.

    `chars`: of its messages.
    Raises: DatabaseUnavailable, when nobody knows whether it is stored.
    """
    if not db.concurrent or chars > GROUP_CHARS:
        return None
    lines = _lines.setdefault(db, {})
    line = lines.get(project_id)
    if line is None:
        if len(lines) >= LINES:
            for other in [other for other, known in lines.items() if known.idle]:
                del lines[other]
        line = lines[project_id] = _Line(db, project_id)
    return await line.join(arrival, chars)
