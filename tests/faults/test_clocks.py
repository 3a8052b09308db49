"""Clocks that are wrong, and that jump while a worker holds work: the database's clock decides everything that matters."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.history import History
from tests.faults.world import World, eventually
from tests.receiver import Receiver

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

HOUR_S = 3600
SKEWED, RIGHT = 0, 1  # which worker


@pytest.fixture(scope="module")
def hours(server_folder: Path) -> Iterator[World]:
    """A world whose first worker reads a clock that can be set."""
    settings = {"MEMORYD_OUTBOUND_ALLOW_NETS": "127.0.0.0/8", "MEMORYD_WEBHOOK_DELAYS_S": "0.2,0.2"}
    with World(server_folder / "hours", bent=True, **settings) as world:
        for worker in world.workers:
            set_clock(world, worker.bend, 0)
        yield world


def set_clock(world: World, bend: Path | None, seconds: float) -> None:
    assert bend is not None
    (bend / "draft").write_text(f"{seconds}", encoding="utf-8")
    (bend / "draft").rename(bend / "clock")


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S])
def test_worker_whose_clock_is_an_hour_off_works_like_any_other(hours: World, ahead_s: int) -> None:
    skewed, right = hours.workers[SKEWED], hours.workers[RIGHT]
    for worker, offset in ((skewed, ahead_s), (right, 0)):
        worker.end()
        set_clock(hours, worker.bend, offset)
    with Receiver() as receiver:
        project = sorted(hours.projects)[0]
        hook = {"name": "one", "url": receiver.url(), "event_types": ["memory_add"]}
        with hours.client(project) as client:
            secret = client.post(f"/api/v1/webhooks/projects/{project}/", json=hook).json()["secret"]
        skewed.start()
        first = History(hours)
        first.adds(range(8))  # the skewed one alone
        first.check()
        right.start()
        history = History(hours)
        history.adds(range(30))
        history.check()
        eventually(lambda: len(receiver.at()) >= 19)
        for request in receiver.at():
            request.verify(secret)  # within five minutes of the true time
        hours.rows("DELETE FROM webhooks")
    assert abs(said_at(skewed.log) - time.time() - ahead_s) < 120  # it did live at another hour
    assert "clock.differs" in skewed.log
    assert "clock.differs" not in right.log
    late = hours.value(
        "SELECT count(*) FROM memories WHERE abs(extract(epoch FROM clock_timestamp() - created_at)) > 600"
    )
    assert late == 0


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_clock_that_jumps_in_the_middle_of_work_changes_nothing(hours: World, jump_s: int) -> None:
    worker = hours.workers[SKEWED]
    hours.workers[RIGHT].end()
    set_clock(hours, worker.bend, 0)
    if not worker.child.alive():
        worker.start()
    thinking, go = threading.Event(), threading.Event()

    def slow(_asked: object) -> None:
        thinking.set()
        go.wait(30)

    hours.brain.chat = slow
    history = History(hours)
    history.adds(range(4))
    assert thinking.wait(30)
    set_clock(hours, worker.bend, jump_s)
    eventually(lambda: "clock.differs" in worker.log)
    held = "SELECT count(*) FROM events WHERE status = 'RUNNING' AND lease_until BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'"
    assert hours.value(held) > 0  # renewed by the database's clock
    hours.brain.behave()
    go.set()
    history.check()
    rows = hours.rows("SELECT attempts FROM events WHERE payload::text LIKE $1", f"%mark-{history.name}-%")
    assert {row["attempts"] for row in rows} == {1}
    hours.heal()


def said_at(log: str) -> float:
    """Return the time of the last line of a log."""
    line = [line for line in log.splitlines() if '"timestamp"' in line][-1]
    return datetime.fromisoformat(json.loads(line)["timestamp"]).astimezone(UTC).timestamp()
