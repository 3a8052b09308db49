"""Webhook endpoints of the key's own project, what was delivered to them, and their JSON shapes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, Field

from app import errors
from app.api import answers, directory, docs, pages, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import endpoints
from app.model import Endpoint, Project, Status, WebhookEvent
from app.store import deliveries, webhooks
from app.store.deliveries import Attempt, Delivery

PAGE_SIZE = 50
MAX_PAGE_SIZE = 100

routes = router(Shape.FIELDS, tag="webhooks")


class WebhookOut(BaseModel):
    """Where events of a project are delivered to."""

    webhook_id: str = Field(description="Identifies the endpoint.")
    name: str = Field(description="What people call it.")
    url: str = Field(description="Where deliveries are sent.")
    event_types: list[WebhookEvent] = Field(description="What is delivered.")
    owner: str = Field(description="The user who made it.")
    is_active: bool = Field(description="False: nothing is delivered.")
    disabled_reason: str | None = Field(description="Why the service made it inactive; null: it did not.")
    project: str = Field(description="The name of the project.")
    created_at: datetime = Field(description="When it was made.")
    updated_at: datetime = Field(description="When it changed last.")


class WebhookCreated(WebhookOut):
    """A new endpoint."""

    secret: str = Field(description="Signs the deliveries, as Standard Webhooks has it. Shown only in this answer.")


class SecretRotated(BaseModel):
    """A new secret."""

    webhook_id: str = Field(description="Of the endpoint.")
    secret: str = Field(description="Signs the deliveries from now on. Shown only in this answer.")
    former_secret_expires_at: datetime = Field(description="Until then the former secret signs too.")


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


class WebhookRequest(schemas.Body):
    """An endpoint, or what changes of one."""

    name: Any = Field(None, description="What people call it.", json_schema_extra={"type": "string"})
    url: Any = Field(
        None,
        description="Where to send deliveries; http or https, to a public address.",
        json_schema_extra={"type": "string", "format": "uri"},
    )
    event_types: Any = Field(
        None,
        description="What to deliver. Names with a colon, such as memory:add, are taken too.",
        json_schema_extra={"type": "array", "items": {"type": "string", "enum": list(WebhookEvent)}, "minItems": 1},
    )
    is_active: read.Flag | None = Field(None, description="False: deliver nothing.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse a request that says nothing: it is a misspelling."""
        if not set(data) & set(cls.model_fields):
            raise ValueError("Send name, url, event_types or is_active.")
        return data

    def wanted(self) -> endpoints.Wanted:
        """Return what the request says of the endpoint."""
        return endpoints.Wanted(self.name, self.url, self.event_types, self.is_active)


async def _own_project(
    caller: Caller, project_id: Annotated[str, Path(description="Of the project; the ping names the key's own.")]
) -> Project:
    """Deliveries carry memories, and these are for keys of the project alone, an owner's key of another one included."""
    if directory.public_id(project_id) != caller.project.public_id:
        raise errors.NotFound("You don't have access to this project")
    return caller.project


async def _webhook_id(webhook_id: Annotated[str, Path(description="Of the endpoint.")]) -> str:
    return directory.public_id(webhook_id)


OwnProject = Annotated[Project, Depends(_own_project)]
WebhookId = Annotated[str, Depends(_webhook_id)]


@routes.get(
    "/api/v1/webhooks/projects/{project_id}/",
    response_model=list[WebhookOut],
    responses=docs.statuses(404, shape=Shape.FIELDS),
)
async def list_webhooks(project: OwnProject, rt: RuntimeDep) -> Reply:
    """List the endpoints of the project, oldest first."""
    async with rt.db.acquire(project.id) as conn:
        return Reply([webhook(endpoint, project) for endpoint in await webhooks.list_for(conn, project.id)])


@routes.post(
    "/api/v1/webhooks/projects/{project_id}/",
    status_code=201,
    response_model=WebhookCreated,
    responses=docs.statuses(404, shape=Shape.FIELDS, body=True),
)
async def create_webhook(project: OwnProject, body: WebhookRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make an endpoint. The answer has its secret, once."""
    made, secret = await endpoints.create(rt, caller, body.wanted())
    return Reply({**webhook(made, project), "secret": secret}, status_code=201)


@routes.put(
    "/api/v1/webhooks/{webhook_id}/",
    response_model=answers.Done,
    responses=docs.statuses(404, shape=Shape.FIELDS, body=True),
)
async def update_webhook(webhook_id: WebhookId, body: WebhookRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Change an endpoint: what is sent; the rest stays."""
    await endpoints.update(rt, caller, webhook_id, body.wanted())
    return Reply({"message": "Webhook updated successfully"})


@routes.delete(
    "/api/v1/webhooks/{webhook_id}/", response_model=answers.Done, responses=docs.statuses(404, shape=Shape.FIELDS)
)
async def delete_webhook(webhook_id: WebhookId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Delete an endpoint."""
    await endpoints.delete(rt, caller, webhook_id)
    return Reply({"message": "Webhook deleted successfully"})


@routes.post(
    "/api/v1/webhooks/{webhook_id}/secret/rotate/",
    response_model=SecretRotated,
    responses=docs.statuses(404, shape=Shape.FIELDS),
)
async def rotate_webhook_secret(webhook_id: WebhookId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make a new secret. For a day both sign, so that receivers can change without a loss."""
    secret, until = await endpoints.rotate(rt, caller.project, webhook_id)
    return Reply({"webhook_id": webhook_id, "secret": secret, "former_secret_expires_at": until})


@routes.get(
    "/api/v1/webhooks/{webhook_id}/deliveries/",
    response_model=DeliveryPage,
    responses=docs.statuses(400, shape=Shape.FIELDS) | docs.NOTHING_THERE,
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
    responses=docs.statuses(404, 409, shape=Shape.FIELDS),
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


def webhook(endpoint: Endpoint, project: Project) -> dict[str, Any]:
    """Return an endpoint as its routes show it."""
    return {
        "webhook_id": endpoint.id,
        "name": endpoint.name,
        "url": endpoint.url,
        "event_types": endpoint.event_types,
        "owner": endpoint.owner.partition("@")[0],
        "is_active": endpoint.is_active,
        "disabled_reason": endpoint.disabled_reason,
        "project": project.name,
        "created_at": endpoint.created_at,
        "updated_at": endpoint.updated_at,
    }
