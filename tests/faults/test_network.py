"""Databases that are slow, far, full, deaf or gone."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from app import errors
from app.store import db as databases
from tests.faults.history import History
from tests.faults.proxy import Mode
from tests.faults.world import World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

ACK_S = 0.5  # longest answer to an add while Redis is in trouble; a busy machine gets thrice that
MODES: tuple[Mode, ...] = ("delay", "drip", "reset", "refuse", "blackhole")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("whose", ["api_db", "worker_db"])
def test_a_bad_line_to_the_database_loses_nothing(world: World, history: History, whose: str, mode: Mode) -> None:
    proxy = getattr(world, whose)
    load = threading.Thread(target=history.adds, args=(range(30),), kwargs={"threads": 3, "patience_s": 90})
    load.start()
    eventually(lambda: len(history.acks) > 2)
    proxy.set(mode)
    time.sleep(3)  # how long the line is bad
    proxy.set("pass")
    load.join(150)
    assert len(history.acks) == 30
    history.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_bad_line_to_redis_slows_no_add(world: World, history: History, mode: Mode) -> None:
    world.redis.set(mode)
    history.adds(range(10), threads=1)
    world.redis.set("pass")
    assert not history.refused
    assert history.slowest_s < 3 * ACK_S
    history.check()


def test_a_redis_that_is_full_or_forgets_everything_loses_nothing(world: World, history: History) -> None:
    world.redis_says("CONFIG", "SET", "maxmemory", "1")
    history.adds(range(10))
    world.redis_says("CONFIG", "SET", "maxmemory", "0")
    for number in range(10, 20):
        history.add(number)
        world.redis_says("FLUSHALL")
    history.check()
    assert not history.refused


def test_a_database_that_is_away_for_long_is_said_and_waited_for(world: World, history: History) -> None:
    history.adds(range(6))
    world.kill_postgres()
    with world.client() as client:
        for _ in range(20):
            began = time.monotonic()
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 503
            refused = client.post("/v3/memories/add/", json={"messages": "x", "user_id": "u"})
            assert (refused.status_code, refused.headers["retry-after"].isdigit()) == (503, True)
            assert time.monotonic() - began < 10
            time.sleep(0.5)
    assert all(program.child.alive() for program in (world.api, *world.workers))
    world.revive_postgres()
    history.adds(range(6, 12))
    history.check()


def test_without_a_free_connection_requests_are_refused_soon(world: World, history: History) -> None:
    held: list[Any] = []

    async def hold() -> None:
        while True:
            try:
                held.append(await databases.connect(world.postgres.dsn))
            except errors.DatabaseUnavailable:
                return

    async def let_go() -> None:
        await asyncio.gather(*(conn.close() for conn in held))

    with asyncio.Runner() as runner:
        world.api.kill()
        world.api.start()  # its pool has one connection
        runner.run(hold())
        began = time.monotonic()
        history.adds(range(12), threads=12, patience_s=0.0)
        assert time.monotonic() - began < 15
        runner.run(let_go())
    history.adds(range(12, 20))
    history.check()
