"""Counting: in one process, over several through Redis, and while Redis is away."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from app import tally

NOW = 1_800_000_030.0  #: in the middle of a minute


@pytest.fixture
def name() -> str:
    return uuid4().hex


async def adds(counter: tally.Tally, name: str, times: int, *, now: float = NOW) -> list[int]:
    return [await counter.add(name, window_s=60, now=now) for _ in range(times)]


async def test_a_new_window_begins_at_one_and_names_are_apart(name: str) -> None:
    counter = tally.LocalTally()
    assert await adds(counter, name, 3) == [1, 2, 3]
    assert await adds(counter, f"{name}2", 1) == [1]
    assert await adds(counter, name, 2, now=NOW + 60) == [1, 2]


async def test_counters_of_one_process_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "KEYS", 5)
    counter = tally.LocalTally()
    for number in range(50):
        await adds(counter, str(number), 1)
    assert len(counter._counts) == 5


async def test_processes_count_together(valkey_url: str, name: str) -> None:
    one, two = tally.open_tally(valkey_url), tally.open_tally(valkey_url)
    warm = time.monotonic() + 20
    while (await adds(one, uuid4().hex, 1), await adds(two, uuid4().hex, 1)) and _quiet(one, two):
        assert time.monotonic() < warm, "the server never answered in time"
        await asyncio.sleep(0.1)
    counts = [*await adds(one, name, 2), *await adds(two, name, 2), *await adds(one, name, 1)]
    assert counts == [1, 2, 3, 4, 5]
    await one.close()
    await two.close()


def _quiet(*counters: tally.Tally) -> bool:
    return any(counter._away.lately for counter in counters)  # type: ignore[attr-defined]


@pytest.fixture
async def hung() -> AsyncIterator[str]:
    """A server that accepts connections and says nothing."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield f"redis://127.0.0.1:{held.getsockname()[1]}/0"


async def test_a_hung_redis_costs_one_short_wait_and_the_count_goes_on(hung: str, name: str) -> None:
    counter = tally.open_tally(hung)
    started = time.monotonic()
    assert await adds(counter, name, 200) == list(range(1, 201))
    assert time.monotonic() - started < 10 * tally.LIMIT_S + 0.5
    await counter.close()


async def test_a_dead_redis_does_not_matter(name: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{held.getsockname()[1]}/0"
    counter = tally.open_tally(address)
    assert await adds(counter, name, 3) == [1, 2, 3]
    await counter.close()
    await counter.close()
