"""API keys of the key's own project, for whoever administers it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path
from pydantic import BaseModel, Field

from app import errors, model
from app.api import answers, docs, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import access, pins, tenancy
from app.model import OWNER_FIELDS, ApiKey, KeyRole, KeyScope

MAX_OVERLAP_S = 30 * 86_400  #: a key that is rotated because it leaked should not live longer

routes = router(Shape.MESSAGE, tag="keys")

_PINS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "string"}} for name in OWNER_FIELDS},
    "additionalProperties": False,
}


class NewKey(schemas.Body):
    """A key to make."""

    name: str = Field("default", description="What it is for, 1 to 100 characters.")
    role: KeyRole = Field("owner", description="An owner's key may also make, change and delete projects.")
    scopes: list[KeyScope] | None = Field(
        None, description="What it may do; absent: everything, or with pins everything about memories."
    )
    expires_at: read.Instant | None = Field(None, description="When it stops working; absent: never.")
    pins: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Owners that it is confined to: patterns by field, in which `*` stands for any characters.",
        json_schema_extra=_PINS_SCHEMA,
    )

    def grant(self) -> access.Grant:
        """Return what the key may do. Raises: InvalidRequest."""
        return access.Grant(
            role=self.role,
            scopes=None if self.scopes is None else tuple(self.scopes),
            expires_at=self.expires_at,
            pins=pins.read(self.pins),
        )


class Rotation(schemas.Body):
    """How a key is replaced."""

    overlap_s: int = Field(
        int(access.OVERLAP_S), ge=0, le=MAX_OVERLAP_S, description="Seconds that the former key goes on working."
    )
    expires_at: read.Instant | None = Field(
        None, description="When the new key stops working; absent: it gets as long a life as the former one."
    )


class KeyOut(BaseModel):
    """A key, without what it is."""

    id: UUID = Field(description="Identifies the key; it is not the key.")
    name: str = Field(description="What it is for.")
    prefix: str = Field(description="The key's first characters, to recognise it by.")
    role: KeyRole = Field(description="owner or member.")
    scopes: list[KeyScope] = Field(description="What it may do.")
    pins: dict[str, list[str]] = Field(description="Owners that it is confined to; empty: none.")
    created_at: datetime = Field(description="When it was made.")
    expires_at: datetime | None = Field(description="When it stops working; null: never.")
    last_used_at: datetime | None = Field(description="When it was used last, to the minute; null: never.")
    revoked_at: datetime | None = Field(description="When it was revoked; null: it was not.")


class KeyCreated(KeyOut):
    """A new key."""

    key: str | None = Field(description="The key itself. Shown only in this answer; null in the answer to a repeat.")
    detail: str | None = Field(None, description="Only of a repeat: why `key` is null.")


class Keys(BaseModel):
    keys: list[KeyOut] = Field(description="All keys of the project, revoked ones too, oldest first.")


def shown(key: ApiKey) -> dict[str, Any]:
    """Return a key as the routes show it."""
    return {name: getattr(key, name) for name in KeyOut.model_fields}


async def _keeper(caller: Caller) -> model.Caller:
    tenancy.require_owner(caller, "Only an owner's key may see, make and revoke keys.")
    return caller


async def _key_id(key_id: Annotated[str, Path(description="The `id` of the list.")]) -> UUID:
    known = read.uuid(key_id)
    if known is None:
        raise errors.NotFound("There is no such key.")
    return known


Keeper = Annotated[model.Caller, Depends(_keeper)]
KeyId = Annotated[UUID, Depends(_key_id)]


@routes.get("/api/v1/keys/", response_model=Keys, responses=docs.statuses(shape=Shape.MESSAGE))
async def list_keys(caller: Keeper, rt: RuntimeDep) -> Reply:
    """List the keys of the project: what each may do, and when it was used last; never the keys themselves."""
    return Reply({"keys": [shown(key) for key in await access.list_keys(rt, caller.project)]})


@routes.post("/api/v1/keys/", response_model=KeyCreated, responses=docs.statuses(shape=Shape.MESSAGE, body=True))
async def create_key(body: NewKey, caller: Keeper, rt: RuntimeDep) -> Reply:
    """Make a key of the project. The answer is the only place where it is shown."""
    made, secret = await access.create_key(rt, caller.project, name=body.name, grant=body.grant())
    return Reply({**shown(made), "key": secret})


@routes.post(
    "/api/v1/keys/{key_id}/rotate/",
    response_model=KeyCreated,
    responses=docs.statuses(404, 409, shape=Shape.MESSAGE, body=True),
)
async def rotate_key(key_id: KeyId, body: Rotation, caller: Keeper, rt: RuntimeDep) -> Reply:
    """Make a key that may do the same, and let the former one end after a while in which both work."""
    made, secret = await access.rotate_key(
        rt, caller.project, key_id, overlap_s=body.overlap_s, expires_at=body.expires_at
    )
    return Reply({**shown(made), "key": secret})


@routes.delete("/api/v1/keys/{key_id}/", response_model=answers.Done, responses=docs.statuses(404, shape=Shape.MESSAGE))
async def revoke_key(key_id: KeyId, caller: Keeper, rt: RuntimeDep) -> Reply:
    """Make a key useless, in every process within five seconds. Also the caller's own."""
    await access.revoke_key(rt, caller.project, key_id)
    return Reply({"message": "Key revoked."})
