"""A running worker: it finds work without Redis, runs scopes side by side, outlives bugs, and stops without a loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from uuid_utils.compat import uuid7

from app import errors
from app.model import Owners, Status
from app.runtime import Runtime
from app.store import events, workers
from tests import factories, fakes
from tests.worker.conftest import Lab, eventually, facts
from worker import main


class Gate(fakes.FakeLLM):
    """Answers with one fact, once the gate is open; knows who waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.most = 0
        self.open = asyncio.Event()

    async def complete_json(self, system: str, user: str, *, schema: dict[str, Any], name: str) -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self.open.wait()
        finally:
            self.waiting -= 1
        return facts("Likes tea")

    async def held(self, count: int) -> None:
        """Return once so many events wait at the gate."""

        async def are_held() -> bool:
            return self.waiting >= count

        await eventually(are_held)


@asynccontextmanager
async def working(rt: Runtime, count: int = 1) -> AsyncIterator[None]:
    """Run workers in this process; stop them as SIGTERM would."""
    stop = asyncio.Event()
    running = [asyncio.create_task(main.serve(rt, stop)) for _ in range(count)]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*running)


async def test_events_end_without_a_queue(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    accepted = [await fresh_lab.add(rt, f"I live in Oslo at number {n}.") for n in range(5)]
    async with working(rt):
        await eventually(lambda: fresh_lab.is_done(*accepted))
    assert {(await fresh_lab.event(item)).status for item in accepted} == {Status.SUCCEEDED}
    assert len(await fresh_lab.memories()) == 5


async def test_a_worker_uses_its_slots_and_one_for_each_scope(fresh_lab: Lab) -> None:
    gate = Gate()
    rt = fresh_lab.runtime(llm=gate, worker_slots=3)
    accepted = [
        await fresh_lab.add(rt, "I like tea", owners=Owners(user_id=f"u{n}")) for n in range(4) for _ in range(2)
    ]
    async with working(rt):
        await gate.held(3)
        gate.open.set()
        await eventually(lambda: fresh_lab.is_done(*accepted))
    assert gate.most == 3
    assert len(await fresh_lab.memories()) == 4


async def test_a_backlog_of_one_project_holds_up_another_for_one_slot_only(fresh_lab: Lab) -> None:
    class Order(fakes.FakeLLM):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        async def complete_json(self, _system: str, user: str, **_options: Any) -> Any:
            self.seen.append("small" if "small tenant" in user else "big")
            return facts()

    order = Order()
    rt = fresh_lab.runtime(llm=order, worker_slots=2)
    accepted = [await fresh_lab.add(rt, "big tenant", owners=Owners(user_id=f"u{n % 9}")) for n in range(40)]
    async with fresh_lab.db.transaction(None) as conn:
        small = await factories.make_project(conn)
    accepted.append(await fresh_lab.add(rt, "small tenant", project=small))
    async with working(rt):
        await eventually(lambda: fresh_lab.is_done(*accepted))
    assert order.seen.index("small") <= 2


async def test_a_failed_event_comes_back_by_itself(fresh_lab: Lab) -> None:
    llm = fakes.FakeLLM([errors.ModelUnavailable(), errors.ModelRefused(), facts("Likes tea")])
    rt = fresh_lab.runtime(llm=llm)
    accepted = await fresh_lab.add(rt, "I like tea")
    async with working(rt):
        await eventually(lambda: fresh_lab.is_done(accepted))
    event = await fresh_lab.event(accepted)
    assert (event.status, event.attempts) == (Status.SUCCEEDED, 3)


async def test_a_bug_fails_its_event_and_no_other(fresh_lab: Lab) -> None:
    class Broken(fakes.FakeLLM):
        async def complete_json(self, _system: str, user: str, **_options: Any) -> Any:
            if "bad" in user:
                raise RuntimeError("a bug that says sk-abcdefghijkl")
            return facts("Likes tea")

    rt = fresh_lab.runtime(llm=Broken())
    bad = await fresh_lab.add(rt, "bad")
    good = await fresh_lab.add(rt, "good", owners=Owners(user_id="bob"))
    async with working(rt):
        await eventually(lambda: fresh_lab.is_done(bad, good))
    failed = await fresh_lab.event(bad)
    assert (failed.status, failed.error_code, failed.error) == (
        Status.FAILED,
        "internal",
        "Something went wrong inside memoryd; its log says what.",
    )
    assert (await fresh_lab.event(good)).status is Status.SUCCEEDED


async def test_an_event_of_an_unknown_kind_fails_with_a_reason(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    async with fresh_lab.db.transaction(None) as conn:
        event = await events.insert(conn, fresh_lab.project.id, uuid7(), "DREAM", {})

    async def is_failed() -> bool:
        return (await fresh_lab.event(event)).status is Status.FAILED

    async with working(rt):
        await eventually(is_failed)
    assert "DREAM" in str((await fresh_lab.event(event)).error)


async def test_an_event_of_a_dead_worker_is_run_again(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime(llm=fakes.FakeLLM([facts("Likes tea")]))
    accepted = await fresh_lab.add(rt, "I like tea")
    await fresh_lab.claim(fresh_lab.runtime(lease_s=0.1))  # and nobody ever comes back to it
    async with working(rt):
        await eventually(lambda: fresh_lab.is_done(accepted))
    event = await fresh_lab.event(accepted)
    assert (event.status, event.attempts, len(await fresh_lab.memories())) == (Status.SUCCEEDED, 2, 1)


async def test_a_lost_event_waits_for_its_own_lease_and_for_no_long_one(fresh_lab: Lab) -> None:
    class Slow(Gate):
        async def complete_json(self, system: str, user: str, **options: Any) -> Any:
            return await super().complete_json(system, user, **options) if "long" in user else facts("Likes tea")

    gate = Slow()
    rt = fresh_lab.runtime(llm=gate, lease_s=0.5, worker_slots=2)
    lost = await fresh_lab.add(rt, "I like tea")
    await fresh_lab.claim(rt)  # and nobody ever comes back to it
    long = await fresh_lab.add(rt, "a long story", owners=Owners(user_id="bob"))
    async with working(rt):
        await gate.held(1)
        await eventually(lambda: fresh_lab.is_done(lost))
        assert (gate.waiting, (await fresh_lab.event(long)).status) == (1, Status.RUNNING)
        gate.open.set()
        await eventually(lambda: fresh_lab.is_done(long))
    assert [(await fresh_lab.event(item)).attempts for item in (lost, long)] == [2, 1]


# Stopping


async def test_a_stopping_worker_waits_for_what_runs_and_claims_nothing_more(fresh_lab: Lab) -> None:
    gate = Gate()
    rt = fresh_lab.runtime(llm=gate)
    first = await fresh_lab.add(rt, "I like tea")
    stop = asyncio.Event()
    running = asyncio.create_task(main.serve(rt, stop))
    await gate.held(1)
    second = await fresh_lab.add(rt, "I like rice")
    stop.set()
    gate.open.set()
    await running
    assert (await fresh_lab.event(first)).status is Status.SUCCEEDED
    left = await fresh_lab.event(second)
    assert (left.status, left.attempts) == (Status.PENDING, 0)


async def test_what_a_stopping_worker_cannot_finish_is_given_back_at_no_cost(fresh_lab: Lab) -> None:
    gate = Gate()
    rt = fresh_lab.runtime(llm=gate, drain_s=0.0)
    accepted = await fresh_lab.add(rt, "I like tea")
    for _ in range(6):  # as many times as there would be attempts, and more
        stop = asyncio.Event()
        running = asyncio.create_task(main.serve(rt, stop))
        await gate.held(1)
        stop.set()
        await running
        event = await fresh_lab.event(accepted)
        assert (event.status, event.attempts) == (Status.PENDING, 0)
    gate.open.set()
    async with working(rt):
        await eventually(lambda: fresh_lab.is_done(accepted))
    assert (await fresh_lab.event(accepted)).status is Status.SUCCEEDED


async def test_a_second_signal_ends_the_wait(fresh_lab: Lab) -> None:
    gate = Gate()
    rt = fresh_lab.runtime(llm=gate, drain_s=600.0)
    accepted = await fresh_lab.add(rt, "I like tea")
    stop, hurry = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(main.serve(rt, stop, hurry))
    await gate.held(1)
    stop.set()
    hurry.set()
    async with asyncio.timeout(10):
        await running
    assert (await fresh_lab.event(accepted)).attempts == 0


# Who lives


async def test_a_worker_is_seen_while_it_lives_and_not_after(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime(worker_slots=3)

    async def seen() -> list[workers.Worker]:
        async with fresh_lab.db.acquire(None) as conn:
            return await workers.alive(conn, within_s=60.0)

    async def is_seen() -> bool:
        return [worker.slots for worker in await seen()] == [3]

    assert await seen() == []
    async with working(rt):
        await eventually(is_seen)
    assert await seen() == []


async def test_a_worker_that_was_not_seen_for_long_is_not_alive(fresh_lab: Lab) -> None:
    async with fresh_lab.db.acquire(None) as conn:
        await workers.beat(conn, "old", slots=1, running=0)
        await conn.execute("UPDATE workers SET seen_at = seen_at - interval '1 minute'")
        assert await workers.alive(conn, within_s=30.0) == []
        await workers.beat(conn, "old", slots=2, running=1)
        assert [(worker.slots, worker.running) for worker in await workers.alive(conn, within_s=30.0)] == [(2, 1)]
