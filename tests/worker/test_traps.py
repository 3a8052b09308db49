"""What a queue in Redis does behind one's back, and why none of it is seen here."""

from __future__ import annotations

import asyncio
import pickle
import time
from pathlib import Path
from typing import Any

from arq.constants import in_progress_key_prefix, job_key_prefix

from app import queue
from app.model import Status
from app.runtime import Runtime
from app.servers.valkey import ValkeyServer
from tests.worker.conftest import Lab, eventually
from tests.worker.test_doorbell import SLOW_SWEEP_S, is_heard, working
from tests.worker.test_doorbell import valkey as valkey

LOCKED = 150  # ARQ by itself reads the first hundred
DAY_S = 86_400


async def is_heard_when_idle(lab: Lab, rt: Runtime) -> None:
    """Add when the worker has nothing to do: only the bell can tell it."""

    async def is_idle() -> bool:
        async with lab.db.acquire(None) as conn:
            return await conn.fetchval("SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING')") == 0

    for number in range(3):
        await eventually(is_idle)
        await asyncio.sleep(0.2)  # the end of a piece of work is a wake, too
        accepted = await lab.add(rt, f"I like rice {number}")
        await eventually(lambda accepted=accepted: lab.is_done(accepted))


async def test_hints_that_others_hold_hide_no_other_one(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    """The first of a queue stay in it while they are worked on, and whoever reads only those finds nothing to do."""
    connection = queue.connect(valkey.url, timeout_s=5.0)
    for number in range(LOCKED):
        await connection.zadd(queue.QUEUE_NAME, {f"held-{number}": number})
        await connection.set(f"{in_progress_key_prefix}held-{number}", b"1")
        await connection.set(f"{job_key_prefix}held-{number}", queue.encode(_job("held")))
    async with working(fresh_lab, valkey.url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt)
        await is_heard_when_idle(fresh_lab, rt)
    assert await connection.zcard(queue.QUEUE_NAME) >= LOCKED
    await queue.close(connection)


async def test_hint_that_expired_loses_no_event(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    """After a day the queue drops what it was given, and keeps an entry that says nothing."""
    rt = fresh_lab.runtime()
    accepted = [await fresh_lab.add(rt, f"I like tea {n}") for n in range(3)]
    await fresh_lab.execute(
        "UPDATE events SET created_at = created_at - interval '2 days', next_at = next_at - interval '2 days'"
    )
    connection = queue.connect(valkey.url, timeout_s=5.0)
    for one in accepted:
        await connection.zadd(queue.QUEUE_NAME, {str(one.event.id): (time.time() - 2 * DAY_S) * 1000})
    async with working(fresh_lab, valkey.url, sweep_s=0.05):
        await eventually(lambda: fresh_lab.is_done(*accepted))
    assert {(await fresh_lab.event(one)).status for one in accepted} == {Status.SUCCEEDED}
    await queue.close(connection)


async def test_event_is_rung_for_again_as_often_as_one_likes(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    """A queue that keeps results refuses the same name for an hour."""
    async with working(fresh_lab, valkey.url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt)
        first = await fresh_lab.add(rt, "I like rice")
        await eventually(lambda: fresh_lab.is_done(first))
        await fresh_lab.execute(
            "UPDATE events SET status = 'PENDING', completed_at = NULL, results = '[]', attempts = 0 WHERE id = $1",
            first.event.id,
        )
        await rt.queue.ring(first.event.id)
        await eventually(lambda: fresh_lab.is_done(first))


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self._path, "w"))


async def test_what_lies_in_redis_is_never_run_and_stops_nobody(
    fresh_lab: Lab, valkey: ValkeyServer, tmp_path: Path
) -> None:
    connection = queue.connect(valkey.url, timeout_s=5.0)
    trap = pickle.dumps({"t": 1, "f": queue.RING, "a": (Trap(str(tmp_path / "sprung")),), "k": {}, "et": 5})
    bad = (trap, b"", b"{", b"[]", b"null", b"\xff\xfe", queue.encode(_job("no such function")), queue.encode({}))
    async with working(fresh_lab, valkey.url, sweep_s=SLOW_SWEEP_S) as rt:
        await is_heard(fresh_lab, rt)
        for number, data in enumerate(bad):
            await connection.set(f"{job_key_prefix}bad-{number}", data)
            await connection.zadd(queue.QUEUE_NAME, {f"bad-{number}": 1})
        await connection.zadd(queue.QUEUE_NAME, {b"\xff\xfe": 1})
        await is_heard(fresh_lab, rt)
        await is_heard_when_idle(fresh_lab, rt)
    assert not (tmp_path / "sprung").exists()
    await queue.close(connection)


async def test_redis_that_holds_other_things_under_our_names_stops_nobody(fresh_lab: Lab, valkey: ValkeyServer) -> None:
    connection = queue.connect(valkey.url, timeout_s=5.0)
    await connection.set(queue.QUEUE_NAME, b"no sorted set")
    async with working(fresh_lab, valkey.url, sweep_s=0.05) as rt:
        accepted = [await fresh_lab.add(rt, f"I like rice {n}") for n in range(3)]
        await eventually(lambda: fresh_lab.is_done(*accepted))
    await queue.close(connection)


def _job(function: str) -> dict[str, Any]:
    return {"t": 1, "f": function, "a": ["x"], "k": {}, "et": 5}
