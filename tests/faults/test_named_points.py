"""kill -9 at every named point of an add, a delivery and a request, at several passings each, chosen by the dice."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.bent import POINTS
from tests.faults.history import History
from tests.faults.world import Program, World, eventually
from tests.model_stub import fails
from tests.receiver import Receiver

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

RUNS = int(os.environ.get("FAULT_RUNS") or 2)  #: of each point, each with dice of its own
ADDS = 8
TRIES = 4  #: more runs, while chance passes the point by
SELDOM = ("reclaimed", "renewed", "put off", "delivery claimed", "delivery sent", "delivery settled")
OF_THE_API = ("event written", "rung", "committing", "committed")
OF_A_WORKER = tuple(point for point in POINTS if point not in ("event written", "rung"))


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as stub:
        yield stub


@pytest.fixture(scope="module")
def bent_world(server_folder: Path, receiver: Receiver) -> Iterator[World]:
    """A world whose processes die where they are told to, with short leases and an endpoint that hears of every memory."""
    settings = {"MEMORYD_LEASE_S": "1", "MEMORYD_SWEEP_S": "0.2", "MEMORYD_OUTBOUND_ALLOW_NETS": "127.0.0.0/8"}
    settings |= {"MEMORYD_WEBHOOK_DELAYS_S": ",".join(["0.1"] * 30), "MEMORYD_WEBHOOK_TIMEOUT_S": "1"}
    with World(server_folder / "bent", bent=True, **settings) as world:
        for project in world.projects:
            with world.client(project) as client:
                hook = {"name": "all", "url": receiver.url("all"), "event_types": ["memory_add"]}
                assert client.post(f"/api/v1/webhooks/projects/{project}/", json=hook).status_code in (200, 201)
        yield world


def die(program: Program, point: str, nth: int) -> Path:
    """Tell a process where to die; return the file that says that it has."""
    assert program.bend is not None
    died = program.bend / "died"
    died.unlink(missing_ok=True)
    draft = program.bend / "draft"
    draft.write_text(json.dumps({"point": point, "nth": nth}), encoding="utf-8")
    draft.rename(program.bend / "die")
    return died


def run_to_the_end(world: World, history: History, dice: random.Random, program: Program, point: str, nth: int) -> bool:
    """Add under the threat of one death, and prove that nothing came of it; return whether it happened."""
    died = die(program, point, nth)
    world.brain.behave()
    if point == "put off":
        left = [dice.randint(2, 4)]  # failures, so that something is put off

        def err(_asked: object) -> object:
            left[0] -= 1
            return fails(500) if left[0] >= 0 else None

        world.brain.chat = err  # type: ignore[assignment]
    if point == "reclaimed":
        other = next(worker for worker in world.workers if worker is not program)
        die(other, "claimed", 1)
    slow = threading.Event()
    if point == "renewed":
        world.brain.chat = lambda _asked: slow.wait(0.5) and None  # longer than a third of a lease
    history.adds(range(ADDS), threads=3)
    assert len(history.acks) == ADDS
    history.check()
    happened = died.exists()
    for one in world.programs:
        assert one.bend is not None
        (one.bend / "die").unlink(missing_ok=True)
    return happened


@pytest.mark.parametrize("point", OF_A_WORKER)
def test_a_worker_dies_there_and_every_add_ends_once(
    bent_world: World, receiver: Receiver, dice: random.Random, point: str
) -> None:
    deaths = runs = 0
    wanted = 1 if point.startswith("delivery") else RUNS  # the lease of a delivery is long
    while runs < wanted or (deaths == 0 and runs < wanted + TRIES):
        history = History(bent_world)
        program = dice.choice(bent_world.workers)
        nth = dice.randint(1, 4) if point not in SELDOM else dice.randint(1, 2)
        deaths += run_to_the_end(bent_world, history, dice, program, point, nth)
        told_of_each(bent_world, receiver, history)
        runs += 1
    assert deaths > 0, "nobody passed there so often"


@pytest.mark.parametrize("point", OF_THE_API)
def test_the_api_dies_there_and_every_add_ends_once(
    bent_world: World, receiver: Receiver, dice: random.Random, point: str
) -> None:
    deaths = 0
    for _ in range(RUNS):
        history = History(bent_world)
        deaths += run_to_the_end(bent_world, history, dice, bent_world.api, point, dice.randint(1, ADDS - 2))
        told_of_each(bent_world, receiver, history)
    assert deaths > 0


def told_of_each(world: World, receiver: Receiver, history: History) -> None:
    """Prove that the endpoint has heard of each memory, in one message, however often that came."""

    def ended() -> bool:
        return bool(world.value("SELECT count(*) FROM deliveries WHERE status IN ('PENDING', 'RUNNING')") == 0)

    eventually(ended, within_s=60, what="a delivery has not ended")
    ids: dict[str, set[str]] = {}
    for request in receiver.at("all"):
        text = request.details["data"]["memory"]
        if history.name in text:
            ids.setdefault(text, set()).add(request.id)
    assert len(ids) == ADDS
    assert {len(of_one) for of_one in ids.values()} == {1}
    receiver.requests.clear()
