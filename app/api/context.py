"""What is known, as one block for a prompt."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, Field

from app.api import docs, schemas, selection
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import context, search

routes = router(Shape.ERROR, tag="memories")


class ContextAnswer(BaseModel):
    """A block of text, and what is in it."""

    context: str = Field(
        description="The block: a heading, then a line for each memory, beginning with `- `. No memory can forge a line. "
        "Sentences that were left out between two are marked by `…`. Empty: nothing is known."
    )
    tokens: int = Field(description="Its tokens, counted with o200k_base; never more than `max_tokens`.")
    max_tokens: int = Field(description="What was asked for.")
    memory_ids: list[UUID] = Field(description="The memories in it, in their order.")
    neighbour_ids: list[UUID] = Field(description="Messages in it that were said beside one of these.")
    folded_ids: list[UUID] = Field(description="Memories that say the same as one in it.")
    left_out_ids: list[UUID] = Field(description="Memories that were found and had no room, best first.")


@routes.post(
    "/v3/memories/context/",
    response_model=ContextAnswer,
    responses=docs.statuses(429, 502, shape=Shape.ERROR, body=True),
)
async def make_context(body: schemas.ContextRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return what is known that matters for a query, as one block for a prompt, within a budget of tokens.

    What people are and like comes first, then what was said, day by day. Counts as a search.
    """
    query = search.Query(
        text=body.query,
        node=selection.tree(rt.settings, caller, body),
        threshold=body.threshold,
        reference_at=body.reference_date,
        decay=caller.project.settings.decay,
    )
    wish = context.Wish(body.max_tokens, body.format, dates=body.include_dates, neighbours=body.neighbours)
    made = await context.of(rt, caller, query, wish)
    return Reply(
        {
            "context": made.text,
            "tokens": made.tokens,
            "max_tokens": body.max_tokens,
            "memory_ids": made.used,
            "neighbour_ids": made.neighbours,
            "folded_ids": made.folded,
            "left_out_ids": made.left_out,
        }
    )
