"""Memories: add, list, read, change, delete."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request

from app import errors
from app.api import answers, direct, docs, pages, schemas, selection
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import add, edit, pins
from app.store import history, memories

PAGE_SIZE = 100
MAX_PAGE_SIZE = 200

adds = router(Shape.ADD, tag="memories")
routes = router(Shape.ERROR, tag="memories")


async def _memory_id(memory_id: Annotated[str, Path(description="A UUID.")]) -> UUID:
    known = read.uuid(memory_id)
    if known is None:
        raise errors.InvalidRequest("memory_id should be a valid UUID")
    return known


async def _idempotency_key(
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=255,
            description="Makes the request safe to repeat: the same key and body give the same answer for at least 24 hours.",
        ),
    ] = None,
) -> str | None:
    return idempotency_key.strip() or None if idempotency_key else None


direct.absent(_idempotency_key, "Idempotency-Key")

MemoryId = Annotated[UUID, Depends(_memory_id)]
IdempotencyKey = Annotated[str | None, Depends(_idempotency_key)]


@adds.post(
    "/v3/memories/add/",
    response_model=answers.AddAccepted,
    responses=docs.statuses(409, 422, 429, 502, shape=Shape.ADD, body=True),
)
async def add_memories(
    body: schemas.AddRequest, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey
) -> Reply:
    """Store what is worth remembering from these messages. Answers at once; poll the event for the outcome.

    With `infer: false` the messages are stored as they are, and the answer says what was stored.
    """
    request, skipped = body.request()
    accepted = await add.accept(rt, caller, request, idempotency_key=idempotency_key)
    return Reply(answers.accepted(accepted, skipped))


@routes.post(
    "/v3/memories/",
    response_model=answers.MemoryPage,
    responses=docs.statuses(shape=Shape.ERROR, body=True) | docs.PAST_THE_END,
)
async def list_memories(
    body: schemas.ListRequest,
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    page: Annotated[Any, Query(description="From 1; default 1.", json_schema_extra={"type": "integer"})] = None,
    page_size: Annotated[
        Any,
        Query(
            description=f"Memories on a page, 1 to {MAX_PAGE_SIZE}; default {PAGE_SIZE}.",
            json_schema_extra={"type": "integer"},
        ),
    ] = None,
) -> Reply:
    """List memories, newest first."""
    number = read.number("page", page, body.page, default=1, most=1_000_000)
    size = read.number("page_size", page_size, body.page_size, default=PAGE_SIZE, most=MAX_PAGE_SIZE)
    node = selection.tree(rt.settings, caller, body)
    async with rt.db.acquire(caller.project.id) as conn:
        count, found = await memories.list_page(conn, caller.project.id, node, limit=size, offset=(number - 1) * size)
    envelope = pages.envelope(
        request, rt.settings, page=number, page_size=size, count=count, items=found, render=answers.memory
    )
    return Reply({**envelope, "results": answers.projected(envelope["results"], body.fields)})


@routes.delete(
    "/v1/memories/", response_model=answers.DeleteAccepted, responses=docs.statuses(400, 409, 422, shape=Shape.ERROR)
)
async def delete_all_memories(
    request: Request, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey
) -> Reply:
    """Delete every memory that matches all the parameters, and cancel adds that were accepted before.

    At least one parameter is needed; all four ids as `*` empty the project.
    """
    node, asked = selection.of_delete_all(rt.settings, request.query_params.multi_items())
    event = await edit.delete_all(rt, caller, node, asked, idempotency_key=idempotency_key)
    return Reply({"message": "Delete in progress. This may take some time.", "event_id": event.id})


@routes.get(
    "/v1/memories/{memory_id}/", response_model=answers.MemoryOut, responses=docs.statuses(400, 404, shape=Shape.ERROR)
)
async def get_memory(memory_id: MemoryId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return one memory; also one that has expired or was superseded."""
    async with rt.db.acquire(caller.project.id) as conn:
        memory = await memories.get(conn, caller.project.id, memory_id)
    pins.hide(caller, memory)
    return Reply(answers.memory(memory))


@routes.put(
    "/v1/memories/{memory_id}/",
    response_model=answers.MemoryOut,
    responses=docs.statuses(404, 409, 422, 502, shape=Shape.ERROR, body=True),
)
async def update_memory(
    memory_id: MemoryId,
    body: schemas.UpdateRequest,
    caller: Caller,
    rt: RuntimeDep,
    idempotency_key: IdempotencyKey,
) -> Reply:
    """Change a memory: what is sent replaces what is there, the rest stays."""
    changed = await edit.update(rt, caller, memory_id, body.update(), idempotency_key=idempotency_key)
    return Reply(answers.memory(changed))


@routes.delete(
    "/v1/memories/{memory_id}/",
    response_model=answers.Deleted,
    response_model_exclude_none=True,
    responses=docs.statuses(400, 404, 409, 422, shape=Shape.ERROR),
)
async def delete_memory(
    memory_id: MemoryId,
    caller: Caller,
    rt: RuntimeDep,
    idempotency_key: IdempotencyKey,
    delete_linked: Annotated[
        read.Flag, Query(description="Also the older memories that it superseded, and those that they superseded.")
    ] = False,
) -> Reply:
    """Delete one memory. Its history stays."""
    linked = await edit.delete(rt, caller, memory_id, linked=delete_linked, idempotency_key=idempotency_key)
    answer: dict[str, Any] = {"message": "Memory deleted successfully!"}
    return Reply({**answer, "cascade_count": linked} if delete_linked else answer)


@routes.get(
    "/v1/memories/{memory_id}/history/",
    response_model=list[answers.ChangeOut],
    responses=docs.statuses(400, 404, shape=Shape.ERROR),
)
async def get_history(memory_id: MemoryId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return every change of a memory, oldest first; also after its deletion."""
    async with rt.db.acquire(caller.project.id) as conn:
        changes = await history.list_for(conn, caller.project.id, memory_id)
    if not changes or not all(pins.allows(caller.pins, item.owners) for item in changes):
        raise errors.MemoryNotFound
    return Reply([answers.change(item) for item in changes])
