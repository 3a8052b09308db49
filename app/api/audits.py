"""The audit log of the key's own project, for whoever administers it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field

from app import errors
from app.api import docs, pages
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.pages import Page
from app.api.wire import Reply, Shape, router
from app.domain import audit as audits
from app.model import AuditOutcome
from app.store import audit

PAGE_SIZE = 50
MAX_PAGE_SIZE = 100

routes = router(Shape.ERROR, tag="audit")


class AuditLineOut(BaseModel):
    """That somebody administered or destroyed something, or tried to."""

    at: datetime = Field(description="When.")
    action: str = Field(description="What, such as key.create or memories.delete_all.")
    actor: str = Field(description="Who: the `id` of an API key, or `cli`, somebody at a shell.")
    org_id: str | None = Field(description="The organization that it was done in.")
    project_id: str | None = Field(description="The project that it was done in; null: to an organization.")
    objects: list[str] = Field(
        description="Ids of what it was done to; of users, agents, apps, runs and members the kind and a digest."
    )
    outcome: AuditOutcome = Field(description="`refused`: the key may not do that.")
    address: str | None = Field(description="Where the request came from; null: a shell.")
    request_id: str | None = Field(description="The `X-Request-ID` of the request.")


class AuditPage(Page):
    results: list[AuditLineOut] = Field(description="The lines of this page, newest first.")


@routes.get(
    "/v1/audit/",
    response_model=AuditPage,
    responses=docs.statuses(400, shape=Shape.ERROR) | docs.PAST_THE_END,
)
async def list_audit(
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    action: Annotated[str | None, Query(description="Only this action, such as key.create.")] = None,
    actor: Annotated[str | None, Query(description="Only what this key has done: its `id`; or `cli`.")] = None,
    since: Annotated[str | None, Query(description="From this time on: ISO 8601, or Unix seconds.")] = None,
    before: Annotated[str | None, Query(description="Before this time.")] = None,
    page: Annotated[int, Query(ge=1, le=1_000_000, description="From 1.")] = 1,
    page_size: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Lines on a page.")] = PAGE_SIZE,
) -> Reply:
    """List who did what that administers or destroys: in the key's project, or with keys of it. Newest first."""
    if action is not None and action not in audits.ACTIONS:
        raise errors.InvalidRequest(f"action must be one of {', '.join(sorted(audits.ACTIONS))}.")
    async with rt.db.acquire(caller.project.id) as conn:
        count, found = await audit.list_page(
            conn,
            caller.project.id,
            action=action,
            actor=actor,
            since=_instant("since", since),
            before=_instant("before", before),
            limit=page_size,
            offset=(page - 1) * page_size,
        )
    return Reply(
        pages.envelope(
            request, rt.settings, page=page, page_size=page_size, count=count, items=found, render=audits.shown
        )
    )


def _instant(name: str, raw: str | None) -> datetime | None:
    if not raw:
        return None
    try:
        return read.instant(float(raw) if raw.strip().replace(".", "", 1).isdecimal() else raw)
    except ValueError as error:
        raise errors.InvalidRequest(f"{name} {error}") from error
