"""How a memory is found: read the query, embed it, ask three arms, rank what they found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from uuid import UUID

from app.domain import answerable, decay, pins, quota, rank, temporal
from app.domain import question as questions
from app.domain.question import Question
from app.model import Caller, FilterNode, Hit, Memory, Vector
from app.runtime import Runtime
from app.store import keyword, lifecycle, near, scopes
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
    min_confidence: float = 0.0  # least chance, 0..1, that there is an answer at all; below it nothing is a hit

    @property
    def now(self) -> datetime:
        """The time that the query is asked at."""
        return self.reference_at or datetime.now(UTC)

    @property
    def arm_limit(self) -> int:
        """Memories that each arm brings."""
        return max(POOL, (3 if self.decay else 2) * self.top_k)


@dataclass(slots=True)
class Trail:
    """What a search saw on its way, stage by stage."""

    query: Query  # as it was asked: within the pins of the key, at a known time
    question: Question
    scope_ids: Sequence[int] = ()
    count: int = 0  # memories of these scopes, whatever the rest of the filter says
    frequencies: Mapping[str, int] = field(default_factory=dict)  # in how many of those a term is
    embedded: str = ""  # what of the query was embedded; empty: nothing was, the scopes are empty
    semantic: Sequence[tuple[UUID, float]] = ()  # what each arm brought, best first
    keyword: Sequence[
        tuple[UUID, float]
    ] = ()  # also the words of what the other arms brought, behind the first `arm_limit`
    entity: Sequence[tuple[UUID, float, int]] = ()
    rarity: dict[str, float] = field(default_factory=dict)
    candidates: Sequence[rank.Candidate] = ()  # the union of the arms, by id
    answerable: float = 0.0  # chance, 0..1, that the candidates hold an answer
    limit: int = 0  # how many of the candidates are looked at further
    ranked: Sequence[rank.Ranked] = ()  # those, best first
    kept: int = 0  # how many of those reach the threshold
    ordered: Sequence[Hit] = ()  # those, once time has had its say
    took_ms: dict[str, float] = field(default_factory=dict)  # by stage

    @property
    def pool(self) -> rank.Pool:
        """What all arms have found."""
        return rank.Pool(self.question, self.candidates, self.rarity)

    @property
    def hits(self) -> list[Hit]:
        """The answer: at most `top_k`, best first."""
        return list(self.ordered[: self.query.top_k])

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to a stage."""
        started = perf_counter()
        try:
            yield
        finally:
            self.took_ms[stage] = self.took_ms.get(stage, 0.0) + 1000 * (perf_counter() - started)


async def run(rt: Runtime, caller: Caller, query: Query) -> list[Hit]:
    """Return at most `top_k` hits, best first; equal ones newest first, then by id.

    Deterministic: equal queries over equal memories give equal hits.
    Raises: RateLimited, EmbedderUnavailable, EmbedderRefused, DatabaseUnavailable.
    """
    return (await answer(rt, caller, query)).hits


async def answer(rt: Runtime, caller: Caller, query: Query) -> Trail:
    """Count a search and carry it out; its hits are noted as used. As `run`, with everything that led to the hits."""
    await quota.spend(rt, caller.project, "searches")
    trail = await follow(rt, caller, query)
    if query.decay:
        decay.note(rt, caller.project.id, [hit.memory.id for hit in trail.hits])
    return trail


async def follow(rt: Runtime, caller: Caller, query: Query) -> Trail:
    """Carry out a search that counts nowhere and changes nothing."""
    trail = await _gathered(rt, caller, query)
    query = trail.query
    with trail.timed("rank"):
        intent = temporal.read(trail.question, now=query.now)
        # Time may lift what stands further down.
        trail.limit = decay.pool(query.top_k) if intent or query.decay else query.top_k
        model = rank.model(rt.embedder.model)
        trail.ranked = rank.order(trail.pool, model, limit=trail.limit)
        trail.answerable = answerable.estimate(trail.pool, model)
        sure = trail.answerable >= query.min_confidence
        kept = [found for found in trail.ranked if sure and found.score >= query.threshold]
        trail.kept = len(kept)
    if not kept:
        return trail
    ids = [found.candidate.id for found in kept]
    with trail.timed("read"):
        async with rt.db.acquire(caller.project.id) as conn:
            memories = await memory_store.get_many(conn, caller.project.id, ids)
            needed = ids if query.decay or intent.as_of else []
            standings = await lifecycle.standing(conn, caller.project.id, needed) if needed else {}
    with trail.timed("order"):
        # One that was deleted meanwhile is left out.
        hits = [_hit(found, memories[found.candidate.id]) for found in kept if found.candidate.id in memories]
        hits = temporal.order(hits, trail.question, intent, standings)
        trail.ordered = decay.faded(hits, standings, query.now) if query.decay else hits
    return trail


async def gather(rt: Runtime, caller: Caller, query: Query) -> rank.Pool:
    """Return the query as it was read and what the arms found for it, by id. Raises as `run`."""
    return (await _gathered(rt, caller, query)).pool


async def _gathered(rt: Runtime, caller: Caller, query: Query) -> Trail:
    project_id = caller.project.id
    query = replace(query, node=pins.narrowed(caller, query.node), reference_at=query.now)
    trail = Trail(query, questions.read(query.text, now=query.now))
    question = trail.question
    terms = dict.fromkeys([*question.terms, *(term for of_name in question.names.values() for term in of_name)])
    with trail.timed("scopes"):
        async with rt.db.acquire(project_id) as conn:
            trail.scope_ids = await scopes.matching(conn, project_id, query.node)
            trail.count, trail.frequencies = await arms.frequencies(conn, project_id, trail.scope_ids, terms)
    trail.rarity = {term: rank.idf(trail.count, trail.frequencies.get(term, 0)) for term in question.terms}
    if trail.count == 0:
        return trail
    trail.embedded = questions.for_embedding(question, trail.count, trail.frequencies)
    with trail.timed("embed"):  # no connection is held meanwhile
        vector = await rt.embedder.embed_query(trail.embedded)
    async with rt.db.acquire(project_id) as conn:
        await _ask(conn, project_id, trail, vector, model=rt.embedder.model)
    return trail


async def _ask(conn: Conn, project_id: int, trail: Trail, vector: Vector, *, model: str) -> None:
    """Ask the arms, and put the union of what they found into the trail, each memory with the numbers of all arms."""
    question, limit = trail.question, trail.query.arm_limit
    where = (conn, project_id, trail.scope_ids, trail.query.node)
    with trail.timed("semantic"):
        trail.semantic = await near.semantic(*where, vector, model=model, limit=limit, count=trail.count)
    with trail.timed("entity"):
        trail.entity = await arms.by_entity(*where, question.norms, limit=limit)
    linked = {row[0]: row[1:] for row in trail.entity}
    also = dict.fromkeys([*(memory_id for memory_id, _ in trail.semantic), *linked])
    with trail.timed("keyword"):
        trail.keyword = await keyword.lexical(
            *where, question.terms, limit=limit, also=list(also), count=trail.count, frequencies=trail.frequencies
        )
    words = dict(trail.keyword)
    with trail.timed("candidates"):
        found = await arms.found(conn, project_id, list(also | dict.fromkeys(words)), vector, model=model)
    trail.candidates = [
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
            typical=row.typical,
            bm25=words.get(row.id, 0.0),
            entity=linked[row.id][0] if row.id in linked else 0.0,
            links=linked[row.id][1] if row.id in linked else 0,
        )
        for row in sorted(found, key=lambda row: row.id)
    ]


def _hit(found: rank.Ranked, memory: Memory) -> Hit:
    return Hit(
        memory=memory,
        score=found.score,
        semantic=found.candidate.cosine or 0.0,
        bm25=found.candidate.bm25,
        entity=found.candidate.entity,
    )
