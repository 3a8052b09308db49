"""The doorbell's other end: an ARQ worker that wakes the pump, started again whenever Redis dies or hangs."""

from __future__ import annotations

import asyncio

import redis.exceptions
from arq.worker import Worker, func

from app import log, queue, redis_away
from worker import jobs
from worker.pump import Pump

SOCKET_LIMIT_S = 5.0  #: a command of a hung server fails after so long
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0  #: between two starts, doubling
POLL_S = 0.03  #: ARQ looks so often; its default of 0.5 s would be most of an add's way to a worker
READ_LIMIT = 1000  #: hints in one look; ARQ's default of 100 can hide runnable ones behind those of other workers

_log = log.get("worker.bell")


async def listen(redis_url: str, pump: Pump) -> None:
    """Wake `pump` at every ring, for ever. A dead Redis costs promptness only: the pump looks by itself, too."""
    wait_s = FIRST_WAIT_S
    loop = asyncio.get_running_loop()
    while True:
        started_at = loop.time()
        try:
            await _listen_once(redis_url, pump)
        except redis_away.ERRORS as error:
            lasted = loop.time() - started_at
            if lasted > LONGEST_WAIT_S or wait_s == FIRST_WAIT_S:  # the first of a row of failures, not each
                _log.warning("queue.lost", error=f"{type(error).__name__}: {error}")
            if isinstance(error, redis.exceptions.ResponseError):
                await _discard(redis_url)
            wait_s = FIRST_WAIT_S if lasted > 2 * SOCKET_LIMIT_S else min(2 * wait_s, LONGEST_WAIT_S)
        except Exception:  # noqa: BLE001 - the worker's door: nothing that lies in Redis may stop a worker
            _log.exception("queue.unreadable")
            await _discard(redis_url)
        await asyncio.sleep(wait_s)


async def _discard(redis_url: str) -> None:
    """Throw the hints away: something among them cannot be read, and would be there at the next start, too.

    The pump finds by itself what they were about.
    """
    connection = queue.connect(redis_url, timeout_s=SOCKET_LIMIT_S)
    try:
        await connection.delete(queue.QUEUE_NAME)
    except redis_away.ERRORS:
        _log.warning("queue.not_discarded")
    finally:
        await queue.close(connection)


async def _listen_once(redis_url: str, pump: Pump) -> None:
    connection = queue.connect(redis_url, timeout_s=SOCKET_LIMIT_S)
    worker = Worker(
        [func(jobs.ring, name=queue.RING)],
        queue_name=queue.QUEUE_NAME,
        redis_pool=connection,
        handle_signals=False,
        poll_delay=POLL_S,
        queue_read_limit=READ_LIMIT,
        job_timeout=SOCKET_LIMIT_S,
        keep_result=0,  # with a kept result ARQ would refuse the same id for an hour
        max_tries=1,  # attempts are counted in the database
        retry_jobs=False,
        log_results=False,
        job_serializer=queue.encode,
        job_deserializer=queue.decode,
        ctx={"pump": pump},
    )

    def pick(room: bool) -> None:
        worker.allow_pick_jobs = room  # a busy worker leaves the hints to the others

    pump.on_room = pick
    try:
        await connection.ping()
        pump.wake()  # for what was rung while nobody listened
        running = asyncio.create_task(worker.async_run())
        try:
            await asyncio.wait({running})  # and not the task itself: our end must not depend on its hearing of it
            running.result()
        finally:
            await _end(running)
    finally:
        pump.on_room = lambda _room: None
        for task in worker.tasks.values():
            task.cancel()
        await asyncio.gather(*worker.tasks.values(), return_exceptions=True)
        await queue.close(connection)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel until it has ended: ARQ and the client of Redis can lose a cancellation that comes with an answer."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=POLL_S)
