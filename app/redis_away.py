"""What doorbell and tally share: Redis may be away, and then nobody waits for it twice and the log hears of it rarely."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import redis.exceptions

from app import log

QUIET_S = 1.0  #: no further try for so long after a failure
COMPLAINT_S = 60.0  #: failures are logged once in so many seconds

#: What a dead, hung, full or misbehaving Redis raises. RuntimeError: a connection that belongs to a closed loop.
ERRORS = (redis.exceptions.RedisError, OSError, TimeoutError, RuntimeError)

_log = log.get(__name__)


class Away:
    """Remembers when Redis failed last, for one user of it."""

    def __init__(self, line: str, clock: Callable[[], float]) -> None:
        """`line`: what the log calls a failure. `clock`: seconds, never going back."""
        self._line = line
        self._clock = clock
        self._quiet_until = 0.0
        self._complain_at = 0.0

    @property
    def lately(self) -> bool:
        """True while another try would be too early."""
        return self._clock() < self._quiet_until

    def note(self, error: BaseException, **facts: Any) -> None:
        """Note a failure, and log it with `facts` unless one was logged a moment ago."""
        now = self._clock()
        self._quiet_until = now + QUIET_S
        if now >= self._complain_at:
            self._complain_at = now + COMPLAINT_S
            _log.warning(self._line, error=f"{type(error).__name__}: {error}", **facts)


async def close(connection: Any, *, limit_s: float) -> None:
    """Close a client, whatever state its server is in."""
    try:
        await asyncio.wait_for(connection.aclose(), limit_s)
    except ERRORS as error:
        _log.debug("redis.close_failed", error=type(error).__name__)
