"""One attempt at an event: hold its lease while working, and put down what came of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from app import errors, log, metrics
from app.model import Event
from app.runtime import Runtime
from app.store import announcements, claims
from app.store.db import Conn

JITTER = 0.2  #: share by which a wait differs, so that events that failed together do not come back together
LONGEST_WAIT_S = 3600.0  #: a server's Retry-After beyond this is not obeyed
LONGEST_TEXT = 500  #: characters of an error that an event shows
#: Waits between the tries to put an outcome down; a database that is away longer finds the lease expired instead.
SETTLE_DELAYS_S = (0.2, 1.0, 3.0)

_log = log.get(__name__)


class Fenced(Exception):
    """Another worker has the event now; whatever this one did must not be stored."""


@dataclass(frozen=True, slots=True)
class Done:
    """The event SUCCEEDED."""

    added: int  # memories


@dataclass(frozen=True, slots=True)
class RetryAt:
    """The attempt failed, and another follows."""

    delay_s: float
    code: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The event FAILED."""

    code: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Another worker has the event; nothing was changed."""


Outcome = Done | RetryAt | GaveUp | Lost


async def run(rt: Runtime, event: Event, work: Coroutine[Any, Any, int]) -> Outcome:
    """Do `work`, which finishes the event and returns the number of added memories, and return what came of it.

    Raises: whatever `work` raises that is no AppError; then `failed` is the caller's to call.
    """
    try:
        return Done(await _under_lease(rt, event, work))
    except Fenced:
        return Lost()
    except errors.AppError as error:
        return await failed(rt, event, error)


async def failed(rt: Runtime, event: Event, error: errors.AppError) -> Outcome:
    """Put down that the attempt failed: another one later, or FAILED when none is left or none can help.

    Raises: DatabaseUnavailable when it cannot be put down; the lease runs out then, and a sweep finds the event.
    """
    text = log.redact(error.message)[:LONGEST_TEXT]
    delay_s = next_delay(rt.settings.retry_delays_s, event.attempts, error)
    if delay_s is None:
        held = await settle(rt, event.project_id, lambda conn: _fail(conn, event, error.code, text))
        return GaveUp(error.code) if held else Lost()
    held = await settle(rt, event.project_id, lambda conn: claims.retry_at(conn, event, delay_s, error.code, text))
    return RetryAt(delay_s, error.code) if held else Lost()


async def _fail(conn: Conn, event: Event, code: str, text: str) -> bool:
    held = await claims.fail(conn, event, code, text)
    if held:
        await announcements.insert_failed(conn, event.project_id, event.id)
    return held


def next_delay(delays_s: tuple[float, ...], attempts: int, error: errors.AppError) -> float | None:
    """Return the seconds until the next attempt, after `attempts` of them; None: there is none."""
    if not error.retryable or attempts > len(delays_s):
        return None
    delay_s = delays_s[max(attempts, 1) - 1] * random.uniform(1 - JITTER, 1 + JITTER)
    return max(delay_s, min(float(error.retry_after_s or 0), LONGEST_WAIT_S))


async def give_back(rt: Runtime, event: Event) -> bool:
    """Return the event undone, at no cost of an attempt: this worker stops. False: another one has it."""
    return await settle(rt, event.project_id, lambda conn: claims.release(conn, event))


async def settle(rt: Runtime, project_id: int, write: Callable[[Conn], Awaitable[bool]]) -> bool:
    """Write an outcome in a transaction of its own, in several tries; return what `write` returns.

    Raises: DatabaseUnavailable when all of them were in vain.
    """
    for pause_s in (*SETTLE_DELAYS_S, None):
        try:
            async with rt.db.transaction(project_id) as conn:
                return await write(conn)
        except errors.DatabaseUnavailable:
            if pause_s is None:
                raise
            await asyncio.sleep(pause_s)
    raise AssertionError("unreachable")


async def _under_lease(rt: Runtime, event: Event, work: Coroutine[Any, Any, int]) -> int:
    """Return the result of `work`, renewing the lease while it runs.

    Raises: Fenced as soon as the lease belongs to another worker; `work` is cancelled then.
    """
    working = asyncio.create_task(work)
    renewing = asyncio.create_task(_renew(rt, event))
    try:
        await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Fenced
        return working.result()
    finally:
        working.cancel()
        renewing.cancel()
        await asyncio.gather(working, renewing, return_exceptions=True)


async def _renew(rt: Runtime, event: Event) -> None:
    """Renew the lease three times in its length; return when it is lost."""
    lease_s = rt.settings.lease_s
    while True:
        await asyncio.sleep(lease_s / 3)
        try:
            async with rt.db.acquire(event.project_id) as conn:
                if not await claims.renew(conn, event, lease_s):
                    metrics.count("leases_lost")
                    return
        except errors.DatabaseUnavailable:
            # The fence decides in the end; until then the work may well be worth its while.
            metrics.count("lease_renewals_failed")
            _log.warning("event.renewal_failed", event_id=str(event.id))
