"""Feedback on memories."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema

from app.api import docs, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import feedback

routes = router(Shape.ERROR, tag="memories")

_VALUES = list(feedback.VALUES)  # a field of the request has the module's name


def _value(value: object) -> str:
    if not isinstance(value, str) or value.strip().upper() not in feedback.VALUES:
        raise ValueError(f"must be {', '.join(feedback.VALUES)} or null.")
    return value.strip().upper()


class FeedbackRequest(schemas.Body):
    """Whether a memory is useful."""

    cleaned = frozenset({"feedback_reason"})

    memory_id: Annotated[
        UUID,
        WithJsonSchema({"type": "string", "format": "uuid"}),
        Field(description="Which memory."),
    ]
    feedback: (
        Annotated[
            str,
            PlainValidator(_value),
            WithJsonSchema({"type": "string", "enum": _VALUES}),
        ]
        | None
    ) = Field(None, description="How useful it is. Null, without a reason, takes the feedback back.")
    feedback_reason: read.Words = Field(None, description="Why.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Read the memory's id in the words that clients know."""
        given = data.get("memory_id")
        known = read.uuid(given) if isinstance(given, str) else None
        if known is None:
            raise ValueError("Invalid memory_id")
        return {**data, "memory_id": known}


class FeedbackOut(BaseModel):
    """The feedback that a memory has now."""

    id: UUID = Field(description="Identifies the feedback: the memory's own id, for a memory has one feedback at most.")
    feedback: Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"] | None = Field(description="How useful the memory is.")
    feedback_reason: str | None = Field(description="Why.")


@routes.post("/v1/feedback/", response_model=FeedbackOut, responses=docs.statuses(404, shape=Shape.ERROR, body=True))
async def give_feedback(body: FeedbackRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Say whether a memory is useful. New feedback replaces the old; null for both takes it back."""
    await feedback.give(rt, caller, body.memory_id, body.feedback, body.feedback_reason)
    return Reply({"id": body.memory_id, "feedback": body.feedback, "feedback_reason": body.feedback_reason})
