"""Counts what projects do, so that limits can be kept: over all processes in Redis, or in this one without it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import redis.asyncio

from app import redis_away

PREFIX = "memoryd:tally:"  #: of the keys in Redis
LIMIT_S = 0.05  #: longest wait for Redis; then this process's own count has to do
CLOSE_S = 1.0  #: longest wait for the end of the connections
KEYS = 100_000  #: counters remembered at most in this process


@runtime_checkable
class Tally(Protocol):
    """Counts by name, in windows of time that begin at multiples of their length since 1970."""

    async def add(self, name: str, *, window_s: int, now: float) -> int:
        """Count one, and return how many there are in the window of `now` (seconds since 1970), this one included.

        Takes `LIMIT_S` seconds at most and never raises for a dead Redis.
        """
        ...

    async def close(self) -> None:
        """Close the connections. Safe to repeat."""
        ...


class LocalTally:
    """Counts in this process alone."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}  # name → number of the window, count in it

    async def add(self, name: str, *, window_s: int, now: float) -> int:
        """Count one."""
        return self.count(name, window_s=window_s, now=now)

    def count(self, name: str, *, window_s: int, now: float) -> int:
        """Count one, at once."""
        window = int(now // window_s)
        former, count = self._counts.pop(name, (window, 0))
        count = count + 1 if former == window else 1
        while len(self._counts) >= KEYS:
            self._counts.pop(next(iter(self._counts)))  # the one that was counted longest ago
        self._counts[name] = (window, count)
        return count

    async def close(self) -> None:
        """Do nothing."""


class RedisTally:
    """Counts in Redis, for all processes together; while it does not answer, each process counts for itself."""

    def __init__(self, redis_url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = redis_url
        self._redis: Any = None
        self._local = LocalTally()
        self._away = redis_away.Away("tally.unreachable", clock)

    async def add(self, name: str, *, window_s: int, now: float) -> int:
        """Count one, here and in Redis, and return the greater of the two counts."""
        own = self._local.count(name, window_s=window_s, now=now)
        if self._away.lately:
            return own
        try:
            shared = await asyncio.wait_for(self._add(f"{PREFIX}{name}:{int(now // window_s)}", window_s), LIMIT_S)
        except redis_away.ERRORS as error:
            self._away.note(error)
            return own
        return max(own, shared)

    async def _add(self, key: str, window_s: int) -> int:
        if self._redis is None:
            self._redis = redis.asyncio.Redis.from_url(
                self._url, socket_timeout=LIMIT_S, socket_connect_timeout=LIMIT_S
            )
        async with self._redis.pipeline(transaction=True) as both:
            count, _ = await both.incr(key).expire(key, 2 * window_s).execute()
        return int(count)

    async def close(self) -> None:
        """Close the connections. Safe to repeat."""
        connection, self._redis = self._redis, None
        if connection is not None:
            await redis_away.close(connection, limit_s=CLOSE_S)


def open_tally(redis_url: str | None) -> Tally:
    """Return what counts with this Redis; None: in this process."""
    return LocalTally() if redis_url is None else RedisTally(redis_url)
