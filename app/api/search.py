"""Search: a question in, memories out, best first."""

from __future__ import annotations

from dataclasses import replace

from app import model
from app.api import answers, docs, explanations, schemas, selection
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import explain, search
from app.runtime import Runtime

routes = router(Shape.ERROR, tag="memories")


@routes.post(
    "/v3/memories/search/",
    response_model=answers.SearchResults,
    responses=docs.statuses(429, 502, shape=Shape.ERROR, body=True),
)
async def search_memories(body: schemas.ExplainedSearch, caller: Caller, rt: RuntimeDep) -> Reply:
    """Find the memories that answer a question, by meaning, by words and by names."""
    query = replace(asked(rt, caller, body), min_confidence=body.min_confidence)
    trail = await search.answer(rt, caller, query)
    results = answers.projected([answers.hit(found) for found in trail.hits], body.fields)
    if not body.explain:
        return Reply({"results": results, "answerable": trail.answerable})
    why = await explain.hits(rt, caller, trail)
    explained = [{**one, "explain": explanations.hit(why[one["id"]])} for one in results]
    shown = explanations.query(explain.query(trail))
    return Reply({"results": explained, "answerable": trail.answerable, "explain": shown})


def asked(rt: Runtime, caller: model.Caller, body: schemas.SearchRequest) -> search.Query:
    """Return the search that a body asks for. Raises: InvalidRequest."""
    return search.Query(
        text=body.query,
        node=selection.tree(rt.settings, caller, body),
        top_k=body.top_k or caller.project.settings.top_k,
        threshold=body.threshold,
        reference_at=body.reference_date,
        decay=caller.project.settings.decay,
    )
