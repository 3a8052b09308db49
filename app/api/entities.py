"""Owners, which the wire calls entities: users, agents, apps and runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.convertors import StringConvertor, register_url_convertor

from app import errors
from app.api import answers, docs, pages, receipts, selection, tenant
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.memories import IdempotencyKey
from app.api.wire import Reply, Shape, router
from app.domain import erase, filters, owners, pins
from app.model import DEFAULT_CATEGORIES, Condition, Memory, Operator, Owner, OwnerKind
from app.store import history, memories
from app.store import owners as owner_rows

PAGE_SIZE = 1000  #: clients that delete every entity read the first page only, and take it for all
MEMORIES_PAGE = 100  #: as on the hosted platform
KINDS: tuple[OwnerKind, ...] = get_args(OwnerKind)
EVENT_TYPES = ("ADD", "UPDATE", "DELETE", "SEARCH", "GET_ALL", "GET", "DELETE_ALL", "DELETE_USER")


class _Kind(StringConvertor):
    """A path segment that is a kind of owner; a route with it may stand before those of memories."""

    regex = "|".join(KINDS)


register_url_convertor("owner_kind", _Kind())

first = router(Shape.ERROR, tag="entities")  #: paths that those of memories would swallow
routes = router(Shape.ERROR, tag="entities")
by_name = router(Shape.BOTH, tag="entities")


# Out


class EntityOut(BaseModel):
    """A user, agent, app or run that memories belong to."""

    id: str = Field(description="A number, as text.")
    name: str = Field(description="The id that requests use.")
    type: OwnerKind = Field(description="What it is.")
    total_memories: int = Field(description="Memories that belong to it, alone or together with others.")
    owner: str = Field(description="Whose key it is: the part of the address before the @.")
    metadata: dict[str, Any] | None = Field(description="As given when it was made by hand.")
    created_at: datetime = Field(description="When it was first named.")
    updated_at: datetime = Field(description="When it was changed last.")


class EntityPage(pages.Page):
    results: list[EntityOut] = Field(description="The entities, newest first.")
    total_users: int = Field(description="Users in the project.")
    total_agents: int = Field(description="Agents in the project.")
    total_apps: int = Field(description="Apps in the project.")
    total_runs: int = Field(description="Runs in the project.")


class Choice(BaseModel):
    value: str = Field(description="What a request sends.")
    label: str = Field(description="What people read.")


class Parameter(BaseModel):
    name: str = Field(description="Of the parameter.")
    label: str = Field(description="What people read.")
    type: Literal["text", "select"] = Field(description="How it is entered.")
    placeholder: str = Field(description="An example.")
    options: list[Choice] = Field(description="What can be chosen; empty for a text.")


class EntityFilters(BaseModel):
    """What events and memories can be filtered by."""

    event_type: list[str] = Field(description="Kinds of events.")
    categories: list[str] = Field(description="The project's categories.")
    users: list[str] = Field(description="The first 1000 users, in order.")
    parameters: list[Parameter] = Field(description="How to ask for them.")


class EntityMemory(answers.MemoryOut):
    """A memory, and what it was made from."""

    input: list[answers.MessageOut] = Field(description="The messages that it was made from.")
    is_updated: bool = Field(description="Whether it was changed since.")


class EntityMemoryPage(pages.Page):
    results: list[EntityMemory] = Field(description="The memories, newest first.")


class ChangePage(pages.Page):
    results: list[answers.ChangeOut] = Field(description="The changes, newest first.")


def entity(item: Owner, caller: Caller) -> dict[str, Any]:
    """Return an owner as every read route shows it."""
    return {
        "id": str(item.id),
        "name": item.name,
        "type": item.kind,
        "total_memories": item.memory_count,
        "owner": caller.email.partition("@")[0],
        "metadata": item.metadata,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


# Path parameters


def kind_of(raw: str) -> OwnerKind:
    """Return the kind of owner that a path segment names. Raises: InvalidRequest."""
    for kind in KINDS:
        if raw == kind:
            return kind
    raise errors.InvalidRequest("Invalid entity type")


async def _kind(entity_type: Annotated[str, Path(description="user, agent, app or run.")]) -> OwnerKind:
    return kind_of(entity_type)


async def _name(
    entity_id: Annotated[str, Path(description="The id that requests use, percent-encoded or with plain slashes.")],
) -> str:
    try:
        name = read.owner(read.segment(entity_id))
    except ValueError as error:
        raise errors.InvalidRequest(f"The entity id {error}") from error
    assert name is not None
    return name


Kind = Annotated[OwnerKind, Depends(_kind)]
Name = Annotated[str, Depends(_name)]
PageNumber = Annotated[Any, Query(description="From 1; default 1.", json_schema_extra={"type": "integer"})]


# What a memory's own paths would swallow


@first.get(
    "/v1/memories/events/",
    response_model=ChangePage,
    responses=docs.statuses(400, 403, shape=Shape.ERROR) | docs.PAST_THE_END,
    dependencies=tenant.IN_QUERY,
)
async def list_changes(
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    page: PageNumber = None,
    limit: Annotated[
        Any, Query(description="Changes on a page, 1 to 200; default 100.", json_schema_extra={"type": "integer"})
    ] = None,
) -> Reply:
    """List what happened to all memories of the project, newest first. The events of requests are at `/v1/events/`."""
    number = read.number("page", page, default=1, most=1_000_000)
    size = read.number("limit", limit, request.query_params.get("page_size"), default=MEMORIES_PAGE, most=200)
    async with rt.db.acquire(caller.project.id) as conn:
        count, found = await history.list_page(conn, caller.project.id, limit=size, offset=(number - 1) * size)
    return Reply(
        pages.envelope(
            request, rt.settings, page=number, page_size=size, count=count, items=found, render=answers.change
        )
    )


@first.get(
    "/v1/memories/{entity_type:owner_kind}/{entity_id:path}/", include_in_schema=False, dependencies=tenant.IN_QUERY
)
@routes.get(
    "/v1/memories/{entity_type}/{entity_id:path}/",
    response_model=EntityMemoryPage,
    responses=docs.statuses(400, 403, shape=Shape.ERROR) | docs.PAST_THE_END,
    dependencies=tenant.IN_QUERY,
)
async def list_memories_of_entity(
    request: Request, kind: Kind, name: Name, caller: Caller, rt: RuntimeDep, page: PageNumber = None
) -> Reply:
    """List the memories that name a user, agent, app or run, whatever else they belong to; newest first, 100 a page."""
    number = read.number("page", page, default=1, most=1_000_000)
    node = pins.narrowed(caller, filters.narrow(Condition(f"{kind}_id", Operator.EQ, name), today=selection.today()))
    async with rt.db.acquire(caller.project.id) as conn:
        count, found = await memories.list_page(
            conn, caller.project.id, node, limit=MEMORIES_PAGE, offset=(number - 1) * MEMORIES_PAGE
        )
        origins = await history.origins(conn, caller.project.id, [memory.id for memory in found])

    def render(memory: Memory) -> dict[str, Any]:
        said, updated = origins.get(memory.id, ([], False))
        return {**answers.memory(memory), "input": said, "is_updated": updated}

    return Reply(
        pages.envelope(
            request, rt.settings, page=number, page_size=MEMORIES_PAGE, count=count, items=found, render=render
        )
    )


# Entities


@routes.get(
    "/v1/entities/",
    response_model=EntityPage,
    responses=docs.statuses(400, 403, shape=Shape.ERROR) | docs.PAST_THE_END,
    dependencies=tenant.IN_QUERY,
)
async def list_entities(
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    page: PageNumber = None,
    page_size: Annotated[
        Any,
        Query(
            description=f"Entities on a page, 1 to {PAGE_SIZE}; default {PAGE_SIZE}.",
            json_schema_extra={"type": "integer"},
        ),
    ] = None,
) -> Reply:
    """List users, agents, apps and runs, newest first. They appear with the first add that names them."""
    number = read.number("page", page, default=1, most=1_000_000)
    size = read.number("page_size", page_size, default=PAGE_SIZE, most=PAGE_SIZE)
    async with rt.db.acquire(caller.project.id) as conn:
        counts = await owner_rows.counts(conn, caller.project.id)
        found = await owner_rows.list_page(conn, caller.project.id, limit=size, offset=(number - 1) * size)
    envelope = pages.envelope(
        request,
        rt.settings,
        page=number,
        page_size=size,
        count=sum(counts.values()),
        items=found,
        render=lambda item: entity(item, caller),
    )
    return Reply({**envelope, **{f"total_{kind}s": counts.get(kind, 0) for kind in KINDS}})


@routes.get(
    "/v1/entities/filters/",
    response_model=EntityFilters,
    responses=docs.statuses(403, shape=Shape.ERROR),
    dependencies=tenant.IN_QUERY,
)
async def list_entity_filters(caller: Caller, rt: RuntimeDep) -> Reply:
    """Say what events and memories of the project can be filtered by."""
    async with rt.db.acquire(caller.project.id) as conn:
        users = await owner_rows.names(conn, caller.project.id, "user", limit=PAGE_SIZE)
    kinds = [{"value": kind, "label": kind.replace("_", " ").capitalize()} for kind in EVENT_TYPES]
    parameters: list[dict[str, Any]] = [
        {
            "name": f"{kind}_id",
            "label": f"{kind.capitalize()} ID",
            "type": "text",
            "placeholder": example,
            "options": [],
        }
        for kind, example in zip(KINDS, ("alice", "support-bot", "shop", "session-1"), strict=True)
    ]
    parameters.append(
        {"name": "event_type", "label": "Event type", "type": "select", "placeholder": "ADD", "options": kinds}
    )
    return Reply({
        "event_type": EVENT_TYPES,
        "categories": _categories(caller),
        "users": users,
        "parameters": parameters,
    })  # fmt: skip


def _categories(caller: Caller) -> list[str]:
    own = caller.project.settings.custom_categories
    if not own:
        return list(DEFAULT_CATEGORIES)
    return [name for item in own for name in (item if isinstance(item, dict) else [str(item)])]


@by_name.get(
    "/v2/entities/{entity_type}/{entity_id:path}/",
    response_model=list[EntityOut],
    responses=docs.statuses(400, 403, 404, shape=Shape.BOTH),
    dependencies=tenant.IN_QUERY,
)
async def get_entity(kind: Kind, name: Name, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return one user, agent, app or run, in a list."""
    return Reply([entity(await owners.find(rt, caller, kind, name), caller)])


@by_name.delete(
    "/v2/entities/{entity_type}/{entity_id:path}/",
    response_model=receipts.OwnerErased,
    responses=docs.statuses(400, 403, 404, 409, 422, shape=Shape.BOTH),
    dependencies=tenant.IN_QUERY,
)
async def delete_entity(
    kind: Kind, name: Name, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey
) -> Reply:
    """Erase a user, agent, app or run: every memory that names it, and every other trace. Adds that were accepted before
    are cancelled. The receipt says what went, and that a second look found nothing.
    """
    return _erased(await erase.owner(rt, caller, kind, name, idempotency_key=idempotency_key))


@routes.delete(
    "/v1/entities/{entity_type}/{entity_number}/",
    response_model=receipts.OwnerErased,
    responses=docs.statuses(400, 403, 404, 409, 422, shape=Shape.ERROR),
    deprecated=True,
    dependencies=tenant.IN_QUERY,
)
async def delete_entity_by_number(
    kind: Kind,
    entity_number: Annotated[
        str, Path(description="The `id` of the list.", json_schema_extra={"type": "string", "pattern": "^[0-9]+$"})
    ],
    caller: Caller,
    rt: RuntimeDep,
    idempotency_key: IdempotencyKey,
) -> Reply:
    """Erase a user, agent, app or run by its number; as by its name."""
    text = read.segment(entity_number)
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise errors.InvalidRequest("Invalid entity ID. Must be an integer.")
    return _erased(await erase.numbered(rt, caller, kind, int(text), idempotency_key=idempotency_key))


def _erased(done: erase.Erased) -> Reply:
    return Reply({
        "message": "Delete in progress. This may take some time.",
        "event_id": done.event.id,
        "receipt": done.receipt,
    })  # fmt: skip
