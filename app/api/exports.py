"""Exports: memories as one object in the shape of a schema, and memories as they are, a line each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from app import errors
from app.api import docs, schemas, tenant
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.memories import IdempotencyKey
from app.api.wire import Reply, Shape, router
from app.domain import audit, export, filters, json_schema, move
from app.domain.filter_fields import CAMEL
from app.model import OWNER_FIELDS, And

#: Clients know these words, as those of OwnerRequired.
NOTHING_NAMED = "One of the filters: app_id, user_id, agent_id, run_id, memory_export_id is required!"
LINES = "application/x-ndjson"

routes = router(Shape.BOTH, tag="exports")


class Selected(schemas.Body):
    """Filters, inside `filters` or as owner ids beside it, which older clients send."""

    filters: dict[str, Any] | None = Field(
        None,
        description="Which memories: owner ids, metadata, categories, dates, combined by AND, OR, NOT. At least one owner "
        "id must be named; `*` means any. Owner ids at the top level are taken, too.",
    )
    org_id: Any = tenant.field(tenant.ORGANIZATION)
    project_id: Any = tenant.field(tenant.PROJECT)

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Move owner ids at the top level into the filters; both count."""
        given = data.get("filters")
        if given is not None and not isinstance(given, dict):
            raise ValueError("filters must be an object.")
        flat = {name: data[name] for name in (*OWNER_FIELDS, *CAMEL) if name in data}
        both = {"AND": [flat, given]} if flat and given else flat or given
        return {**data, "filters": both or None}


class ExportRequest(Selected):
    """What to export, and in which shape."""

    cleaned = frozenset({"export_instructions"})

    shape: Any = Field(
        None,
        alias="schema",
        description="A JSON Schema (draft 2020-12) of an object, or its text. Its references stay inside it; not supported are "
        "`patternProperties`, `$anchor`, `$dynamicRef`, and look-around in patterns.",
        json_schema_extra={"anyOf": [{"type": "object"}, {"type": "string"}]},
    )
    export_instructions: read.Words = Field(
        None, description="How to fill the schema, in words, for the language model; rules follow none."
    )

    def asked(self) -> export.Request:
        """Return the request, checked as far as it can be without a project. Raises: InvalidRequest."""
        schema = json_schema.read(self.shape)
        if self.filters is None:
            raise errors.OwnerRequired
        return export.Request(schema, self.filters, self.export_instructions)


class ExportAccepted(BaseModel):
    """The export will be made."""

    message: str = Field(description="What happens, for people.")
    id: UUID = Field(description="Of the export, and of its event: `/v1/event/{id}/` tells what becomes of it.")


@routes.post(
    "/v1/exports/",
    status_code=201,
    response_model=ExportAccepted,
    responses=docs.statuses(403, 409, 422, 429, shape=Shape.BOTH, body=True),
)
async def create_export(body: ExportRequest, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey) -> Reply:
    """Ask for an object in the shape of a JSON Schema, filled from memories: by the language model, or by rules without one.

    Rules fill plain fields: texts, numbers, dates, yes or no, choices, lists of them and of plain objects. What no memory
    tells is left out or null, or the empty value of its type where the schema demands one; the event's `metadata.unknown`
    names those. An export that cannot fit the schema is a FAILED event with the reason.
    """
    tenant.check(caller, body.org_id, body.project_id)
    asked = await asyncio.to_thread(body.asked)  # a large schema takes a second to check
    try:
        export.parsed(rt, asked.filters)
    except errors.OwnerRequired as error:  # what clients look for, and then what to do
        raise errors.OwnerRequired(f"{errors.OwnerRequired().message} {error.message}") from error
    event = await export.ask(rt, caller, asked, idempotency_key=idempotency_key)
    message = "Memory export request received. The export will be ready in a few seconds."
    return Reply({"message": message, "id": event.id}, status_code=201)


class FetchRequest(Selected):
    """Which export."""

    memory_export_id: Any = Field(
        None, description="The `id` of the export.", json_schema_extra={"type": "string", "format": "uuid"}
    )


@routes.post(
    "/v1/exports/get/",
    response_model=dict[str, Any],
    responses=docs.statuses(403, 404, shape=Shape.BOTH, body=True),
)
async def get_export(body: FetchRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return the object of an export: by its id, or the newest that was asked for with these filters. Kept for 7 days.

    404 while it is not ready. `created_at` and `updated_at` in the filters may be those of the export.
    """
    tenant.check(caller, body.org_id, body.project_id)
    if body.memory_export_id is not None:
        known = read.uuid(str(body.memory_export_id))
        if known is None:
            raise errors.InvalidRequest("memory_export_id should be a valid UUID")
        return Reply(await export.fetch(rt, caller, known))
    if body.filters is None:
        raise errors.OwnerRequired(NOTHING_NAMED)
    return Reply(await export.fetch_newest(rt, caller, body.filters))


class LinesRequest(Selected):
    """Which memories; without filters all of the project."""

    nullable = frozenset((*OWNER_FIELDS, *CAMEL, "filters"))  # a null there is a mistake, and not all of the project

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse filters that say nothing: whoever wants everything leaves them out."""
        if "filters" in data and not data["filters"]:
            raise ValueError("filters must not be empty; leave them out for all memories of the project.")
        return super().prepare(data)


@routes.post(
    "/v1/exports/raw/",
    response_model=None,
    responses={
        **docs.statuses(403, shape=Shape.BOTH, body=True),
        200: {
            "description": "One memory a line, as JSON, in the order of their ids. A stream that breaks off is incomplete.",
            "content": {LINES: {"schema": {"type": "string"}}},
            "headers": {
                move.COUNT_HEADER: {"description": "Memories at the start.", "schema": {"type": "integer"}},
            },
        },
    },
)
async def export_lines(body: LinesRequest, caller: Caller, rt: RuntimeDep) -> StreamingResponse:
    """Return memories as they are, with everything that `/v1/import/` needs: a line each, equal memories as equal bytes.

    Filters need not name an owner here, and hide nothing that they do not name: expired, superseded and merged memories
    are there, and owners that are not named may be anything.
    """
    tenant.check(caller, body.org_id, body.project_id)
    node = And(())
    if body.filters is not None:
        node = And((filters.parse(
            body.filters, max_depth=rt.settings.max_filter_depth, max_conditions=rt.settings.max_filter_conditions
        ),))  # fmt: skip
    count = await move.count(rt, caller, node)
    async with rt.db.transaction(caller.project.id) as conn:
        await audit.note(conn, "export.raw", project=caller.project)

    async def lines() -> AsyncIterator[bytes]:
        async for memories in move.walk(rt, caller, node):
            yield b"".join(move.line(memory) + b"\n" for memory in memories)

    return StreamingResponse(lines(), media_type=LINES, headers={move.COUNT_HEADER: str(count)})
