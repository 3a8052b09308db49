"""Why a search found what it found: the trail of a search in words and numbers, for people who ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.domain import lexemes, pins, rank
from app.domain import question as questions
from app.domain.search import Trail
from app.model import Caller
from app.runtime import Runtime
from app.store import explain as explain_store
from app.store import sources as source_store
from app.store.sources import SourceSpan

SHOWN_CHARS = 200  #: of each source of a hit


@dataclass(frozen=True, slots=True)
class ArmHit:
    """What one arm says of a memory."""

    score: float | None  # raw; None: it has none, such as the cosine of a memory without a vector
    rank: int | None  # among what the arm brought, 1 first; None: others were better, or the arm did not find it


@dataclass(frozen=True, slots=True)
class HitWhy:
    """How one memory came to its place."""

    arms: dict[str, ArmHit]
    parts: dict[str, float]  # of the weighted sum, by name
    fused: float  # their sum
    fused_rank: int  # by that sum, 1 first
    calibrated: float  # the chance that it answers, 0..1, before time has its say
    time: float  # what words of time and decay added to it; what was beyond 1 is cut
    matched_terms: tuple[str, ...]  # terms of the query in its text
    context_terms: tuple[str, ...]  # terms of the query around it: its speaker, its date, the message before
    matched_entities: tuple[str, ...]
    sources: tuple[SourceSpan, ...]


@dataclass(frozen=True, slots=True)
class QueryWhy:
    """How a query was read, and what came of it at each stage."""

    terms: tuple[str, ...]
    entities: tuple[str, ...]
    dates: tuple[dict[str, datetime], ...]  # from, to (exclusive)
    embedded: str | None
    stripped_names: tuple[str, ...]  # left out of `embedded`
    speaker: str | None  # whose words are preferred: a name or a role
    reference_date: datetime
    memories: int
    candidates: dict[str, int]  # that each arm brought, and all together
    ranked: int
    reached_threshold: int
    threshold: float
    top_k: int
    took_ms: dict[str, float]


def query(trail: Trail) -> QueryWhy:
    """Return what the search made of its query. Pure."""
    question = trail.question
    left = set(questions.read(trail.embedded, now=trail.query.now).names) if trail.embedded else set()
    return QueryWhy(
        terms=question.terms,
        entities=question.norms,
        dates=tuple({"from": start, "to": end} for start, end in question.windows),
        embedded=trail.embedded or None,
        stripped_names=tuple(name for name in question.names if name not in left) if trail.embedded else (),
        speaker=_speaker(trail),
        reference_date=trail.query.now,
        memories=trail.count,
        candidates={
            "semantic": len(trail.semantic),
            "keyword": min(len(trail.keyword), trail.query.arm_limit),
            "entity": len(trail.entity),
            "all": len(trail.candidates),
        },
        ranked=len(trail.ranked),
        reached_threshold=trail.kept,
        threshold=trail.query.threshold,
        top_k=trail.query.top_k,
        took_ms={stage: round(took, 3) for stage, took in trail.took_ms.items()},
    )


def _speaker(trail: Trail) -> str | None:
    actors = {candidate.actor for candidate in trail.candidates if candidate.actor}
    return questions.named_actor(trail.question, actors) or trail.question.role


async def hits(rt: Runtime, caller: Caller, trail: Trail) -> dict[UUID, HitWhy]:
    """Return, for each hit of the answer, how it came to its place."""
    scores = {hit.memory.id: hit.score for hit in trail.hits}
    question, project_id = trail.question, caller.project.id
    async with rt.db.acquire(project_id) as conn:
        matched = await explain_store.matches(conn, project_id, scores, question.terms, question.norms)
        found = await source_store.of(conn, project_id, scores, shown=SHOWN_CHARS)
    ranks = places(trail)
    made = {}
    for place, ranked in enumerate(trail.ranked, start=1):
        memory_id = ranked.candidate.id
        if memory_id not in scores:
            continue
        terms, norms = matched.get(memory_id, ((), ()))
        own = set(lexemes.analyse(ranked.candidate.text))
        made[memory_id] = HitWhy(
            arms=arms_of(ranked.candidate, ranks),
            parts={name: round(value, 6) for name, value in asdict(ranked.parts).items()},
            fused=ranked.fused,
            fused_rank=place,
            calibrated=ranked.score,
            time=scores[memory_id] - ranked.score,
            matched_terms=tuple(term for term in terms if term in own),
            context_terms=tuple(term for term in terms if term not in own),
            matched_entities=norms,
            sources=tuple(s for s in found.get(memory_id, ()) if pins.allows(caller.pins, s.owners)),
        )
    return made


def places(trail: Trail) -> dict[str, Mapping[UUID, int]]:
    """Return the rank of each memory in each arm, 1 first."""
    return {
        "semantic": _places([row[0] for row in trail.semantic]),
        # Behind these stand memories of the other arms, among which some are missing.
        "keyword": _places([row[0] for row in trail.keyword[: trail.query.arm_limit]]),
        "entity": _places([row[0] for row in trail.entity]),
    }


def _places(ids: Sequence[Any]) -> dict[UUID, int]:
    return {memory_id: place for place, memory_id in enumerate(ids, start=1)}


def arms_of(candidate: rank.Candidate, ranks: Mapping[str, Mapping[UUID, int]]) -> dict[str, ArmHit]:
    """Return what each arm says of a candidate."""
    scores = {"semantic": candidate.cosine, "keyword": candidate.bm25, "entity": candidate.entity}
    return {arm: ArmHit(score, ranks[arm].get(candidate.id)) for arm, score in scores.items()}
