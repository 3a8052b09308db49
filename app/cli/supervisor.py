"""Keeps a row of processes running: starts what died, ends all in reverse order, and hears signals between two steps."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from app.servers import process

_T = TypeVar("_T")

FIRST_DELAY_S = 0.5  #: before a process that died is started again; doubles while it keeps dying
LONGEST_DELAY_S = 30.0
STABLE_S = 60.0  #: a process that ran so long died of something new
_LOOK_S = 0.2
_TRIM_S = 30.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Check = Callable[[], bool]


class Stopped(Exception):
    """Somebody asked us to stop: not an error."""


class Service(Protocol):
    """One process that is kept running."""

    child: process.Child

    def spawn(self) -> None:
        """Start it and return at once."""

    def stop(self, *, hasten: Callable[[], bool]) -> None:
        """End it, at once when `hasten` says so. Safe to repeat."""


class Program:
    """A service that is a plain program of ours."""

    def __init__(self, child: process.Child, command: list[str], *, env: dict[str, str], cwd: str, timeout_s: float):
        """`timeout_s`: how long it may take to end."""
        self.child = child
        self._command = command
        self._env = env
        self._cwd = cwd
        self._timeout_s = timeout_s

    def spawn(self) -> None:
        """Start it and return at once."""
        self.child.spawn(self._command, env=self._env, cwd=self._cwd)

    def stop(self, *, hasten: Callable[[], bool]) -> None:
        """Ask it to end."""
        self.child.end(signal.SIGTERM, timeout_s=self._timeout_s, hasten=hasten)


class _Watch:
    """One service, and when it was and will be started."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started_at = time.monotonic()
        self.due_at: float | None = None
        self.delay_s = FIRST_DELAY_S


class Supervisor:
    """Use it as a context manager in the main thread: leaving it ends all services, the last one added first."""

    def __init__(self, say: Callable[[str], None], *, parent: int | None = None) -> None:
        """`say` shows a line to the operator. `parent`: stop when our parent is not this process any more."""
        self._say = say
        self._parent = parent
        self._watches: list[_Watch] = []
        self._signals = 0
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Supervisor:
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        """End all. A signal from now on means that it does not go fast enough."""
        before = self._signals
        with contextlib.ExitStack() as ending:  # an error with one of them does not spare the others
            for number, handler in self._handlers.items():
                ending.callback(signal.signal, number, handler)
            for watch in self._watches:
                ending.callback(watch.service.stop, hasten=lambda: self._signals > before)

    def _heard(self, _number: int, _frame: object) -> None:
        self._signals += 1

    def tick(self) -> None:
        """Raise Stopped if somebody asked us to stop. Every wait asks this several times a second."""
        if self._signals or (self._parent is not None and os.getppid() != self._parent):
            raise Stopped

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end, or until somebody asks us to stop."""
        return asyncio.run(self._attended(work))

    async def _attended(self, work: Coroutine[Any, Any, _T]) -> _T:
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_LOOK_S)
                self.tick()
            return task.result()
        finally:
            task.cancel()

    def add(self, service: Service) -> None:
        """Take over a service that was started, or is about to be; it is ended when we leave."""
        self._watches.append(_Watch(service))

    def dead(self) -> Service | None:
        """Return a service that does not run, if there is one."""
        return next((watch.service for watch in self._watches if not watch.service.child.alive()), None)

    def watch(self) -> None:
        """Start again what dies, and keep the logs short, until somebody asks us to stop: raises Stopped."""
        trimmed_at = time.monotonic()
        while True:
            self.tick()
            now = time.monotonic()
            for watch in self._watches:
                self._look_after(watch, now)
            if now - trimmed_at > _TRIM_S:
                trimmed_at = now
                for watch in self._watches:
                    process.trim_log(watch.service.child.log)
            time.sleep(_LOOK_S)

    def _look_after(self, watch: _Watch, now: float) -> None:
        child = watch.service.child
        if watch.due_at is not None:
            if now >= watch.due_at:
                self._start_again(watch, now)
        elif not child.alive():
            if now - watch.started_at > STABLE_S:
                watch.delay_s = FIRST_DELAY_S
            self._say(
                f"{child.name} ended ({ending(child)}); starting it again in {watch.delay_s:g} s. See {child.log}"
            )
            watch.due_at = now + watch.delay_s
            watch.delay_s = min(2 * watch.delay_s, LONGEST_DELAY_S)

    def _start_again(self, watch: _Watch, now: float) -> None:
        watch.due_at, watch.started_at = None, now
        try:
            watch.service.spawn()
        except OSError as error:  # no memory or no process left: it may pass
            self._say(f"{watch.service.child.name} cannot be started: {error.strerror}")


def ending(child: process.Child) -> str:
    """Return how a process ended, for people."""
    code = child.code or 0
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
