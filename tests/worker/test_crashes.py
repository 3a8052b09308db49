"""Several workers die and freeze at random; every accepted add still has its effect exactly once, and in order.

Each run replays from its seed: choices of the simulation come from it, only the timing of the database is real.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from app.domain import add, attempt
from app.model import Event, Owners, Status
from app.runtime import Runtime
from app.store import claims
from app.store.db import Conn, Database
from tests import fakes
from tests.worker.conftest import Lab, eventually

EVENTS, SCOPES, WORKERS, SLOTS = 60, 6, 4, 2
LEASE_S = 0.25
MARK = re.compile(r"mark-\d+")
SMALL = "so then now also again still just very here there too once".split()  # words that no message has to say


class Freezable(Database):
    """The database as a process sees it that can be frozen: nothing moves, neither work nor renewals."""

    def __init__(self, real: Database) -> None:
        self._real = real
        self.moving = asyncio.Event()
        self.moving.set()

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        await self.moving.wait()
        async with self._real.acquire(project_id) as conn:
            yield conn

    @asynccontextmanager
    async def transaction(self, project_id: int | None) -> AsyncIterator[Conn]:
        await self.moving.wait()
        async with self._real.transaction(project_id) as conn:
            yield conn


class Echo(fakes.FakeLLM):
    """Finds one fact in every add: its mark, in other words each time it is asked, as real models do."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice

    async def complete_json(self, _system: str, user: str, **_options: Any) -> Any:
        await asyncio.sleep(self._dice.random() * 0.02)
        mark = MARK.findall(user.rsplit("<new_messages>", 1)[1])[0]
        return {"facts": [{"text": " ".join([mark, "said", *self._dice.choices(SMALL, k=12)])}]}


@dataclass
class Tally:
    """What the simulation did to its workers."""

    crashes: int = 0
    freezes: int = 0
    lost: int = 0  # finishes that the fence stopped


async def crashing(task: asyncio.Task[attempt.Outcome], after_s: float) -> None:
    """Kill the work as a power cut would: nothing is put down, nothing given back."""
    await asyncio.wait({task}, timeout=after_s)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def worker(rt: Runtime, db: Freezable, dice: random.Random, tally: Tally, stop: asyncio.Event) -> None:
    """Claim and process events until told to stop, dying and freezing on the way."""
    while not stop.is_set():
        async with rt.db.acquire(None) as conn:
            event = await claims.claim(conn, lease_s=LEASE_S)
        if event is None:
            await asyncio.sleep(0.01)
            continue
        await one(rt, db, dice, tally, event)


async def one(rt: Runtime, db: Freezable, dice: random.Random, tally: Tally, event: Event) -> None:
    work = asyncio.create_task(add.process(rt, event))
    fate = dice.random()
    if fate < 0.15:
        tally.crashes += 1
        await crashing(work, dice.random() * 0.06)
        return
    if fate < 0.25:
        tally.freezes += 1
        await asyncio.wait({work}, timeout=dice.random() * 0.03)
        db.moving.clear()
        await asyncio.sleep(LEASE_S * 2)
        db.moving.set()
    if await work == attempt.Lost():
        tally.lost += 1


async def sweeping(lab: Lab) -> None:
    while True:
        async with lab.db.acquire(None) as conn:
            await claims.reclaim_expired(conn, [0.0] * 1000)
        await asyncio.sleep(0.03)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_add_has_its_effect_once_and_in_order(fresh_lab: Lab, seed: int) -> None:
    dice, tally, stop = random.Random(seed), Tally(), asyncio.Event()
    settings = {"lease_s": LEASE_S, "retry_delays_s": (0.0,) * 1000}
    accepted = [
        await fresh_lab.add(fresh_lab.runtime(), f"mark-{n}", owners=Owners(user_id=f"u{n % SCOPES}"))
        for n in range(EVENTS)
    ]
    tasks = [asyncio.create_task(sweeping(fresh_lab))]
    workers = []
    for _ in range(WORKERS):
        db = Freezable(fresh_lab.db)
        rt = fresh_lab.runtime(llm=Echo(dice), db=db, **settings)
        workers += [asyncio.create_task(worker(rt, db, dice, tally, stop)) for _ in range(SLOTS)]
    await eventually(lambda: fresh_lab.is_done(*accepted), within_s=60)
    stop.set()
    await asyncio.gather(*workers)
    for task in tasks:
        task.cancel()

    done = [await fresh_lab.event(item) for item in accepted]
    marks = [MARK.findall(memory.text)[0] for memory in await fresh_lab.memories()]
    note = f"seed {seed}: {tally.crashes} crashes, {tally.freezes} freezes, {tally.lost} fenced off"
    assert {event.status for event in done} == {Status.SUCCEEDED}, note
    assert sorted(marks) == sorted(f"mark-{n}" for n in range(EVENTS)), note  # none lost, none doubled
    assert [len(event.results) for event in done] == [1] * EVENTS, note
    assert overtaken(done) == [], note
    assert tally.crashes > 0, note
    assert tally.freezes > 0, note


def overtaken(done: list[Event]) -> list[tuple[Event, Event]]:
    """Return pairs of one scope that ended in the wrong order though the first had never failed."""
    return [
        (first, second)
        for at, first in enumerate(done)
        for second in done[at + 1 :]
        if first.scope_id == second.scope_id
        and first.attempts == 1
        and first.completed_at is not None
        and second.completed_at is not None
        and first.completed_at > second.completed_at
    ]
