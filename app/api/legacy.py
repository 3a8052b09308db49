"""The first two generations of memory routes: the same verbs as the third, in the shapes of their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from fastapi import Query, Request

from app import errors, model
from app.api import answers, docs, pages, schemas, selection, tenant
from app.api import fields as read
from app.api import legacy_shapes as shapes
from app.api.auth import Caller, RuntimeDep
from app.api.legacy_shapes import V1_1
from app.api.memories import MAX_PAGE_SIZE, PAGE_SIZE, IdempotencyKey
from app.api.wire import Reply, Shape, router
from app.domain import add, outcome, search
from app.model import OWNER_FIELDS, Status
from app.runtime import Runtime
from app.store import memories

WAIT_S = 25.0  #: for the outcome of an add with `async_mode: false`; clients give up after 30 seconds

adds = router(Shape.ADD, tag="older routes")
first_lists = router(Shape.LISTED, tag="older routes")
second_lists = router(Shape.ERROR, tag="older routes")
searches = router(Shape.BOTH, tag="older routes")


# Add


@adds.post(
    "/v1/memories/",
    response_model=list[shapes.AddedV1 | shapes.PendingV1] | shapes.AddedObject,
    responses=docs.statuses(403, 409, 422, 429, 502, shape=Shape.ADD, body=True),
    deprecated=True,
)
async def add_memories_v1(body: shapes.AddV1, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey) -> Reply:
    """Store what is worth remembering from these messages.

    The answer is an array of one entry that names the event, or with `infer: false` and with `async_mode: false` of the
    memories that were stored.
    """
    tenant.check(caller, body.org_id, body.project_id)
    request, unread = body.request()
    accepted = await add.accept(rt, caller, request, idempotency_key=idempotency_key)
    shown = answers.accepted(accepted, unread)
    event = accepted.event
    if accepted.results is None and not body.async_mode:
        event = await outcome.wait(rt, caller, event.id, within_s=WAIT_S)
    rows = _rows(event, accepted.message)
    if body.output_format != V1_1:
        return Reply(rows)
    skipped = {"skipped": shown["skipped"]} if accepted.results is not None else {}
    return Reply({"results": rows, "relations": [], **skipped})


def _rows(event: model.Event, message: str) -> list[dict[str, Any]]:
    """Return what an add of the first generation answers: the memories, or where they will be."""
    if event.status is Status.SUCCEEDED:
        nobody: dict[str, Any] = dict.fromkeys(OWNER_FIELDS)
        return [{**nobody, **result, "event_id": event.id} for result in event.results]
    failed = event.status is Status.FAILED and event.error
    return [{"message": failed or message, "status": event.status.value, "event_id": event.id}]


# List


@first_lists.get(
    "/v1/memories/",
    response_model=list[answers.MemoryOut] | answers.MemoryPage | shapes.ListObject,
    responses=docs.statuses(400, 403, shape=Shape.LISTED) | docs.PAST_THE_END,
    dependencies=tenant.IN_QUERY,
    deprecated=True,
)
async def list_memories_v1(
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    user_id: Annotated[str | None, Query(description="Of this user; `*`: of any.")] = None,
    agent_id: Annotated[str | None, Query(description="Of this agent; `*`: of any.")] = None,
    app_id: Annotated[str | None, Query(description="Of this app; `*`: of any.")] = None,
    run_id: Annotated[str | None, Query(description="Of this run; `*`: of any.")] = None,
    filters: Annotated[str | None, Query(description="More filters, a JSON object.")] = None,
    metadata: Annotated[str | None, Query(description="With these metadata, a JSON object.")] = None,
    categories: Annotated[list[str] | None, Query(description="In one of these categories.")] = None,
    keywords: Annotated[str | None, Query(description="That contain this text.")] = None,
    start_date: Annotated[str | None, Query(description="Created on this day or later.")] = None,
    end_date: Annotated[str | None, Query(description="Created on this day or earlier.")] = None,
    show_expired: Annotated[read.Flag, Query(description="Also those that have expired.")] = False,
    fields: Annotated[list[str] | None, Query(description="Only these fields of each.")] = None,
    page: Annotated[Any, Query(description="From 1.", json_schema_extra={"type": "integer"})] = None,
    page_size: Annotated[
        Any, Query(description=f"1 to {MAX_PAGE_SIZE}.", json_schema_extra={"type": "integer"})
    ] = None,
    limit: Annotated[
        Any,
        Query(
            description=f"1 to {MAX_PAGE_SIZE}, default {PAGE_SIZE}; does not count beside page and page_size.",
            json_schema_extra={"type": "integer"},
        ),
    ] = None,
    output_format: Annotated[str | None, Query(description="`v1.1`, with enable_graph: an object.")] = None,
    enable_graph: Annotated[read.Flag, Query(description="With `v1.1`: add an empty list of relations.")] = False,
) -> Reply:
    """List memories, newest first: an array, or with both page and page_size a page."""
    owners = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
    body = schemas.ListRequest.model_construct(
        filters=_filters(owners, filters),
        metadata=None if metadata is None else selection.object_of("metadata", metadata),
        categories=_split(categories),
        keywords=keywords,
        start_date=start_date,
        end_date=end_date,
        show_expired=show_expired,
        fields=_split(fields),
    )
    paged = page is not None and page_size is not None
    size = page_size if page_size is not None else limit
    name = "page_size" if page_size is not None else "limit"
    envelope = await _page(request, rt, caller, body, page=page, page_size=size, name=name, paged=paged)
    if paged:
        return Reply(envelope)
    if output_format == V1_1 and enable_graph:
        return Reply({"results": envelope["results"], "relations": []})
    return Reply(envelope["results"])


def _filters(owners: Mapping[str, str | None], more: str | None) -> dict[str, Any]:
    """Return the filters of a query, in which owners and `filters` both count. Raises: InvalidRequest, OwnerRequired."""
    named: dict[str, Any] = {name: value for name, value in owners.items() if value is not None}
    if more is None and not named:
        raise errors.OwnerRequired
    if more is None:
        return named
    given = selection.object_of("filters", more)
    return {"AND": [named, given]} if named else given


@second_lists.post(
    "/v2/memories/",
    response_model=list[answers.MemoryOut] | answers.MemoryPage,
    responses=docs.statuses(403, shape=Shape.ERROR, body=True) | docs.PAST_THE_END,
    deprecated=True,
)
async def list_memories_v2(
    body: shapes.ListV2,
    request: Request,
    caller: Caller,
    rt: RuntimeDep,
    page: Annotated[Any, Query(description="From 1.", json_schema_extra={"type": "integer"})] = None,
    page_size: Annotated[
        Any,
        Query(
            description=f"1 to {MAX_PAGE_SIZE}, default {PAGE_SIZE}. With page in the query too, the answer is a page.",
            json_schema_extra={"type": "integer"},
        ),
    ] = None,
) -> Reply:
    """List memories, newest first: an array, or with both page and page_size in the query a page."""
    tenant.check(caller, body.org_id, body.project_id)
    paged = page is not None and page_size is not None
    number = page if page is not None else body.page
    size = page_size if page_size is not None else body.page_size
    envelope = await _page(request, rt, caller, body, page=number, page_size=size, name="page_size", paged=paged)
    return Reply(envelope if paged else envelope["results"])


async def _page(
    request: Request,
    rt: Runtime,
    caller: model.Caller,
    body: schemas.ListRequest,
    *,
    page: object,
    page_size: object,
    name: str,
    paged: bool,
) -> dict[str, Any]:
    """Return the envelope of one page. `paged`: False allows a page past the end, which is an empty array."""
    number = read.number("page", page, default=1, most=1_000_000)
    size = read.number(name, page_size, default=PAGE_SIZE, most=MAX_PAGE_SIZE)
    node = selection.tree(rt.settings, caller, body, owner_required=not isinstance(body, shapes.ListV2))
    async with rt.db.acquire(caller.project.id) as conn:
        count, found = await memories.list_page(conn, caller.project.id, node, limit=size, offset=(number - 1) * size)
    if not paged:
        return {"results": answers.projected([answers.memory(item) for item in found], body.fields)}
    envelope = pages.envelope(
        request, rt.settings, page=number, page_size=size, count=count, items=found, render=answers.memory
    )
    return {**envelope, "results": answers.projected(envelope["results"], body.fields)}


def _split(given: Sequence[str] | None) -> list[str] | None:
    """Return the values of a list in the query: repeated, as JSON, or joined by commas; clients do all three."""
    if not given:
        return None
    if len(given) > 1:
        return [value for value in given if value]
    if given[0].startswith("["):
        try:
            values = orjson.loads(given[0])
        except orjson.JSONDecodeError:
            values = None
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return values
    return [value.strip() for value in given[0].split(",") if value.strip()] or None


# Search


@searches.post(
    "/v1/memories/search/",
    response_model=list[answers.HitOut] | shapes.SearchObject,
    responses=docs.statuses(403, 429, 502, shape=Shape.BOTH, body=True),
    deprecated=True,
)
async def search_memories_v1(body: shapes.SearchV1, caller: Caller, rt: RuntimeDep) -> Reply:
    """Find the memories that answer a question: an array, or with `output_format` v1.1 an object."""
    hits = await _search(rt, caller, body)
    return Reply({"results": hits, "relations": []} if body.output_format == V1_1 else hits)


@searches.post(
    "/v2/memories/search/",
    response_model=list[answers.HitOut],
    responses=docs.statuses(403, 429, 502, shape=Shape.BOTH, body=True),
    deprecated=True,
)
async def search_memories_v2(body: shapes.SearchV2, caller: Caller, rt: RuntimeDep) -> Reply:
    """Find the memories that answer a question, best first: an array."""
    return Reply(await _search(rt, caller, body))


async def _search(
    rt: Runtime, caller: model.Caller, body: shapes.SearchV1 | shapes.SearchV2
) -> Sequence[Mapping[str, Any]]:
    tenant.check(caller, body.org_id, body.project_id)
    query = search.Query(
        text=body.query,
        node=selection.tree(rt.settings, caller, body, owner_required=isinstance(body, shapes.SearchV1)),
        top_k=body.top_k or caller.project.settings.default_top_k or shapes.TOP_K,
        threshold=body.threshold,
        reference_at=body.reference_date,
    )
    hits = await search.run(rt, caller, query)
    return answers.projected([answers.hit(found) for found in hits], body.fields)
