"""How a memory is found: read the query, embed it, ask three arms, rank what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.domain import decay, pins, quota, rank, temporal
from app.domain import question as questions
from app.domain.question import Question
from app.model import Caller, FilterNode, Hit, Memory, Vector
from app.runtime import Runtime
from app.store import lifecycle, scopes
from app.store import memories as memory_store
from app.store import search as arms
from app.store.db import Conn

#: Memories that each arm brings; more lost nothing and gained nothing in recall, only time.
POOL = 100

THRESHOLD = 0.1  #: least score of a hit, unless the caller says otherwise


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and where."""

    text: str  # surrounding space does not matter
    node: FilterNode  # which memories may be found: already scoped and narrowed (domain.filters)
    top_k: int = 20
    threshold: float = THRESHOLD  # least score of a hit, 0..1; 0 keeps all
    reference_at: datetime | None = None  # aware; what "yesterday" counts from; None: now
    decay: bool = False  # memories that are not used fade

    @property
    def now(self) -> datetime:
        """The time that the query is asked at."""
        return self.reference_at or datetime.now(UTC)


async def run(rt: Runtime, caller: Caller, query: Query) -> list[Hit]:
    """Return at most `top_k` hits, best first; equal ones newest first, then by id.

    Deterministic: equal queries over equal memories give equal hits.
    Raises: RateLimited, EmbedderUnavailable, EmbedderRefused, DatabaseUnavailable.
    """
    await quota.spend(rt, caller.project, "searches")
    reference_at = query.reference_at or datetime.now(UTC)
    query = replace(query, node=pins.narrowed(caller, query.node), reference_at=reference_at)
    pool = await gather(rt, caller, query)
    intent = temporal.read(pool.question, now=query.now)
    # Time may lift what stands further down.
    limit = decay.pool(query.top_k) if intent or query.decay else query.top_k
    ranked = rank.order(pool, rank.model(rt.embedder.model), limit=limit)
    kept = [found for found in ranked if found.score >= query.threshold]
    if not kept:
        return []
    ids = [found.candidate.id for found in kept]
    async with rt.db.acquire(caller.project.id) as conn:
        memories = await memory_store.get_many(conn, caller.project.id, ids)
        needed = ids if query.decay or intent.as_of else []
        standings = await lifecycle.standing(conn, caller.project.id, needed) if needed else {}
    # One that was deleted meanwhile is left out.
    hits = [_hit(found, memories[found.candidate.id]) for found in kept if found.candidate.id in memories]
    hits = temporal.order(hits, pool.question, intent, standings)
    if query.decay:
        hits = decay.faded(hits, standings, query.now)
        decay.note(rt, caller.project.id, [hit.memory.id for hit in hits[: query.top_k]])
    return hits[: query.top_k]


async def gather(rt: Runtime, caller: Caller, query: Query) -> rank.Pool:
    """Return the query as it was read and what the arms found for it, in no order. Raises as `run`."""
    project_id = caller.project.id
    question = questions.read(query.text, now=query.now)
    terms = dict.fromkeys([*question.terms, *(term for of_name in question.names.values() for term in of_name)])
    async with rt.db.acquire(project_id) as conn:
        scope_ids = await scopes.matching(conn, project_id, query.node)
        count, frequencies = await arms.frequencies(conn, project_id, scope_ids, terms)
    rarity = {term: rank.idf(count, frequencies.get(term, 0)) for term in question.terms}
    if count == 0:
        return rank.Pool(question, [], rarity)
    # No connection is held meanwhile.
    vector = await rt.embedder.embed_query(questions.for_embedding(question, count, frequencies))
    async with rt.db.acquire(project_id) as conn:
        found = await _candidates(conn, project_id, scope_ids, query, question, vector, model=rt.embedder.model)
    return rank.Pool(question, found, rarity)


async def _candidates(
    conn: Conn,
    project_id: int,
    scope_ids: Sequence[int],
    query: Query,
    question: Question,
    vector: Vector,
    *,
    model: str,
) -> list[rank.Candidate]:
    """Ask the arms and return the union of what they found, each memory with the numbers of all arms."""
    limit = max(POOL, (3 if query.decay else 2) * query.top_k)
    where = (conn, project_id, scope_ids, query.node)
    near = await arms.semantic(*where, vector, model=model, limit=limit)
    linked = {row[0]: row[1:] for row in await arms.by_entity(*where, question.norms, limit=limit)}
    also = dict.fromkeys([*(memory_id for memory_id, _ in near), *linked])
    keyword = dict(await arms.lexical(*where, question.terms, limit=limit, also=list(also)))
    found = await arms.found(conn, project_id, list(also | dict.fromkeys(keyword)), vector, model=model)
    made = []
    for row in found:
        entity, links = linked.get(row.id, (0.0, 0))
        made.append(
            rank.Candidate(
                id=row.id,
                scope_id=row.scope_id,
                text=row.text,
                role=row.role,
                actor=row.actor,
                created_at=row.created_at,
                happened_from=row.happened_from,
                happened_to=row.happened_to,
                follows=row.follows,
                cosine=row.cosine,
                bm25=keyword.get(row.id, 0.0),
                entity=entity,
                links=links,
            )
        )
    return made


def _hit(found: rank.Ranked, memory: Memory) -> Hit:
    return Hit(
        memory=memory,
        score=found.score,
        semantic=found.candidate.cosine or 0.0,
        bm25=found.candidate.bm25,
        entity=found.candidate.entity,
    )
