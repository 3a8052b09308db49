"""The doorbell never makes anyone wait, and never fails a request."""

from __future__ import annotations

import asyncio
import time
from uuid import uuid4

import pytest
import structlog

from app import errors, queue, redis_away


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_without_an_address_nothing_is_rung() -> None:
    bell = queue.open_queue(None)
    assert isinstance(bell, queue.SilentQueue)
    await bell.ring(uuid4())
    await bell.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "redis://127.0.0.1:port"])
def test_an_unreadable_address_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(errors.SetupError, match="REDIS_URL"):
        queue.open_queue(url)


async def test_a_dead_redis_is_counted_and_raises_nothing() -> None:
    clock = Clock()
    bell = queue.ArqQueue("redis://127.0.0.1:1", clock=clock)
    await bell.ring(uuid4())
    await bell.close()
    assert bell.failures == 1


async def test_after_a_failure_the_bell_keeps_quiet_for_a_while() -> None:
    clock = Clock()
    bell = queue.ArqQueue("redis://127.0.0.1:1", clock=clock)
    await bell.ring(uuid4())
    await bell.close()
    await bell.ring(uuid4())
    assert not bell.under_way
    clock.now += redis_away.QUIET_S
    await bell.ring(uuid4())
    assert bell.under_way
    await bell.close()
    assert bell.failures == 3


async def test_failures_are_logged_once_a_minute_and_without_the_password() -> None:
    clock = Clock()
    bell = queue.ArqQueue("redis://:secret-word@127.0.0.1:1", clock=clock)
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            await bell.ring(uuid4())
            await bell.close()
            clock.now += redis_away.COMPLAINT_S / 2
    assert bell.failures == 3
    assert [line["failures"] for line in lines] == [1, 3]
    assert "secret-word" not in str(lines)


async def test_a_hung_redis_holds_nobody_up() -> None:
    hang = asyncio.Event()

    async def swallow(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hang.wait()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    bell = queue.ArqQueue(f"redis://127.0.0.1:{port}")
    started_at = time.perf_counter()
    await bell.ring(uuid4())
    assert time.perf_counter() - started_at < 0.1
    await bell.close()
    assert time.perf_counter() - started_at < 1.5
    assert bell.failures == 1
    hang.set()
    server.close()
    await server.wait_closed()


async def test_checking_a_dead_redis_says_what_to_expect() -> None:
    with pytest.raises(errors.TryLater, match="does not answer"):
        await queue.check("redis://127.0.0.1:1")


def test_jobs_travel_as_json() -> None:
    job = {"t": 1, "f": queue.RING, "a": ("id",), "k": {}, "et": 5}
    assert queue.decode(queue.encode(job)) == {"t": 1, "f": "ring", "a": ["id"], "k": {}, "et": 5}
    assert queue.decode(queue.encode({"r": ValueError("x")})) == {"r": "ValueError"}
