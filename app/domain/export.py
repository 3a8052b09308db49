"""Exports: memories as one object in the shape of a caller's schema. Asked for in a request, made by the worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.domain import attempt, audit, backlog, filters, shaping
from app.domain.request import fingerprint
from app.model import And, Caller, Condition, Event, Export, FilterNode, Operator, Status
from app.runtime import Runtime
from app.store import claims, events, exports, orgs

KIND = "EXPORT"
KEPT_DAYS = 7  #: as on the hosted platform
LOOKED_AT = 1000  #: newest exports among which one is looked for by its filters
NOT_FOUND = "No memory export request found"

_TIMES = ("created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request for an export."""

    schema: dict[str, Any]
    filters: dict[str, Any]  # as they were sent; name an owner
    instructions: str | None = None


async def ask(rt: Runtime, caller: Caller, request: Request, *, idempotency_key: str | None = None) -> Event:
    """Commit the event of an export and ring the worker; return the event, whose id is the export's.

    With an `idempotency_key` that was used for the same request, return its event again.
    Raises: KeyReused; RateLimited.
    """
    project = caller.project
    payload: dict[str, Any] = {"schema": request.schema, "filters": request.filters}
    if request.instructions:
        payload["export_instructions"] = request.instructions
    await backlog.require_room(rt, project)
    event_id = uuid7()
    async with rt.db.transaction(project.id) as conn:
        event = await events.insert(
            conn,
            project.id,
            event_id,
            KIND,
            payload,
            idempotency_key=idempotency_key,
            idempotency_print=None if idempotency_key is None else fingerprint(KIND, payload),
        )
        if event.id == event_id:
            await exports.insert(
                conn,
                project.id,
                event_id,
                schema=request.schema,
                instructions=request.instructions,
                filters=request.filters,
                null_scoping=project.settings.null_scoping,
            )
            await audit.note(conn, "export.create", project=project, objects=[event_id])
    await rt.queue.ring(event.id)
    return event


async def process(rt: Runtime, event: Event) -> attempt.Outcome:
    """Make the object of a claimed event, and finish, put off or fail it. Safe to run twice."""
    return await attempt.run(rt, event, _work(rt, event))


async def _work(rt: Runtime, event: Event) -> int:
    async with rt.db.acquire(event.project_id) as conn:
        project = await orgs.get_project(conn, event.project_id)
        found = await exports.find(conn, event.project_id, event.id, kept_days=KEPT_DAYS)
    if found is None:
        raise errors.ShapeUnfilled("The export is older than a week, or its memories were deleted.")
    asked = found[0]
    node = selected(rt, asked.filters, null_scoping=asked.null_scoping)
    made = await shaping.make(rt, project, asked.schema, node, instructions=asked.instructions)
    async with rt.db.transaction(event.project_id) as conn:
        if await claims.lock_for_finish(conn, event) is None:
            raise attempt.Fenced
        await exports.finish(conn, event.project_id, event.id, made.value, scope_ids=made.scope_ids)
        if not await claims.finish(conn, event, [], made.notes()):
            raise attempt.Fenced
    return 0


def selected(rt: Runtime, raw: dict[str, Any], *, null_scoping: bool) -> FilterNode:
    """Return which memories filters mean, hiding what a list hides. Raises: InvalidRequest."""
    node = parsed(rt, raw)
    return filters.narrow(filters.null_scoped(node) if null_scoping else node, today=datetime.now(UTC).date())


def parsed(rt: Runtime, raw: dict[str, Any]) -> FilterNode:
    """Read filters. Raises: InvalidRequest; OwnerRequired when they name no owner."""
    node = filters.parse(raw, max_depth=rt.settings.max_filter_depth, max_conditions=rt.settings.max_filter_conditions)
    filters.require_owner(node)
    return node


# Reading


async def fetch(rt: Runtime, caller: Caller, export_id: UUID) -> dict[str, Any]:
    """Return the object of an export. Raises: NotFound while it is not ready, with the reason if it failed."""
    async with rt.db.acquire(caller.project.id) as conn:
        found = await exports.find(conn, caller.project.id, export_id, kept_days=KEPT_DAYS)
    if found is None:
        raise errors.NotFound(NOT_FOUND)
    export, status, error = found
    if export.result is None:
        raise errors.NotFound(f"{NOT_FOUND}: it failed. {error}" if status is Status.FAILED else NOT_FOUND)
    return export.result


async def fetch_newest(rt: Runtime, caller: Caller, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the object of the newest export that was asked for with these filters; `created_at` and `updated_at` in them
    may also be the export's own.

    Raises: InvalidRequest; NotFound, also while that export is not ready.
    """
    wanted = list(_conjuncts(parsed(rt, raw)))
    async with rt.db.acquire(caller.project.id) as conn:
        newest = await exports.newest(conn, caller.project.id, kept_days=KEPT_DAYS, limit=LOOKED_AT)
    for export in newest:
        try:
            asked = list(_conjuncts(parsed(rt, export.filters)))
        except errors.InvalidRequest:  # the limits of the settings were wider when it was asked for
            continue
        if _matches(wanted, export, asked):
            return await fetch(rt, caller, export.id)
    raise errors.NotFound(NOT_FOUND)


def _matches(wanted: list[FilterNode], export: Export, asked: list[FilterNode]) -> bool:
    if any(node not in asked and not _is_own_time(node, export) for node in wanted):
        return False
    return all(node in wanted or _is_time(node) for node in asked)


def _conjuncts(node: FilterNode) -> Iterable[FilterNode]:
    """Yield what a tree demands together: flat filters and a written AND mean the same."""
    if isinstance(node, And):
        for part in node.parts:
            yield from _conjuncts(part)
    else:
        yield node


def _is_time(node: FilterNode) -> bool:
    return isinstance(node, Condition) and node.field in _TIMES


def _is_own_time(node: FilterNode, export: Export) -> bool:
    """Whether a condition on a time holds for the export's own."""
    if not isinstance(node, Condition) or node.field not in _TIMES or not isinstance(node.value, date):
        return False
    at: datetime = getattr(export, node.field)
    own: Any = at if isinstance(node.value, datetime) else at.date()  # a day without a time means the whole of it
    holds: dict[Operator, bool] = {
        Operator.GT: own > node.value,
        Operator.GTE: own >= node.value,
        Operator.LT: own < node.value,
        Operator.LTE: own <= node.value,
        Operator.EQ: own == node.value,
    }
    return holds.get(node.op, False)
