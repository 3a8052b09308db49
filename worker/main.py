"""Starts and stops one worker."""

from __future__ import annotations

import asyncio
import signal

from app import log
from app.config import Settings
from app.domain import warm
from app.runtime import Runtime, open_runtime
from worker import bell, indexer
from worker.deliveries import Courier
from worker.pump import Pump
from worker.slots import CANCEL_S

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
    """Process events and deliver until `stop` is set; then wait for what runs up to `drain_s`, or until `hurry` is set."""
    await warm.up(rt)
    pump, courier = Pump(rt), Courier(rt)
    pump.on_wake = courier.wake  # whatever is rung for, and whatever ends, may have changed something to tell
    looking = [asyncio.create_task(slots.run()) for slots in (pump, courier)]
    around = [asyncio.create_task(slots.tend()) for slots in (pump, courier)]
    around.append(asyncio.create_task(indexer.run(rt)))
    url = rt.settings.redis_url
    if url is not None:
        around.append(asyncio.create_task(bell.listen(url.get_secret_value(), pump)))
    _log.info("worker.started", worker=pump.id, slots=pump.slots, doorbell=url is not None)
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({stopping, *looking, *around}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            task.result()  # they never end by themselves: this raises the bug that ended one
    finally:
        stopping.cancel()
        for task in around:
            task.cancel()
        pump.stop()
        courier.stop()
        await asyncio.wait(looking, timeout=CANCEL_S)  # a claim that is under way comes home first
        hurried = hurry or asyncio.Event()
        given_back = sum(await asyncio.gather(pump.drain(hurried), courier.drain(hurried)))
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, *around, stopping, return_exceptions=True)
        _log.info("worker.stopped", worker=pump.id, given_back=given_back)
