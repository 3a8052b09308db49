"""The doorbell makes an add prompt; without it, or with a Redis that dies, forgets or hangs, it is only slower."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from app import errors, queue
from app.model import Owners
from app.runtime import Runtime
from app.servers.valkey import ValkeyServer
from tests import fakes
from tests.worker.conftest import Lab, eventually, facts
from worker import bell, main
from worker.pump import Pump

SLOW_SWEEP_S = 600.0  # so that only the bell can have been heard


@pytest.fixture
def valkey(server_folder: Path) -> Iterator[ValkeyServer]:
    """Run a Valkey of this test's own, to be stopped and frozen."""
    server = ValkeyServer(server_folder / f"valkey-{uuid4().hex}", user="nobody")
    server.start()
    yield server
    server.stop()


@asynccontextmanager
async def working(lab: Lab, url: str, *, sweep_s: float) -> AsyncIterator[Runtime]:
    """Run a worker that listens at `url`, and yield a runtime that rings there."""
    found = [facts(f"Likes tea {n}") for n in range(20)]
    rt = lab.runtime(llm=fakes.FakeLLM(found), sweep_s=sweep_s, redis_url=url)
    ringing = replace(rt, queue=queue.open_queue(url))
    stop = asyncio.Event()
    running = asyncio.create_task(main.serve(rt, stop))
    try:
        yield ringing
    finally:
        stop.set()
        await running
        await ringing.queue.close()


async def is_heard(lab: Lab, rt: Runtime, *, user: str = "alice") -> None:
    """Add until one add is done at once: the worker may still be on its way to the bell."""

    async def is_done_soon() -> bool:
        accepted = await lab.add(rt, "I like tea", owners=Owners(user_id=user))
        try:
            await eventually(lambda: lab.is_done(accepted), within_s=1.0)
        except TimeoutError:
            return False
        return True

    await eventually(is_done_soon)


async def test_a_ring_is_heard_at_once(fresh_lab: Lab, valkey_url: str) -> None:
    async with working(fresh_lab, valkey_url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt)
        started_at = time.perf_counter()
        accepted = await fresh_lab.add(rt, "I like rice")
        await eventually(lambda: fresh_lab.is_done(accepted))
        assert time.perf_counter() - started_at < SLOW_SWEEP_S / 60


async def test_rings_leave_nothing_behind(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    async with working(fresh_lab, valkey.url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt)
        connection = queue.connect(valkey.url, timeout_s=5.0)

        async def is_empty() -> bool:
            return {key.decode() for key in await connection.keys("*")} <= {f"{queue.QUEUE_NAME}:health-check"}

        await eventually(is_empty)
        await queue.close(connection)


async def test_a_worker_hears_again_after_redis_was_away(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    async with working(fresh_lab, valkey.url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt)
        valkey.stop()
        missed = await fresh_lab.add(rt, "I like rice")
        valkey.start()
        # Listening again, it looks for what was rung while it could not hear.
        await eventually(lambda: fresh_lab.is_done(missed))
        await is_heard(fresh_lab, rt)


async def test_events_end_while_redis_is_down(fresh_lab: Lab) -> None:
    async with working(fresh_lab, "redis://127.0.0.1:1", sweep_s=0.05) as rt:
        accepted = [await fresh_lab.add(rt, f"I like tea {n}") for n in range(3)]
        await eventually(lambda: fresh_lab.is_done(*accepted))
    assert len(await fresh_lab.memories()) == 3


async def test_events_end_though_redis_forgot_them(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    ringing = queue.ArqQueue(valkey.url)
    accepted = [await fresh_lab.add(replace(fresh_lab.runtime(), queue=ringing), f"I like tea {n}") for n in range(3)]
    await ringing.close()
    connection = queue.connect(valkey.url, timeout_s=5.0)
    assert await connection.zcard(queue.QUEUE_NAME) == 3
    await connection.flushall()
    await queue.close(connection)
    async with working(fresh_lab, valkey.url, sweep_s=0.05):
        await eventually(lambda: fresh_lab.is_done(*accepted))
    assert len(await fresh_lab.memories()) == 3


async def test_a_hung_redis_holds_up_neither_adds_nor_workers(
    fresh_lab: Lab, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell, "SOCKET_LIMIT_S", 0.3)
    async with working(fresh_lab, valkey.url, sweep_s=0.05) as rt:
        await is_heard(fresh_lab, rt)
        pid = valkey.child.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            started_at = time.perf_counter()
            accepted = [await fresh_lab.add(rt, f"I like rice {n}") for n in range(3)]
            assert time.perf_counter() - started_at < 3.0
            await eventually(lambda: fresh_lab.is_done(*accepted))
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_a_busy_worker_leaves_the_hints_to_others(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    never = asyncio.Event()

    class Busy(fakes.FakeLLM):
        async def complete_json(self, *args: object, **options: object) -> object:
            await never.wait()
            raise AssertionError

    busy = fresh_lab.runtime(llm=Busy(), worker_slots=1, sweep_s=SLOW_SWEEP_S, redis_url=valkey.url, drain_s=0.0)
    await fresh_lab.add(busy, "I like tea")
    stop = asyncio.Event()
    running = asyncio.create_task(main.serve(busy, stop))

    async def is_claimed() -> bool:
        async with fresh_lab.db.acquire(None) as conn:
            return bool(await conn.fetchval("SELECT count(*) FROM events WHERE status = 'RUNNING'"))

    await eventually(is_claimed)
    async with working(fresh_lab, valkey.url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt, user="bob")
        for n in range(6):  # a hint that the busy one takes is lost to the other
            accepted = await fresh_lab.add(rt, "I like tea", owners=Owners(user_id=f"carol{n}"))
            await eventually(lambda accepted=accepted: fresh_lab.is_done(accepted))
    stop.set()
    await running


async def test_a_bell_that_does_not_hear_its_end_is_told_again(
    lab: Lab, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancellation that comes at the wrong moment is lost inside ARQ; its worker went on for ever, and ours with it."""
    started, heard = asyncio.Event(), 0

    async def deaf(_worker: bell.Worker) -> None:
        nonlocal heard
        started.set()
        while heard < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard += 1

    monkeypatch.setattr(bell.Worker, "async_run", deaf)
    listening = asyncio.create_task(bell.listen(valkey_url, Pump(lab.runtime())))
    await started.wait()
    listening.cancel()
    done, _ = await asyncio.wait({listening}, timeout=5)
    assert done == {listening}
    assert listening.cancelled()
    assert heard == 2


async def test_a_check_names_the_server_and_refuses_a_wrong_password(valkey_url: str) -> None:
    assert (await queue.check(valkey_url)).startswith("valkey ")
    with pytest.raises(errors.SetupError, match="password"):
        await queue.check(valkey_url.replace("redis://:", "redis://:not-"))
