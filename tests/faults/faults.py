"""Faults that begin, last a moment and are mended. Each takes the world and the dice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.faults.proxy import Mode
from tests.faults.world import LEASE_S, World
from tests.model_stub import Reply, fails, says

Fault = Callable[[World, random.Random], None]

REPLIES = (
    fails(500),
    fails(429, Retry_After="1"),
    fails(503),
    Reply(fault="drop"),
    Reply(fault="hang"),
    Reply(fault="drip"),
    Reply(body=b" " * 10_000_000),
    says("I would rather not."),
    says("null"),
    says('{"facts": [{"text": "mark'),
    says({"facts": "none"}),
)


def _for_a_moment(dice: random.Random, most_s: float = 3.0) -> None:
    time.sleep(dice.uniform(0.2, most_s))  # how long a fault lasts is part of it


def kill_a_worker(world: World, dice: random.Random) -> None:
    """kill -9; the last worker is the one that a soak measures."""
    program = dice.choice(world.workers[:-1])
    program.kill()
    program.spawn()


def stop_a_worker(world: World, dice: random.Random) -> None:
    """SIGTERM."""
    program = dice.choice(world.workers[:-1])
    program.end()
    program.spawn()


def freeze_a_worker(world: World, dice: random.Random) -> None:
    """Stop its time for longer than its lease."""
    with world.frozen(dice.choice(world.workers)):
        time.sleep(LEASE_S * dice.uniform(1.2, 2.0))


def kill_redis(world: World, dice: random.Random) -> None:
    """kill -9, and start it again."""
    world.stop_redis()
    _for_a_moment(dice)
    world.revive_redis()


def hang_redis(world: World, dice: random.Random) -> None:
    """Stop its time."""
    with world.frozen(world.valkey):
        _for_a_moment(dice)


def flush_redis(world: World, _dice: random.Random) -> None:
    """Forget everything in it."""
    world.redis_says("FLUSHALL")


def fill_redis(world: World, dice: random.Random) -> None:
    """Let it take no more."""
    world.redis_says("CONFIG", "SET", "maxmemory", "1")
    _for_a_moment(dice)
    world.redis_says("CONFIG", "SET", "maxmemory", "0")


def kill_postgres(world: World, dice: random.Random) -> None:
    """Kill it, and start it again."""
    world.kill_postgres()
    _for_a_moment(dice)
    world.revive_postgres()


def restart_postgres(world: World, _dice: random.Random) -> None:
    """Restart it as operators do."""
    world.postgres.stop()
    world.revive_postgres()


def trouble_the_network(world: World, dice: random.Random) -> None:
    """Delay, drip, reset or swallow what goes over one of the connections."""
    proxy = dice.choice((world.api_db, world.worker_db, world.redis, world.model))
    modes: tuple[Mode, ...] = ("delay", "drip", "reset", "blackhole", "refuse")
    proxy.set(dice.choice(modes))
    _for_a_moment(dice)
    proxy.set("pass")
    proxy.cut()


def confuse_the_model(world: World, dice: random.Random) -> None:
    """Let it fail in one way or another."""
    reply = dice.choice(REPLIES)
    world.brain.chat = lambda _asked: reply
    _for_a_moment(dice)
    world.brain.behave()


FAULTS: tuple[Fault, ...] = (
    kill_a_worker,
    stop_a_worker,
    freeze_a_worker,
    kill_redis,
    hang_redis,
    flush_redis,
    fill_redis,
    kill_postgres,
    restart_postgres,
    trouble_the_network,
    confuse_the_model,
)
