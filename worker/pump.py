"""Events: due ones are claimed and processed, those of dead workers made due again, and the worker shows that it lives."""

from __future__ import annotations

import os
import secrets
import socket
import time
from datetime import datetime

from app import errors, log, metrics
from app.domain import attempt, export
from app.model import Event
from app.runtime import Runtime
from app.store import audit, claims, counters, erase_owner, exports, idempotency, workers
from worker import jobs
from worker.slots import Slots

_log = log.get("worker")

CLOCKS_DIFFER_S = 30.0  #: between this machine and the database; more is logged
PURGE_EVERY_S = 600.0  #: between two looks for exports that nobody can fetch any more


class Pump(Slots[Event]):
    """Processes up to `worker_slots` events at the same time."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(rt, rt.settings.worker_slots)
        self._purge_at = 0.0  # by the monotonic clock
        self._ahead_s = 0.0  # of the database, as it was logged last
        self.id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"

    async def claim(self) -> Event | None:
        """Take a due event."""
        async with self._rt.db.acquire(None) as conn:
            event = await claims.claim(conn, lease_s=self._rt.settings.lease_s)
        if event is not None:
            metrics.count("claims")
        return event

    async def work(self, item: Event) -> float | None:
        """Process an event."""
        outcome = await jobs.process(self._rt, item)
        return outcome.delay_s if isinstance(outcome, attempt.RetryAt) else None

    async def sweep(self) -> int:
        """Make events of dead workers due again, and say that this worker lives."""
        async with self._rt.db.acquire(None) as conn:
            reclaimed = await claims.reclaim_expired(conn, self._rt.settings.retry_delays_s)
            self._compare(await workers.beat(conn, self.id, slots=self.slots, running=self.running))
            if time.monotonic() >= self._purge_at:
                await exports.delete_old(conn, kept_days=export.KEPT_DAYS)
                await erase_owner.forget_old(conn)
                await idempotency.purge(conn)
                await audit.purge(conn, keep_days=self._rt.settings.audit_keep_days)
                self._purge_at = time.monotonic() + PURGE_EVERY_S
        await self._report()
        return reclaimed

    async def _report(self) -> None:
        """Add what was counted here to what all workers have counted."""
        counted = metrics.take()
        try:
            async with self._rt.db.acquire(None) as conn:
                await counters.add(conn, counted)
        except errors.DatabaseUnavailable:
            metrics.put_back(counted)
            raise

    def _compare(self, now: datetime) -> None:
        """Say, whenever that changes, how far this machine's clock is from the database's, which alone decides."""
        ahead_s = time.time() - now.timestamp()
        if abs(ahead_s - self._ahead_s) > CLOCKS_DIFFER_S:
            _log.warning("clock.differs", ahead_of_database_s=round(ahead_s))
            self._ahead_s = ahead_s

    async def give_back(self, item: Event) -> None:
        """Return an event undone."""
        await attempt.give_back(self._rt, item)

    async def forget(self) -> None:
        """Take this worker from the list of those that live, and leave its numbers."""
        await self._report()
        async with self._rt.db.acquire(None) as conn:
            await workers.forget(conn, self.id)
