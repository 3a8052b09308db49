"""Is it there, is it ready, whose key is this."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import Request

from app import __version__, errors, queue
from app.api import answers, docs
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.runtime import Runtime
from app.store import events, migrate, workers

WORKER_SEEN_S = 15.0  #: a worker that has not reported for so long does not count; it does every few seconds
WAITS_TOO_LONG_S = 60.0  #: a due event that waits longer says that the workers do not keep up

LOOK_S = 2.5  #: how long a look at the database may take
_SILENT = {
    "database": "The database has not answered within 2.5 seconds.",
    "migrations": "unknown",
    "workers": 0,
    "oldest_pending_s": None,
}

keyed = router(Shape.DETAIL, tag="service")
public = router(Shape.DETAIL, tag="service", guarded=False)


@keyed.get("/v1/ping/", response_model=answers.Pong, responses=docs.statuses())
async def ping(caller: Caller) -> Reply:
    """Say whose key this is. Clients ask before their first call."""
    project = caller.project
    return Reply({
        "status": "ok",
        "org_id": project.organization_public_id,
        "project_id": project.public_id,
        "user_email": caller.email,
    })  # fmt: skip


@public.head("/healthz", include_in_schema=False)  # what monitors ask
@public.get("/healthz", response_model=answers.Health, responses=docs.statuses(guarded=False))
async def healthz() -> Reply:
    """Say that the process lives. Asks nobody else."""
    return Reply({"status": "ok", "version": __version__})


@public.head("/readyz", include_in_schema=False)
@public.get(
    "/readyz",
    response_model=answers.Readiness,
    responses={**docs.statuses(guarded=False), 503: docs.response(answers.Readiness, "The database cannot be used.")},
)
async def readyz(request: Request, rt: RuntimeDep) -> Reply:
    """Say whether the service can do its work: database, schema, Redis, workers, and how long work has waited."""
    database, redis = await asyncio.gather(_within(_database(rt), _SILENT), _redis(rt))
    report = {**database, "redis": redis}
    for part in ("database", "migrations"):
        if report[part] != "ok":
            return Reply({"status": "unavailable", **report, "detail": report[part]}, status_code=503)
    trouble = _trouble(report)
    return Reply({"status": "degraded" if trouble else "ok", **report, "detail": trouble})


def _trouble(report: dict[str, Any]) -> str | None:
    """Return what slows the service down, or None."""
    if report["workers"] == 0:
        return "No worker runs: adds are accepted, and wait."
    waited = report["oldest_pending_s"]
    if waited is not None and waited > WAITS_TOO_LONG_S:
        return f"An add has waited for {waited:.0f} seconds: the workers do not keep up."
    return None if report["redis"] in ("ok", "off") else str(report["redis"])


async def _within(look: Coroutine[Any, Any, dict[str, Any]], otherwise: dict[str, Any]) -> dict[str, Any]:
    """Return what a look at the database finds within `LOOK_S`. A monitor that waits longer takes this process for dead."""
    task = asyncio.create_task(look)
    done, _ = await asyncio.wait({task}, timeout=LOOK_S)
    if done:
        return task.result()
    task.cancel()  # and not waited for: a connection without an answer takes its time to end, too
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return otherwise


async def _database(rt: Runtime) -> dict[str, Any]:
    report: dict[str, Any] = {"database": "ok", "migrations": "ok", "workers": 0, "oldest_pending_s": None}
    try:
        async with rt.db.acquire(None) as conn:
            await migrate.require_current(conn)
            report["workers"] = len(await workers.alive(conn, within_s=WORKER_SEEN_S))
            report["oldest_pending_s"] = await events.oldest_pending_age(conn)
    except errors.SetupError as error:
        report["migrations"] = error.message
    except errors.DatabaseUnavailable as error:
        report["database"] = error.message
        report["migrations"] = "unknown"
    return report


async def _redis(rt: Runtime) -> str:
    if rt.settings.redis_url is None:
        return "off"
    try:
        await queue.check(rt.settings.redis_url.get_secret_value())
    except (errors.TryLater, errors.SetupError) as error:
        return error.message
    return "ok"
