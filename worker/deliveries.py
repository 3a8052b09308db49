"""Webhooks: due deliveries are claimed and sent, in slots of their own, so that slow endpoints hold up no event."""

from __future__ import annotations

import time

import structlog

from app import log, metrics
from app.domain import deliver
from app.model import Status
from app.runtime import Runtime
from app.store import deliveries
from app.store.deliveries import Claimed
from worker.slots import Slots

PURGE_EVERY_S = 600.0
PURGE_ROWS = 1000  #: deleted in one statement

_log = log.get("worker")


class Courier(Slots[Claimed]):
    """Makes up to `webhook_slots` deliveries at the same time, few of them to one endpoint."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(rt, rt.settings.webhook_slots)
        self._purge_at = 0.0  # by the monotonic clock
        # One endpoint, however slow, leaves three quarters of the slots to the others.
        self._per_endpoint = max(1, min(deliver.PER_ENDPOINT, self.slots // 4))

    async def claim(self) -> Claimed | None:
        """Take a due delivery."""
        lease_s = self._rt.settings.webhook_timeout_s + deliver.LEASE_MARGIN_S
        async with self._rt.db.acquire(None) as conn:
            return await deliveries.claim(conn, lease_s=lease_s, per_endpoint=self._per_endpoint)

    async def work(self, item: Claimed) -> float | None:
        """Send a delivery."""
        delivery = item.delivery
        with structlog.contextvars.bound_contextvars(
            delivery_id=str(delivery.id), project_id=delivery.project_id, webhook=delivery.endpoint_id
        ):
            verdict = await deliver.once(self._rt, item)
            metrics.count("deliveries_attempted", outcome=str(verdict.status).lower() if verdict else "fenced")
            _log.info(
                "delivery.attempted",
                event_type=delivery.event_type,
                attempt=delivery.attempts,
                outcome=verdict.status if verdict else "Lost",
            )
        return verdict.delay_s if verdict and verdict.status is Status.PENDING else None

    async def sweep(self) -> int:
        """Make deliveries of dead workers due again; now and then delete what is too old to keep."""
        settings = self._rt.settings
        async with self._rt.db.acquire(None) as conn:
            reclaimed = await deliveries.reclaim_expired(conn, settings.webhook_delays_s)
            if time.monotonic() >= self._purge_at:
                purged = await deliveries.purge(conn, keep_days=settings.webhook_keep_days, limit=PURGE_ROWS)
                if purged < PURGE_ROWS:
                    self._purge_at = time.monotonic() + PURGE_EVERY_S
        return reclaimed

    async def give_back(self, item: Claimed) -> None:
        """Return a delivery undone. A receiver that has it already knows it again by its id."""
        await deliver.give_back(self._rt, item)
