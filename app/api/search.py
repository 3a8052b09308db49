"""Search: a question in, memories out, best first."""

from __future__ import annotations

from app.api import answers, docs, schemas, selection
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import search

routes = router(Shape.ERROR, tag="memories")


@routes.post(
    "/v3/memories/search/",
    response_model=answers.SearchResults,
    responses=docs.statuses(429, 502, shape=Shape.ERROR, body=True),
)
async def search_memories(body: schemas.SearchRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Find the memories that answer a question, by meaning, by words and by names."""
    query = search.Query(
        text=body.query,
        node=selection.tree(rt.settings, caller, body),
        top_k=body.top_k or caller.project.settings.top_k,
        threshold=body.threshold,
        reference_at=body.reference_date,
        decay=caller.project.settings.decay,
    )
    hits = await search.run(rt, caller, query)
    return Reply({"results": answers.projected([answers.hit(found) for found in hits], body.fields)})
