"""Takes due events from the database, a few at a time, for as long as there are any; needs no Redis."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from app import errors, log
from app.domain import attempt
from app.model import Event
from app.runtime import Runtime
from app.store import events, workers
from worker import jobs

BEAT_S = 2.0  #: longest time between two signs of life, however rarely the database is searched for due events
CANCEL_S = 5.0  #: longest wait for a cancelled event to let go; a thread that computes cannot be stopped

_log = log.get("worker")


class Pump:
    """Processes up to `worker_slots` events at the same time. `run` and `tend` are two tasks of one worker."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._slots = rt.settings.worker_slots
        self._running: dict[asyncio.Task[None], Event] = {}
        self._bell = asyncio.Event()
        self._stopping = False
        self._away = False  # the database did not answer last time
        self.id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.on_room: Callable[[bool], None] = lambda _room: None  #: told whether a slot is free, at every change

    @property
    def running(self) -> int:
        """Events that are processed now."""
        return len(self._running)

    def wake(self) -> None:
        """Look for due events now."""
        self._bell.set()

    async def run(self) -> None:
        """Claim and start events until `stop` is called; look again at every ring, every end and every `sweep_s`."""
        while not self._stopping:
            self._bell.clear()
            await self._guarded(self._fill)
            try:
                await asyncio.wait_for(self._bell.wait(), self._rt.settings.sweep_s)
            except TimeoutError:
                continue

    async def tend(self) -> None:
        """Every `sweep_s`, or `BEAT_S`: make events of dead workers due again, and say that this worker lives."""
        while True:
            await self._guarded(self._sweep)
            await asyncio.sleep(min(self._rt.settings.sweep_s, BEAT_S))

    async def _fill(self) -> None:
        while not self._stopping and self.running < self._slots:
            async with self._rt.db.acquire(None) as conn:
                event = await events.claim(conn, lease_s=self._rt.settings.lease_s)
            if event is None:
                return
            self._start(event)

    async def _sweep(self) -> None:
        async with self._rt.db.acquire(None) as conn:
            reclaimed = await events.reclaim_expired(conn, self._rt.settings.retry_delays_s)
            await workers.beat(conn, self.id, slots=self._slots, running=self.running)
        if reclaimed:
            _log.warning("events.reclaimed", count=reclaimed)
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

    def _start(self, event: Event) -> None:
        task = asyncio.create_task(self._one(event))
        self._running[task] = event
        task.add_done_callback(self._ended)
        self.on_room(self.running < self._slots)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("event.outcome_lost", exc_info=error)
        self.on_room(self.running < self._slots)
        self.wake()

    async def _one(self, event: Event) -> None:
        try:
            outcome = await jobs.process(self._rt, event)
        except errors.AppError as error:
            # Nothing could be put down. The lease runs out, and a sweep makes the event due again.
            _log.warning("event.outcome_lost", event_id=str(event.id), code=error.code)
            return
        if isinstance(outcome, attempt.RetryAt):
            # So that a wait of two seconds is two, and not up to a sweep more.
            asyncio.get_running_loop().call_later(outcome.delay_s, self.wake)

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self.wake()

    async def drain(self, hurry: asyncio.Event) -> int:
        """After the end of `run`: wait up to `drain_s`, or until `hurry`, for the running events; give the rest back. Return how many those are.

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
        for event in left.values():  # one that has just finished is fenced off by its status
            await self._give_back(event)
        await self._guarded(self._forget)
        return len(left)

    async def _give_back(self, event: Event) -> None:
        try:
            await attempt.give_back(self._rt, event)
        except errors.DatabaseUnavailable:
            _log.warning("event.not_given_back", event_id=str(event.id))  # its lease runs out instead

    async def _forget(self) -> None:
        async with self._rt.db.acquire(None) as conn:
            await workers.forget(conn, self.id)
