"""Takes due work from the database, a few pieces at a time, for as long as there is any; needs no Redis."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from app import errors, log, metrics
from app.runtime import Runtime

BEAT_S = 2.0  #: longest time between two rounds of `tend`, however rarely the database is searched for due work
CANCEL_S = 5.0  #: longest wait for cancelled work to let go; a thread that computes cannot be stopped
SOON_S = 60.0  #: work that comes back within this is waited for; later, a sweep finds it

T = TypeVar("T")

_log = log.get("worker")


class Slots(ABC, Generic[T]):
    """Works on up to `slots` pieces at the same time. `run` and `tend` are two tasks of one worker."""

    def __init__(self, rt: Runtime, slots: int) -> None:
        self._rt = rt
        self.slots = slots
        self._running: dict[asyncio.Task[None], T] = {}
        self._bell = asyncio.Event()
        self._stopping = False
        self._away = False  # the database did not answer last time
        self.on_wake: Callable[[], None] = lambda: None  #: called at every ring and every end of a piece
        self.on_room: Callable[[bool], None] = lambda _room: None  #: told whether a slot is free, at every change

    @abstractmethod
    async def claim(self) -> T | None:
        """Take a piece of due work; None: there is none."""

    @abstractmethod
    async def work(self, item: T) -> float | None:
        """Do a claimed piece; return in how many seconds it is due again. None: it is done, or somebody else's.

        Raises: AppError when the outcome could not be put down; the lease runs out then.
        """

    @abstractmethod
    async def sweep(self) -> int:
        """Make the work of dead workers due again; return how much of it."""

    @abstractmethod
    async def give_back(self, item: T) -> None:
        """Return a claimed piece undone. Raises: DatabaseUnavailable."""

    async def forget(self) -> None:
        """Say that this worker ends."""

    @property
    def running(self) -> int:
        """Pieces that are worked on now."""
        return len(self._running)

    def wake(self) -> None:
        """Look for due work now."""
        self._bell.set()
        self.on_wake()

    async def run(self) -> None:
        """Claim and start work until `stop` is called; look again at every ring, every end and every `sweep_s`."""
        while not self._stopping:
            self._bell.clear()
            await self._guarded(self._fill)
            try:
                await asyncio.wait_for(self._bell.wait(), self._rt.settings.sweep_s)
            except TimeoutError:
                continue

    async def tend(self) -> None:
        """Sweep every `sweep_s`, or `BEAT_S`, for ever."""
        while True:
            await self._guarded(self._swept)
            await asyncio.sleep(min(self._rt.settings.sweep_s, BEAT_S))

    async def _fill(self) -> None:
        while not self._stopping and self.running < self.slots:
            item = await self.claim()
            if item is None:
                return
            self._start(item)

    async def _swept(self) -> None:
        if reclaimed := await self.sweep():
            metrics.count("work_reclaimed", by=reclaimed, kind=type(self).__name__.lower())
            _log.warning("work.reclaimed", kind=type(self).__name__, count=reclaimed)
            self.wake()

    async def _guarded(self, look: Callable[[], Awaitable[None]]) -> None:
        """Run one look at the database; log a failure once, not at every look, and go on."""
        try:
            await look()
        except errors.DatabaseUnavailable as error:
            if not self._away:
                _log.warning("database.unavailable", error=str(error.__cause__ or error))
            self._away = True
        except Exception:  # noqa: BLE001 - the worker's door: a bug in one look must not stop all work for good
            _log.exception("worker.look_failed")
        else:
            self._away = False

    def _start(self, item: T) -> None:
        task = asyncio.create_task(self._one(item))
        self._running[task] = item
        task.add_done_callback(self._ended)
        self.on_room(self.running < self.slots)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("work.outcome_lost", exc_info=error)
        self.on_room(self.running < self.slots)
        self.wake()

    async def _one(self, item: T) -> None:
        try:
            delay_s = await self.work(item)
        except errors.AppError as error:
            # Nothing could be put down. The lease runs out, and a sweep makes it due again.
            _log.warning("work.outcome_lost", kind=type(self).__name__, code=error.code)
            return
        if delay_s is not None and delay_s <= SOON_S:
            # So that a wait of two seconds is two, and not up to a sweep more.
            asyncio.get_running_loop().call_later(delay_s, self.wake)

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self.wake()

    async def drain(self, hurry: asyncio.Event) -> int:
        """After the end of `run`: wait up to `drain_s`, or until `hurry`, for what runs; give the rest back. Return how much that is.

        What is given back has cost no attempt and is due at once.
        """
        if self._running:
            hurried = asyncio.create_task(hurry.wait())
            ends: list[asyncio.Future[Any]] = [hurried, asyncio.gather(*self._running, return_exceptions=True)]
            await asyncio.wait(ends, timeout=self._rt.settings.drain_s, return_when=asyncio.FIRST_COMPLETED)
            hurried.cancel()
        left = dict(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_S)
        for item in left.values():  # one that has just finished is fenced off by its status
            await self._give_back(item)
        await self._guarded(self.forget)
        return len(left)

    async def _give_back(self, item: T) -> None:
        try:
            await self.give_back(item)
        except errors.DatabaseUnavailable:
            _log.warning("work.not_given_back", kind=type(self).__name__)  # its lease runs out instead
