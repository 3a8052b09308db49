"""Starts and stops one worker."""

from __future__ import annotations

import asyncio
import signal

from app import log
from app.config import Settings
from app.runtime import Runtime, open_runtime
from worker import bell
from worker.pump import CANCEL_S, Pump

_log = log.get("worker")


async def run(settings: Settings) -> int:
    """Process events until SIGTERM or SIGINT, then finish or give back what runs; return the exit code.

    A second signal gives back at once. Raises: SetupError, DatabaseUnavailable when it cannot start.
    """
    stop, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        async with open_runtime(settings, queue=False) as rt:  # a worker is rung, it does not ring
            await serve(rt, stop, hurry)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    return 0


async def serve(rt: Runtime, stop: asyncio.Event, hurry: asyncio.Event | None = None) -> None:
    """Process events until `stop` is set, then wait for the running ones up to `drain_s` or until `hurry` is set."""
    pump = Pump(rt)
    url = rt.settings.redis_url
    tasks = [asyncio.create_task(pump.run()), asyncio.create_task(pump.tend())]
    if url is not None:
        tasks.append(asyncio.create_task(bell.listen(url.get_secret_value(), pump)))
    _log.info("worker.started", worker=pump.id, slots=rt.settings.worker_slots, doorbell=url is not None)
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            task.result()  # they never end by themselves: this raises the bug that ended one
    finally:
        stopping.cancel()
        for task in tasks[1:]:
            task.cancel()
        pump.stop()
        await asyncio.wait(tasks[:1], timeout=CANCEL_S)  # a claim that is under way comes home first
        given_back = await pump.drain(hurry or asyncio.Event())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, stopping, return_exceptions=True)
        _log.info("worker.stopped", worker=pump.id, given_back=given_back)
