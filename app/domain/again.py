"""Runs work again that lost its transaction to another one, so that nobody hears of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app import errors

TRIES = 6
PAUSE_S = 0.02  #: before the second try, at most; doubles

T = TypeVar("T")


async def if_lost(work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` returns; run it again, a few times, when its transaction lost a deadlock or a race.

    `work` may be run from its beginning: what it had written is undone, and what it had committed before it does no
    harm twice. Raises: TransactionLost when it loses every time; whatever else `work` raises.
    """
    for number in range(TRIES - 1):
        try:
            return await work()
        except errors.TransactionLost:
            # Those that met may meet again, unless each waits for a time of its own.
            await asyncio.sleep(random.uniform(0, PAUSE_S * 2**number))
    return await work()
