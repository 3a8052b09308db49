"""What a worker does: one event with one verb, and what ARQ may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from app import errors, log, metrics
from app.domain import add, attempt, categorize, export, profile
from app.model import Event
from app.runtime import Runtime

_log = log.get("worker")

#: The verb for each kind of event that is accepted first and done later.
VERBS: Mapping[str, Callable[[Runtime, Event], Awaitable[attempt.Outcome]]] = {
    "ADD": add.process,
    "CATEGORIZE": categorize.process,
    export.KIND: export.process,
    profile.EVENT: profile.process,
}


#: What metrics call an outcome. `fenced`: another worker had the event, and nothing of this one's was stored.
_WORDS = {attempt.Done: "done", attempt.RetryAt: "retry", attempt.GaveUp: "failed", attempt.Lost: "fenced"}


async def process(rt: Runtime, event: Event) -> attempt.Outcome:
    """Process one claimed event and return what came of it. A bug of ours counts as a failed attempt.

    Raises: DatabaseUnavailable when the outcome could not be put down; the event is found again by its lease.
    """
    with structlog.contextvars.bound_contextvars(
        event_id=str(event.id), project_id=event.project_id, attempt=event.attempts
    ):
        outcome = await _outcome(rt, event)
        metrics.count("events_processed", kind=event.kind, outcome=_WORDS[type(outcome)])
        _log.info("event.processed", kind=event.kind, outcome=type(outcome).__name__, **_details(outcome))
        return outcome


async def _outcome(rt: Runtime, event: Event) -> attempt.Outcome:
    verb = VERBS.get(event.kind)
    if verb is None:
        error = errors.InvalidRequest(f"This release cannot process events of kind {event.kind}.")
        return await attempt.failed(rt, event, error)
    try:
        return await verb(rt, event)
    except errors.AppError:
        raise
    except Exception:  # noqa: BLE001 - the worker's door: anything else is a bug, and must not stop the other events
        _log.exception("event.crashed")
        return await attempt.failed(rt, event, errors.InternalError())


def _details(outcome: attempt.Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in ("added", "code", "delay_s") if hasattr(outcome, name)}


async def ring(ctx: dict[str, Any], _event_id: str) -> None:
    """Wake the pump of this worker. ARQ calls it for every hint; which event it was does not matter."""
    ctx["pump"].wake()
