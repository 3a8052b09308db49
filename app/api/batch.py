"""Many memories in one request: all of them, or none."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, PlainValidator, WithJsonSchema

from app.api import answers, docs, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.memories import IdempotencyKey
from app.api.wire import Reply, Shape, router
from app.domain import batch

routes = router(Shape.ERROR, tag="memories")


def _memory_id(value: object) -> UUID:
    known = read.uuid(value) if isinstance(value, str) else None
    if known is None:
        raise ValueError("should be a valid UUID")
    return known


MemoryId = Annotated[
    UUID,
    PlainValidator(_memory_id),
    WithJsonSchema({"type": "string", "format": "uuid"}),
    Field(description="Which memory."),
]


class MemoryChange(schemas.UpdateRequest):
    """What changes of one memory; what is absent stays."""

    memory_id: MemoryId

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse an entry that names a memory and changes nothing of it."""
        super().prepare({name: value for name, value in data.items() if name != "memory_id"})
        return data


class MemoryRef(schemas.Body):
    """One memory."""

    memory_id: MemoryId


class BatchUpdate(schemas.Body):
    """Changes of up to 1,000 memories."""

    cleaned = frozenset({"memories"})

    memories: list[MemoryChange] = Field(
        description="At most 1000, each memory once.", json_schema_extra={"maxItems": batch.LIMIT}
    )

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse more than the limit before each of them is read."""
        return _limited(data, "updated")


class BatchDelete(schemas.Body):
    """Up to 1,000 memories to delete."""

    memories: list[MemoryRef] = Field(
        description="At most 1000. One that is named twice is deleted once.",
        json_schema_extra={"maxItems": batch.LIMIT},
    )

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse more than the limit before each of them is read."""
        return _limited(data, "deleted")


def _limited(data: dict[str, Any], done: str) -> dict[str, Any]:
    memories = data.get("memories")
    if isinstance(memories, list) and len(memories) > batch.LIMIT:
        raise ValueError(f"Maximum of {batch.LIMIT} memories can be {done} in a single request")
    return data


@routes.put(
    "/v1/batch/",
    response_model=answers.Done,
    responses=docs.statuses(404, 409, 422, 502, shape=Shape.ERROR, body=True),
)
async def update_memories(body: BatchUpdate, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey) -> Reply:
    """Change up to 1,000 memories: all of them, or none when one is unknown, immutable or named twice."""
    changes = [(entry.memory_id, entry.update()) for entry in body.memories]
    count = await batch.update(rt, caller, changes, idempotency_key=idempotency_key)
    return Reply({"message": f"Successfully updated {count} memories"})


@routes.delete(
    "/v1/batch/", response_model=answers.Done, responses=docs.statuses(404, 422, shape=Shape.ERROR, body=True)
)
async def delete_memories(body: BatchDelete, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey) -> Reply:
    """Delete up to 1,000 memories: all of them, or none when one is unknown. Their histories stay."""
    ids = [entry.memory_id for entry in body.memories]
    count = await batch.delete(rt, caller, ids, idempotency_key=idempotency_key)
    return Reply({"message": f"Successfully deleted {count} memories"})
