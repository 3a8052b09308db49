"""What was or will be delivered to a webhook endpoint, attempt by attempt, and sending it again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field

from app import errors
from app.api import answers, docs, pages
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.webhooks import WebhookId
from app.api.wire import Reply, Shape, router
from app.domain import endpoints
from app.model import Status, WebhookEvent
from app.store import deliveries, webhooks
from app.store.deliveries import Attempt, Delivery

PAGE_SIZE = 50
MAX_PAGE_SIZE = 100

routes = router(Shape.ERROR, tag="webhooks")


class AttemptOut(BaseModel):
    """One try to deliver."""

    started_at: datetime = Field(description="When it began.")
    status_code: int | None = Field(description="HTTP status of the answer; null: there was none.")
    latency_ms: int | None = Field(description="Until the answer was read, in milliseconds.")
    error_code: str | None = Field(description="Why there was no answer, for programs.")
    error: str | None = Field(description="Why there was no answer, for people.")
    response: str | None = Field(description="First kilobyte of the answer.")


class DeliveryOut(BaseModel):
    """One change on its way to the endpoint."""

    message_id: str = Field(description="The header `webhook-id`, the same at every attempt.")
    sequence: int = Field(description="Grows with every delivery of the service.")
    event_type: WebhookEvent = Field(description="What is told.")
    event_id: str | None = Field(description="The request that the change belongs to.")
    memory_id: str | None = Field(description="The memory that changed.")
    event_details: dict[str, Any] = Field(description="As in the body that is sent.")
    status: Status = Field(description="PENDING until an attempt succeeds or the last one fails.")
    attempt_count: int = Field(description="Attempts since the delivery was made or replayed.")
    next_attempt_at: datetime | None = Field(description="When it is tried again; null: it is not.")
    created_at: datetime = Field(description="When the change was made.")
    completed_at: datetime | None = Field(description="When it succeeded or was given up.")
    attempts: list[AttemptOut] = Field(description="Newest first.")


class DeliveryPage(pages.Page):
    """A page of the deliveries of an endpoint."""

    results: list[DeliveryOut] = Field(description="Newest first.")


@routes.get(
    "/api/v1/webhooks/{webhook_id}/deliveries/",
    response_model=DeliveryPage,
    responses=docs.statuses(400, shape=Shape.ERROR) | docs.NOTHING_THERE,
)
async def list_webhook_deliveries(
    request: Request,
    webhook_id: WebhookId,
    caller: Caller,
    rt: RuntimeDep,
    status: Annotated[Status | None, Query(description="Only deliveries in this state.")] = None,
    page: Annotated[int, Query(ge=1, le=1_000_000, description="From 1.")] = 1,
    page_size: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Deliveries on a page.")] = PAGE_SIZE,
) -> Reply:
    """List what was or will be delivered to an endpoint, newest first, with every attempt."""
    place = caller.project.id, webhook_id
    async with rt.db.acquire(caller.project.id) as conn:
        await webhooks.get(conn, *place)
        count, found = await deliveries.list_page(
            conn, *place, status=status, limit=page_size, offset=(page - 1) * page_size
        )
    return Reply(
        pages.envelope(request, rt.settings, page=page, page_size=page_size, count=count, items=found, render=delivery)
    )


@routes.post(
    "/api/v1/webhooks/{webhook_id}/deliveries/{message_id}/replay/",
    response_model=answers.Done,
    responses=docs.statuses(404, 409, shape=Shape.ERROR),
)
async def replay_webhook_delivery(
    webhook_id: WebhookId,
    caller: Caller,
    rt: RuntimeDep,
    message_id: Annotated[str, Path(description="The `message_id` of the delivery.")],
) -> Reply:
    """Send a delivery again, under the same id, with all its attempts."""
    known = read.uuid(message_id)
    if known is None:
        raise errors.NotFound("Delivery not found")
    await endpoints.replay(rt, caller.project, webhook_id, known)
    return Reply({"message": "The delivery is due again"})


def delivery(one: Delivery) -> dict[str, Any]:
    """Return a delivery as its routes show it."""
    return {
        "message_id": one.id,
        "sequence": one.seq,
        "event_type": one.event_type,
        "event_id": one.event_id,
        "memory_id": one.memory_id,
        "event_details": one.details,
        "status": one.status,
        "attempt_count": one.attempts,
        "next_attempt_at": one.next_at if one.status is Status.PENDING else None,
        "created_at": one.created_at,
        "completed_at": one.completed_at,
        "attempts": [{name: getattr(made, name) for name in Attempt.__dataclass_fields__} for made in one.log],
    }
