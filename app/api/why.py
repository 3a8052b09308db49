"""Why a search does not bring a memory."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app import model
from app.api import docs, explanations, schemas, selection
from app.api import fields as read
from app.api import search as searches
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import explain, filters, why, why_filters
from app.model import And
from app.runtime import Runtime

routes = router(Shape.ERROR, tag="memories")


class WhyRequest(schemas.SearchRequest):
    """A search, and the memory that it should have brought."""

    memory_id: UUID = Field(description="The memory that is asked about.")
    min_confidence: read.Confidence = read.MIN_CONFIDENCE


class FailedCondition(BaseModel):
    """A condition of the request that the memory does not meet."""

    parameter: str = Field(description="The field of the request that it stands in.")
    field: str = Field(description="What it asks about; `OR` and `NOT` are told as a whole.")
    asked: Any = Field(description="What it asks for; null: an owner that the filters do not name must be absent.")
    has: Any = Field(description="What the memory has there; null: nothing, or no plain value.")


class WhyAnswer(BaseModel):
    """At which stage a search drops a memory, and what would bring it back."""

    memory_id: UUID = Field(description="The memory.")
    found: bool = Field(description="Whether the search, as it was asked, brings it.")
    stage: Literal["filters", "expired", "replaced", "candidates", "min_confidence", "threshold", "top_k", "found"] = (
        Field(description="Where it is dropped. `candidates`: no way of finding brings it among its best.")
    )
    reason: str = Field(description="The same in a sentence.")
    failed: list[FailedCondition] = Field(description="With stage `filters`: what keeps it out.")
    rank: int | None = Field(description="Its place, 1 first; null: it was not ranked.")
    score: float | None = Field(description="Its score, 0 to 1; null: it has none.")
    arms: explanations.ArmsOut | None = Field(
        description="What each way of finding says of it. With stage `candidates` the ranks count everything, as far as "
        f"{why.DEEP} places."
    )
    changes: dict[str, Any] | None = Field(
        description="Fields of the request to change, all together, after which the search brings it; this was tried. "
        "Null means absent. Empty: none needed. Null instead of an object: no change was found."
    )
    advice: list[str] = Field(description="The changes in words, with limits.")
    explain: explanations.SearchExplanation | None = Field(
        description="How the query was read; null: the conditions kept the memory out before."
    )


@routes.post(
    "/v3/memories/search/why/",
    response_model=WhyAnswer,
    responses=docs.statuses(404, 429, 502, shape=Shape.ERROR, body=True),
)
async def explain_search(body: WhyRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Say at which stage a search drops a memory, and what would bring it back. Counts as a search."""
    found = await why.of(rt, caller, body.memory_id, lambda changes: _asked(rt, caller, body, changes))
    first = found.first
    return Reply(
        {
            "memory_id": found.memory.id,
            "found": first.stage == "found",
            "stage": first.stage,
            "reason": first.reason,
            "failed": [
                {
                    "parameter": part.name,
                    "field": part.field,
                    "asked": part.asked,
                    "has": why_filters.has(found.memory, part.field),
                }
                for part in first.failed
            ],
            "rank": first.rank,
            "score": first.score,
            "arms": None if first.arms is None else {arm: asdict(hit) for arm, hit in first.arms.items()},
            "changes": found.changes,
            "advice": found.advice,
            "explain": explanations.query(explain.query(first.trail)) if first.trail else None,
        }
    )


def _asked(rt: Runtime, caller: model.Caller, body: WhyRequest, changes: why.Changes) -> why.Asked:
    changed = body.model_copy(update=changes)
    today = selection.today()
    beside = [
        (name, value, _alone(today, show_expired=True, include_merged=True, **{name: value}))
        for name in ("categories", "metadata", "keywords")
        if (value := getattr(changed, name)) not in (None, {}, "")
    ]
    states = {"latest_only": changed.latest_only, "include_merged": changed.include_merged}
    return why.Asked(
        query=replace(searches.asked(rt, caller, changed), min_confidence=changed.min_confidence),
        filters=changed.filters,
        beside=beside,
        expiry=_alone(today, show_expired=changed.show_expired, include_merged=True),
        states=_alone(today, show_expired=True, **states),
        latest_only=changed.latest_only,
    )


def _alone(today: date, **narrowing: Any) -> model.FilterNode:
    return filters.narrow(And(()), today=today, **narrowing)
