"""Summaries of memories."""

from __future__ import annotations

from pydantic import BaseModel, Field

from app import errors
from app.api import docs, tenant
from app.api.auth import Caller, RuntimeDep
from app.api.exports import Selected
from app.api.wire import Reply, Shape, router
from app.domain import export, summary

routes = router(Shape.BOTH, tag="exports")


class SummaryRequest(Selected):
    """What to sum up."""


class SummaryOut(BaseModel):
    """What the memories say, in short."""

    summary: str = Field(description="By the language model; without one, the memories that say most, a line each.")
    memories: int = Field(description="How many match.")


@routes.post(
    "/v1/summary/",
    response_model=list[SummaryOut],
    responses=docs.statuses(403, 422, 502, shape=Shape.BOTH, body=True),
)
async def summarize(body: SummaryRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Sum up the memories that match. An array of one entry; an empty one when nothing matches."""
    tenant.check(caller, body.org_id, body.project_id)
    if body.filters is None:
        raise errors.OwnerRequired
    project = caller.project
    node = export.selected(rt, body.filters, null_scoping=project.settings.null_scoping)
    return Reply(await summary.make(rt, project, node))
