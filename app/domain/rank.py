"""Fusion of the arms, structure and metadata to one order, and the score that is shown. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from app.domain import lexemes
from app.domain import question as questions
from app.domain.question import Question

# Weights of the weighted sum, whose largest part, the cosine, counts 1. Chosen by bench/retrieval.py, where the result is
# flat around them; a weighted sum of scores beat reciprocal rank fusion by eight points of recall at 10.
KEYWORD = 0.5
BEFORE = 0.1  #: share of a hit's score that the memory before it gets: the question before an answer
SESSION = 0.3  #: share of its session's three best that each memory gets
SPEAKER = 0.3  #: said by the one whom the question names or points at
WINDOW = 0.3  #: from a time that the question names
TIME_CUE = 0.1  #: tells a time, and the question asks for one
RARE_ENTITY = 0.1  #: linked to a named thing of the question that few memories are linked to

SESSION_GAP = timedelta(hours=2)  #: a longer silence ends a session
#: People talk of a day on that day and in the days after it.
WINDOW_SLACK = (timedelta(days=1), timedelta(days=10))
READ = 3  #: texts that are read once more for the score
RARE_LINKS = 10  #: an entity with more memories is a subject of the scope, and no clue


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that an arm has found, with the raw numbers of all arms."""

    id: UUID
    scope_id: int
    text: str
    role: str | None
    actor: str | None
    created_at: datetime
    happened_from: datetime | None
    happened_to: datetime | None
    follows: UUID | None  # the memory just before it in its scope
    cosine: float | None  # None: it has no vector of the model
    bm25: float
    entity: float  # share of the question's entities that it is linked to, 0..1
    links: int  # memories that the rarest of those is linked to; 0 without any


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its place in the order."""

    candidate: Candidate
    fused: float  # weighted sum; comparable within one query only
    score: float  # 0..1, comparable between queries


def order(question: Question, candidates: Sequence[Candidate], model: Model) -> list[Ranked]:
    """Return the candidates best first; equal ones newest first, then by id."""
    fused = fuse(question, candidates, spread=model.spread)
    ranked = sorted(
        zip(fused, candidates, strict=True), key=lambda pair: (-pair[0], -pair[1].created_at.timestamp(), pair[1].id)
    )
    cosine, share = best(question, candidates)
    return [Ranked(candidate, value, model.probability(value, cosine, share)) for value, candidate in ranked]


def best(question: Question, candidates: Sequence[Candidate]) -> tuple[float, float]:
    """Return how good the pool is at all: its best cosine, and the largest share of the question's terms in one text.

    Only the texts that the keyword arm likes most are read for the share.
    """
    cosine = max((c.cosine for c in candidates if c.cosine is not None), default=0.0)
    terms = set(question.terms)
    liked = heapq.nlargest(READ, (c for c in candidates if c.bm25 > 0), key=lambda c: c.bm25)
    return cosine, max((len(terms & set(lexemes.analyse(c.text))) / len(terms) for c in liked), default=0.0)


def fuse(question: Question, candidates: Sequence[Candidate], *, spread: float) -> list[float]:
    """Return the weighted sum of each candidate, in their order. Rounded, so that equal candidates stay equal."""
    sessions = _sessions(candidates)
    lifted = _lift_before(candidates, _own(candidates, spread), sessions)
    session = _session_means(sessions, lifted)
    extra = _bonuses(question, candidates)
    return [round(part + SESSION * mean + bonus, 9) for part, mean, bonus in zip(lifted, session, extra, strict=True)]


def _own(candidates: Sequence[Candidate], spread: float) -> list[float]:
    """Cosine, 1 for the best, and BM25 against the best of the pool."""
    cosines = [c.cosine for c in candidates if c.cosine is not None]
    top = max(cosines, default=0.0)
    width = max(top - min(cosines, default=0.0), spread)
    best = max((c.bm25 for c in candidates), default=0.0)
    return [
        (0.0 if c.cosine is None else 1 - (top - c.cosine) / width) + (KEYWORD * c.bm25 / best if best > 0 else 0.0)
        for c in candidates
    ]


def _lift_before(candidates: Sequence[Candidate], own: Sequence[float], sessions: Sequence[int]) -> list[float]:
    lifted = list(own)
    place = {candidate.id: index for index, candidate in enumerate(candidates)}
    for index, candidate in enumerate(candidates):
        before = place.get(candidate.follows) if candidate.follows else None
        if before is not None and sessions[before] == sessions[index]:
            lifted[before] += BEFORE * own[index]
    return lifted


def _session_means(sessions: Sequence[int], values: Sequence[float]) -> list[float]:
    """The mean of the three best of each candidate's session."""
    best: dict[int, list[float]] = {}
    for session, value in zip(sessions, values, strict=True):
        best.setdefault(session, []).append(value)
    means = {session: sum(sorted(found)[-3:]) / min(len(found), 3) for session, found in best.items()}
    return [means[session] for session in sessions]


def _sessions(candidates: Sequence[Candidate]) -> list[int]:
    """Number the sessions: memories of one scope without a long silence between two that follow."""
    numbers = [0] * len(candidates)
    current, last = 0, None
    for index in sorted(range(len(candidates)), key=lambda i: (candidates[i].scope_id, candidates[i].created_at)):
        candidate = candidates[index]
        if last and (last.scope_id != candidate.scope_id or candidate.created_at - last.created_at > SESSION_GAP):
            current += 1
        numbers[index], last = current, candidate
    return numbers


def _bonuses(question: Question, candidates: Sequence[Candidate]) -> list[float]:
    actor = questions.named_actor(question, {c.actor for c in candidates if c.actor})
    roles = {c.role for c in candidates}
    role = question.role if actor is None and {"user", "assistant"} <= roles else None
    return [
        SPEAKER * (c.actor == actor if actor else role is not None and c.role == role)
        + WINDOW * _in_window(question, c)
        + TIME_CUE * (question.asks_when and questions.tells_time(c.text))
        + RARE_ENTITY * (c.entity if 0 < c.links <= RARE_LINKS else 0.0)
        for c in candidates
    ]


def _in_window(question: Question, candidate: Candidate) -> bool:
    early, late = WINDOW_SLACK
    for start, end in question.windows:
        if start - early <= candidate.created_at < end + late:
            return True
        if candidate.happened_from and candidate.happened_from < end and (candidate.happened_to or end) > start:
            return True
    return False


# The score ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Model:
    """How an embedding model's cosines are read.

    A logistic turns the weighted sum of a memory, and how good the best of its pool is at all, into the probability that
    the memory is relevant. All memories of a query share the second part, so the score keeps their order.
    """

    spread: float  # least difference of cosines that counts as the whole way from best to worst
    base: float
    fused: float  # per unit of the weighted sum
    cosine: float  # per unit of the best cosine above `zero`
    zero: float  # cosine of texts that have nothing in common
    share: float  # per share of the question's words that the best text holds

    def probability(self, fused: float, best_cosine: float, best_share: float) -> float:
        """Return 0..1; grows with each argument."""
        logit = self.base + self.fused * fused + self.cosine * (best_cosine - self.zero) + self.share * best_share
        return 1 / (1 + math.exp(-logit))


# Fitted by bench/calibrate.py on a tuning set.
_MODELS = {"multilingual-e5-small-q4": Model(spread=0.06, base=-6.0, fused=2.5, cosine=20.0, zero=0.78, share=2.0)}
#: For a model that nobody has looked at: its cosines order memories, and say nothing by themselves.
_UNKNOWN = Model(spread=0.1, base=-5.0, fused=2.5, cosine=0.0, zero=0.0, share=3.0)


def model(name: str) -> Model:
    """Return how to read the cosines of the embedding model with this id; a part behind a slash does not count."""
    return _MODELS.get(name.split("/")[0], _UNKNOWN)
