"""Search: a question in, memories out, best first."""

from __future__ import annotations

from app.api import answers, docs, schemas
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import search

routes = router(Shape.ERROR, tag="memories")


@routes.post(
    "/v3/memories/search/",
    response_model=answers.SearchResults,
    responses=docs.statuses(502, shape=Shape.ERROR, body=True),
)
async def search_memories(body: schemas.SearchRequest, caller: Caller, rt: RuntimeDep) -> Reply:
    """Find the memories that answer a question, by meaning, by words and by names."""
    hits = await search.run(rt, caller, body.to_query(caller))
    return Reply({"results": answers.projected([answers.hit(found) for found in hits], body.fields)})
