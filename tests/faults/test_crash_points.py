"""kill -9 at every point of an add, and in every order that the dice say."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import faults
from tests.faults.brain import marks_of
from tests.faults.history import History
from tests.faults.world import World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


POINTS = ("in the model", "while embedding", "before the commit", "after the commit", "its host vanishes")


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_dies_and_the_event_ends_once(world: World, history: History, point: str) -> None:
    reached, go = threading.Event(), threading.Event()

    def stall(_asked: object) -> None:
        reached.set()
        go.wait(60)

    if point == "in the model":
        world.brain.chat = stall
    elif point == "while embedding":
        world.brain.embed = lambda asked: stall(asked) if f"mark-{history.name}-0 said" in str(asked) else None
    else:
        trap = world.worker_db.lay(f"mark-{history.name}-0 said", "COMMIT", forward=point == "after the commit")
        reached = trap.sprung
    ack = history.add(0)
    assert ack is not None
    assert reached.wait(30)
    asked = world.brain.asked[ack.mark]
    if point == "its host vanishes":
        world.worker_db.vanish()
    for worker in world.workers:
        worker.kill()
    go.set()
    world.heal()
    history.check()
    if point != "in the model":
        assert asked == 1
        assert world.brain.asked[ack.mark] == 1  # what it found was kept


def test_an_api_that_dies_before_the_commit_has_accepted_nothing(world: World, history: History) -> None:
    trap = world.api_db.lay(f"mark-{history.name}-0", "COMMIT", forward=False)
    sending = threading.Thread(target=history.add, args=(0,), kwargs={"patience_s": 0.0})
    sending.start()
    assert trap.sprung.wait(30)
    world.api.kill()
    sending.join(30)
    assert not history.acks
    history.settle()
    assert world.value("SELECT count(*) FROM events WHERE payload::text LIKE $1", f"%{history.name}%") == 0
    world.heal()
    assert history.add(0) is not None
    history.check()


def test_a_backlog_waits_for_the_next_worker(world: World, history: History) -> None:
    for worker in world.workers:
        worker.kill()
    history.adds(range(30))
    assert world.ready()["oldest_pending_s"] is not None
    world.workers[0].start()
    history.check()


@pytest.fixture
def patient(server_folder: Path) -> Iterator[World]:
    """A world whose leases outlast a slow start: a worker's first event loads dictionaries, for seconds on a busy machine."""
    with World(server_folder / "patient", MEMORYD_LEASE_S="30") as world:
        yield world


def test_stops_in_a_row_cost_no_attempt_and_no_request(patient: World) -> None:
    world, history = patient, History(patient)
    load = threading.Thread(target=history.adds, args=(range(60),), kwargs={"threads": 2})
    load.start()
    for _ in range(3):
        for program in (*world.workers, world.api):
            assert program.end() == 0
            program.start()
    load.join(120)
    assert len(history.acks) == 60
    history.check()
    sql = "SELECT id, attempts, lease_epoch, started_at, completed_at FROM events WHERE attempts <> 1 AND payload::text LIKE $1"
    spent = world.rows(sql, f"%mark-{history.name}-%")
    log = [line for worker in world.workers for line in worker.history if not spent or str(spent[0]["id"]) in line]
    assert spent == [], "\n".join(log)


def test_stops_in_the_middle_of_a_job_cost_no_attempt(patient: World) -> None:
    """More of them than a job has attempts, by SIGTERM."""
    world, history = patient, History(patient)
    thinking, go = threading.Event(), threading.Event()

    def slow(_asked: object) -> None:
        thinking.set()
        go.wait(60)

    world.brain.chat = slow
    world.workers[1].end()
    ack = history.add(0)
    assert ack is not None
    for _ in range(6):
        assert thinking.wait(30)
        assert world.workers[0].end() == 0
        row = world.rows("SELECT status, attempts FROM events WHERE id = $1::text::uuid", ack.event_id)
        assert row == [{"status": "PENDING", "attempts": 0}]
        thinking.clear()
        world.workers[0].start()
    world.brain.behave()
    go.set()
    history.check()


@pytest.fixture
def fragile(server_folder: Path) -> Iterator[World]:
    """A world in which little is tried again."""
    with World(server_folder / "fragile", workers=1, MEMORYD_RETRY_DELAYS_S="0.2,0.2") as world:
        yield world


def test_an_event_that_kills_its_worker_every_time_is_given_up_and_the_others_end(fragile: World) -> None:
    history, worker = History(fragile), fragile.workers[0]
    poison = f"mark-{history.name}-0"

    def bite(asked: dict[str, object]) -> None:
        with contextlib.suppress(StopIteration):  # a question of another kind
            if poison in marks_of(asked):
                worker.child.send(signal.SIGKILL)

    fragile.brain.chat = bite
    history.adds(range(8), threads=1)

    def ended() -> bool:
        if not worker.child.alive():
            worker.start()
        return fragile.value("SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING')") == 0

    eventually(ended, within_s=120)
    history.check(failed=frozenset({poison}))
    sql = "SELECT attempts, error_code FROM events WHERE status = 'FAILED'"
    assert fragile.rows(sql) == [{"attempts": 3, "error_code": "worker_lost"}]


@pytest.mark.parametrize("run", range(4))
def test_whatever_happens_by_chance_every_accepted_add_ends_once(
    world: World, history: History, dice: random.Random, run: int
) -> None:
    load = threading.Thread(target=history.adds, args=(range(80),), kwargs={"threads": 4})
    load.start()
    chosen = [dice.choice(faults.FAULTS) for _ in range(5)]
    for fault in chosen:
        fault(world, dice)
    load.join(200)
    world.heal()
    names = [fault.__name__ for fault in chosen]
    history.check()
    assert len(history.acks) == 80, (run, names, history.refused)
