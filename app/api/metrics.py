"""The numbers of the installation for Prometheus: none of them is about a project."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from ipaddress import ip_address
from typing import Any

from fastapi import APIRouter, Request, Response

from app import __version__, errors, metrics
from app.api import docs
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Route, Shape
from app.domain import access
from app.metrics import Family
from app.queue import ArqQueue
from app.runtime import Runtime
from app.store import counters, events, workers
from app.store.counters import Labels

WORKER_SEEN_S = 15.0  #: as readiness has it
TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Counters of workers and of this process: name → what it is.
COUNTERS = {
    "requests": "Requests that were answered by this process.",
    "events_accepted": "Adds that this process has accepted.",
    "events_processed": "Attempts at events that have ended, by what came of them.",
    "claims": "Events that workers have taken.",
    "leases_lost": "Leases that had gone to another worker when they were to be renewed.",
    "lease_renewals_failed": "Renewals of leases that the database did not answer.",
    "work_reclaimed": "Events and deliveries of dead workers that were made due again.",
    "deliveries_attempted": "Attempts to deliver to a webhook's endpoint, by what came of them.",
}


class _Route(Route):
    """Open to this machine where the settings say so; else as every route with a key."""

    shape = Shape.DETAIL

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        guarded = super().get_route_handler()

        async def handler(request: Request) -> Response:
            rt: Runtime = request.app.state.runtime
            if rt.settings.metrics_open and _is_local(request):
                return await _answer(rt)
            return await guarded(request)

        return handler


routes = APIRouter(
    route_class=_Route, tags=["service"], redirect_slashes=False, generate_unique_id_function=lambda route: route.name
)


def _is_local(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:  # a name, as test clients have
        return False


@routes.get(
    "/metrics",
    response_class=Response,
    responses=docs.statuses()
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text."}},
)
async def get_metrics(caller: Caller, rt: RuntimeDep) -> Response:
    """Return the numbers of the installation in Prometheus' text format.

    For a key with the scope `admin` in the installation's own organization, which is its first one; with
    `MEMORYD_METRICS_OPEN` also for whoever asks from the same machine, without a key.
    """
    if not await access.is_installations(rt, caller):
        raise errors.NotAllowed(
            "These are numbers of the whole installation: ask with a key of its first organization."
        )
    return await _answer(rt)


async def _answer(rt: Runtime) -> Response:
    async with rt.db.acquire(None) as conn:
        waiting = await counters.waiting(conn)
        age = await events.oldest_pending_age(conn)
        alive = await workers.alive(conn, within_s=WORKER_SEEN_S)
        totals = await counters.totals(conn)
    gauges: list[tuple[str, str, Mapping[Labels, float]]] = [
        ("build_info", "The release that answers.", {(("version", __version__),): 1}),
        ("events_pending", "Events that wait, also for their next attempt.", {(): waiting["pending"]}),
        ("events_due", "Events that could be processed now: the depth of the queue.", {(): waiting["due"]}),
        ("events_running", "Events that are being processed.", {(): waiting["running"]}),
        ("oldest_due_seconds", "How long the event that waits longest has been due.", {(): age or 0.0}),
        ("workers", "Workers that live.", {(): len(alive)}),
        ("worker_slots", "Events that they can process at the same time.", {(): sum(one.slots for one in alive)}),
        (
            "db_connections",
            "Connections of this process to the database.",
            {(("state", state),): number for state, number in rt.db.connections().items()},
        ),
    ]
    families = [Family(f"memoryd_{n}", "gauge", text, [("", *pair) for pair in v.items()]) for n, text, v in gauges]
    all_counted = {**totals, **metrics.counted()}
    if isinstance(rt.queue, ArqQueue):
        families.append(
            Family(
                "memoryd_doorbell_failures_total",
                "counter",
                "Rings that did not reach Redis.",
                [("", (), rt.queue.failures)],
            )
        )
    for name, meaning in COUNTERS.items():
        samples = [("", labels, float(value)) for (n, labels), value in sorted(all_counted.items()) if n == name]
        families.append(Family(f"memoryd_{name}_total", "counter", meaning, samples))
    return Response(metrics.text([*families, metrics.durations()]), headers={"Content-Type": TYPE})
