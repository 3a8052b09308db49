"""Webhook endpoints of the key's own project, and their JSON shapes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Path
from pydantic import BaseModel, Field

from app import errors
from app.api import answers, directory, docs, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import endpoints
from app.model import Endpoint, Project, WebhookEvent
from app.store import webhooks

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

    secret: str | None = Field(
        description="Signs the deliveries, as Standard Webhooks has it. Shown only in this answer; null in that to a repeat."
    )
    detail: str | None = Field(None, description="Only of a repeat: why `secret` is null.")


class SecretRotated(BaseModel):
    """A new secret."""

    webhook_id: str = Field(description="Of the endpoint.")
    secret: str | None = Field(
        description="Signs the deliveries from now on. Shown only in this answer; null in that to a repeat."
    )
    former_secret_expires_at: datetime = Field(description="Until then the former secret signs too.")
    detail: str | None = Field(None, description="Only of a repeat: why `secret` is null.")


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
