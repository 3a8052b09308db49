"""Events: what was requested, and what came of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path, Query, Request

from app import errors, model
from app.api import answers, docs, pages
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import pins
from app.model import Status
from app.store import events

PAGE_SIZE = 50
MAX_PAGE_SIZE = 100

routes = router(Shape.ERROR, tag="events")


@routes.get(
    "/v1/events/",
    response_model=answers.EventPage,
    responses=docs.statuses(400, shape=Shape.ERROR) | docs.PAST_THE_END,
)
async def list_events(
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    event_type: Annotated[str | None, Query(description="Only this kind, such as ADD.")] = None,
    status: Annotated[Status | None, Query(description="Only events in this state.")] = None,
    start_date: Annotated[str | None, Query(description="Accepted on this day or later, YYYY-MM-DD.")] = None,
    end_date: Annotated[str | None, Query(description="Accepted on this day or earlier, YYYY-MM-DD.")] = None,
    page: Annotated[int, Query(ge=1, le=1_000_000, description="From 1.")] = 1,
    page_size: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Events on a page.")] = PAGE_SIZE,
) -> Reply:
    """List the project's events, newest first."""
    since, until = _midnight("start_date", start_date), _midnight("end_date", end_date)
    async with rt.db.acquire(caller.project.id) as conn:
        count, found = await events.list_page(
            conn,
            caller.project.id,
            kind=event_type.upper() if event_type else None,
            status=status,
            since=since,
            before=until + timedelta(days=1) if until else None,
            limit=page_size,
            offset=(page - 1) * page_size,
        )
    return Reply(
        pages.envelope(
            request, rt.settings, page=page, page_size=page_size, count=count, items=found, render=answers.event
        )
    )


@routes.get("/v1/event/{event_id}/", response_model=answers.EventOut, responses=docs.statuses(404, shape=Shape.ERROR))
async def get_event(
    caller: Caller, rt: RuntimeDep, event_id: Annotated[str, Path(description="From the answer of the request.")]
) -> Reply:
    """Return one event. Poll it until `status` is SUCCEEDED or FAILED."""
    known = read.uuid(event_id)
    if known is None:  # whatever it is, it names no event
        raise errors.EventNotFound
    async with rt.db.acquire(caller.project.id) as conn:
        event = await events.get(conn, caller.project.id, known)
    if caller.pins and not _is_add_of(caller, event):
        raise errors.EventNotFound
    return Reply(answers.event(event))


def _is_add_of(caller: model.Caller, event: model.Event) -> bool:
    """Return whether this is an add within the caller's pins; other events may tell about other owners."""
    owners = model.Owners(**{name: event.payload.get(name) for name in model.OWNER_FIELDS})
    return event.kind == "ADD" and pins.allows(caller.pins, owners)


routes.add_api_route(  # the command line's documents print this spelling
    "/v1/events/{event_id}/",
    get_event,
    methods=["GET"],
    response_model=answers.EventOut,
    responses=docs.statuses(404, shape=Shape.ERROR),
    operation_id="get_event_by_its_older_path",
)


def _midnight(name: str, raw: str | None) -> datetime | None:
    if not raw:
        return None
    try:
        day = read.day(raw)
    except ValueError as error:
        raise errors.InvalidRequest(f"{name} {error}") from error
    return read.instant(day.isoformat()) if day else None
