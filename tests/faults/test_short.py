"""A few faults in real processes, quickly. All of them: `make faults`."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from tests.faults.history import History
from tests.faults.world import LEASE_S, World, eventually

pytestmark = pytest.mark.timeout(300)


def test_workers_that_are_killed_and_frozen_at_work_lose_and_double_nothing(world: World, history: History) -> None:
    """One dies while the model thinks, the other's time stops for longer than its lease."""
    thinking, go = threading.Event(), threading.Event()

    def slow(_asked: object) -> None:
        thinking.set()
        go.wait(2)

    world.brain.chat = slow
    history.adds(range(12))
    assert thinking.wait(20)
    world.workers[0].kill()
    with world.frozen(world.workers[1]):
        go.set()
        world.workers[0].spawn()
        time.sleep(LEASE_S * 1.5)  # what is tested is the passing of time
        world.workers[0].await_ready()
        eventually(lambda: "work.reclaimed" in world.workers[0].log)
    history.check()


@pytest.mark.parametrize("way", ["end", pytest.param("kill", marks=pytest.mark.long)])
def test_without_a_worker_readiness_says_so_and_what_waits_ends_with_the_next(
    world: World, history: History, way: str
) -> None:
    for worker in world.workers:
        getattr(worker, way)()
    history.adds(range(3))

    def said() -> bool:
        ready = world.ready()
        return ready["status"] == "degraded" and ready["workers"] == 0 and ready["oldest_pending_s"] is not None

    eventually(said, within_s=60)
    world.workers[0].start()
    history.check(within_s=60)
    assert eventually(lambda: world.ready()["workers"]) == 1


def test_without_redis_adds_are_accepted_quickly_and_end(world: World, history: History) -> None:
    """Hung, then gone, then back and empty."""
    with world.frozen(world.valkey):
        history.adds(range(4))
    world.stop_redis()
    history.adds(range(4, 8))
    eventually(lambda: world.ready()["status"] == "degraded")
    world.revive_redis()
    world.redis_says("FLUSHALL")
    history.adds(range(8, 12))
    history.check()
    assert not history.refused
    eventually(lambda: world.ready()["status"] == "ok")


def test_a_database_that_is_killed_under_load_has_every_accepted_add_when_it_is_back(
    world: World, history: History
) -> None:
    load = threading.Thread(target=history.adds, args=(range(40),))
    load.start()
    eventually(lambda: len(history.acks) >= 5)
    world.kill_postgres()
    eventually(lambda: history.refused["503"] > 0)
    with world.client() as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
    world.revive_postgres()
    load.join(90)
    assert len(history.acks) == 40
    history.check()
    assert all(program.child.alive() for program in (world.api, *world.workers))


def test_an_api_that_is_killed_between_commit_and_answer_has_accepted_once(world: World, history: History) -> None:
    trap = world.api_db.lay(f"mark-{history.name}-0", "COMMIT", forward=True)
    lost = threading.Thread(target=history.add, args=(0,), kwargs={"patience_s": 60})
    lost.start()
    assert trap.sprung.wait(20)
    world.api.kill()
    world.api.start()
    lost.join(90)
    assert len(history.acks) == 1
    assert history.refused
    history.check()


def test_a_worker_that_is_told_to_stop_spends_no_attempt(world: World, history: History) -> None:
    thinking, go = threading.Event(), threading.Event()

    def slow(_asked: object) -> None:
        thinking.set()
        go.wait(30)

    world.brain.chat = slow
    world.workers[1].end()
    ack = history.add(0)
    assert ack is not None
    assert thinking.wait(20)
    world.workers[0].child.send(signal.SIGTERM)
    eventually(lambda: world.workers[0].child.code is not None)
    assert world.workers[0].child.code == 0
    go.set()
    world.brain.behave()
    row = world.rows("SELECT status, attempts FROM events WHERE id = $1::text::uuid", ack.event_id)
    assert row == [{"status": "PENDING", "attempts": 0}]
    world.heal()
    history.check()
