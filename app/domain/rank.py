"""Fusion of the arms, structure and metadata to one order, and the score that is shown. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from app.domain import lexemes
from app.domain import question as questions
from app.domain.question import Question

#: Share of the semantic part that looks beyond the mean of the pool. bench.ablation: recall at 20 on BEAM +3.0 points,
#: on LoCoMo +0.4; all of it is worse on LoCoMo.
CENTRED = 0.5
CENTRED_FROM = 20  #: vectors; the mean of fewer is one of them
CENTRED_SPREAD = 0.1  #: as Model.spread, of what is left beyond the mean
COVERED = 0.9  #: coverage that means nearly all
SESSION_GAP = timedelta(hours=2)  #: a longer silence ends a session
#: People talk of a day on that day and in the days after it.
WINDOW_SLACK = (timedelta(days=1), timedelta(days=10))
READ = 3  #: texts that are read once more for the score
#: Chance of an answer that neither words nor cosine show: "What can she not eat?" and an allergy to peanuts share no word,
#: and a small model sees little in common. It lifts such a pair over the default threshold, and nothing unrelated.
UNSEEN = 0.05
DECAY = 1.6  #: of the score, per unit of the weighted sum below the best
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
    typical: float | None = None  # inner product of its vector and the mean of the pool's; None without a vector


@dataclass(frozen=True, slots=True)
class Pool:
    """What all arms have found for one question."""

    question: Question
    candidates: Sequence[Candidate]
    rarity: Mapping[str, float]  # of each term of the question in the scopes: BM25's idf


@dataclass(frozen=True, slots=True)
class Weights:
    """What each part of the ranking counts; the best cosine counts 1.

    Chosen by `python -m bench.ablation`, where the result is flat around them; a weighted sum of scores beat reciprocal
    rank fusion by two points of recall at 10.
    """

    semantic: float = 1.0
    keyword: float = 0.45
    keyword_lookup: float = (
        1.1  # instead, for words that are no question and that one text holds nearly all of: they decide
    )
    before: float = 0.2  # share of a hit's score that the memory before it gets: the question before an answer
    session: float = 0.4  # share of its session's three best that each memory gets
    speaker: float = 0.45  # said by the one whom the question names or points at
    window: float = 0.3  # from a time that the question names
    time_cue: float = 0.1  # tells a time, and the question asks for one
    entity: float = 0.1  # linked to a named thing of the question that few memories are linked to
    asks: float = 0.2  # taken off a memory that is a short question: it seldom holds an answer


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Parts:
    """What each part of the ranking gave one memory. Comparable within one query only."""

    semantic: float = 0.0  # its cosine against the best of the pool, and what sets it apart from the rest
    keyword: float = 0.0  # its BM25 against the best of the pool
    before: float = 0.0  # the memory just after it is a hit
    session: float = 0.0  # others of its session are hits
    speaker: float = 0.0
    window: float = 0.0
    time_cue: float = 0.0
    entity: float = 0.0
    asks: float = 0.0  # 0 or less

    @property
    def own(self) -> float:
        """What the two arms gave."""
        return self.semantic + self.keyword

    @property
    def total(self) -> float:
        """The weighted sum. Rounded, so that equal memories stay equal."""
        clues = self.speaker + self.window + self.time_cue + self.entity + self.asks
        return round(self.own + self.before + self.session + clues, 9)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its place in the order."""

    candidate: Candidate
    parts: Parts
    score: float  # 0..1, comparable between queries; falls with the weighted sum

    @property
    def fused(self) -> float:
        """The weighted sum of all parts; comparable within one query only."""
        return self.parts.total


def order(pool: Pool, model: Model, *, limit: int | None = None, weights: Weights = WEIGHTS) -> list[Ranked]:
    """Return the best `limit` candidates (None: all), best first; equal ones newest first, then by id."""
    cosine, coverage = best(pool)
    parts = fuse(pool.question, pool.candidates, spread=model.spread, coverage=coverage, weights=weights)
    ranked = sorted(
        zip(parts, pool.candidates, strict=True),
        key=lambda pair: (-pair[0].total, -pair[1].created_at.timestamp(), pair[1].id),
    )[:limit]
    if not ranked:
        return []
    answerable = model.answerable(cosine, coverage)
    top = ranked[0][0].total
    return [Ranked(candidate, part, answerable * math.exp(-DECAY * (top - part.total))) for part, candidate in ranked]


def best(pool: Pool) -> tuple[float, float]:
    """Return how good the pool is at all: its best cosine, and the largest coverage of the question by one text, 0..1.

    Coverage is the share of the question's terms in a text, weighted by rarity. Only the texts that the keyword arm likes
    most are read for it.
    """
    cosine = max((c.cosine for c in pool.candidates if c.cosine is not None), default=0.0)
    total = sum(pool.rarity.values())
    liked = heapq.nlargest(READ, (c for c in pool.candidates if c.bm25 > 0), key=lambda c: c.bm25)
    held = (sum(pool.rarity.get(term, 0.0) for term in set(lexemes.analyse(c.text))) for c in liked)
    return cosine, max(held, default=0.0) / total if total else 0.0


def fuse(
    question: Question,
    candidates: Sequence[Candidate],
    *,
    spread: float,
    coverage: float,
    weights: Weights = WEIGHTS,
) -> list[Parts]:
    """Return what each part of the ranking gives each candidate, in their order.

    `coverage`: the largest of the pool. `spread`: as in Model.
    """
    sessions = _sessions(candidates)
    semantic = [weights.semantic * near for near in _nearness(candidates, spread)]
    looked_up = question.looks_up and coverage >= COVERED
    words = weights.keyword_lookup if looked_up else weights.keyword
    keyword = [words * share for share in _word_shares(candidates)]
    own = [near + share for near, share in zip(semantic, keyword, strict=True)]
    before = [weights.before * after for after in _after(candidates, own, sessions)]
    lifted = [score + lift for score, lift in zip(own, before, strict=True)]
    means = _session_means(sessions, lifted)
    points_at = _pointed_at(question, candidates)
    return [
        Parts(
            semantic=semantic[index],
            keyword=keyword[index],
            before=before[index],
            session=weights.session * means[index],
            speaker=weights.speaker * points_at(candidate),
            window=weights.window * _in_window(question, candidate),
            time_cue=weights.time_cue * (question.asks_when and questions.tells_time(candidate.text)),
            entity=weights.entity * (candidate.entity if 0 < candidate.links <= RARE_LINKS else 0.0),
            asks=-weights.asks * questions.only_asks(candidate.text),
        )
        for index, candidate in enumerate(candidates)
    ]


def _nearness(candidates: Sequence[Candidate], spread: float) -> list[float]:
    """The cosine against those of the pool, 1 for the best; 0 for a memory without a vector.

    In a large pool half of it is the cosine of what question and memory have beyond the mean of the pool: a small model
    puts everything near everything, and what all of the pool has in common tells nothing.
    """
    plain = _spread([c.cosine for c in candidates], spread)
    beyond = centred(candidates)
    if all(value is None for value in beyond):
        return plain
    return [
        (1 - CENTRED) * one + CENTRED * other for one, other in zip(plain, _spread(beyond, CENTRED_SPREAD), strict=True)
    ]


def centred(candidates: Sequence[Candidate]) -> list[float | None]:
    """Return how near each is to the question, the mean of the pool taken off both; None without a vector.

    The inner product by the memory's length. All None in a pool that is too small for a mean.
    """
    known = [(c.cosine, c.typical) for c in candidates if c.cosine is not None and c.typical is not None]
    if len(known) < CENTRED_FROM:
        return [None] * len(candidates)
    asked = sum(cosine for cosine, _ in known) / len(known)  # question and mean
    mean = sum(typical for _, typical in known) / len(known)  # the mean and itself
    return [
        None
        if c.cosine is None or c.typical is None
        else (c.cosine - c.typical - asked + mean) / math.sqrt(max(1 - 2 * c.typical + mean, 1e-6))
        for c in candidates
    ]


def _spread(values: Sequence[float | None], least: float) -> list[float]:
    """1 for the best, 0 for the worst if it is `least` below or further; 0 for None."""
    known = [value for value in values if value is not None]
    top = max(known, default=0.0)
    width = max(top - min(known, default=0.0), least)
    return [0.0 if value is None else 1 - (top - value) / width for value in values]


def _word_shares(candidates: Sequence[Candidate]) -> list[float]:
    """BM25 against the best of the pool."""
    top = max((c.bm25 for c in candidates), default=0.0)
    return [c.bm25 / top if top > 0 else 0.0 for c in candidates]


def _after(candidates: Sequence[Candidate], own: Sequence[float], sessions: Sequence[int]) -> list[float]:
    """What the memories just after each in its session have of their own."""
    after = [0.0] * len(candidates)
    place = {candidate.id: index for index, candidate in enumerate(candidates)}
    for index, candidate in enumerate(candidates):
        before = place.get(candidate.follows) if candidate.follows else None
        if before is not None and sessions[before] == sessions[index]:
            after[before] += own[index]
    return after


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


def _pointed_at(question: Question, candidates: Sequence[Candidate]) -> Callable[[Candidate], bool]:
    """Whether a candidate was said by the one whom the question names, or else by the role that it points at."""
    actor = questions.named_actor(question, {c.actor for c in candidates if c.actor})
    if actor is not None:
        return lambda candidate: candidate.actor == actor
    role = question.role if {"user", "assistant"} <= {c.role for c in candidates} else None
    return lambda candidate: role is not None and candidate.role == role


def _in_window(question: Question, candidate: Candidate) -> bool:
    early, late = WINDOW_SLACK
    for start, end in question.windows:
        if start - early <= candidate.created_at < end + late:
            return True
        if candidate.happened_from and candidate.happened_from < end and (candidate.happened_to or end) > start:
            return True
    return False


# The score ------------------------------------------------------------------------------------------------------------


def idf(count: int, frequency: int) -> float:
    """Return the weight of a term that `frequency` of `count` memories hold, above 0."""
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class Model:
    """How an embedding model's cosines are read.

    The score of a memory is the chance that its pool has an answer at all, which all memories of a query share, times how
    near it comes to the best of them; so the score keeps the order.
    """

    spread: float  # least difference of cosines that counts as the whole way from best to worst
    even: float  # best cosine at which an answer is as likely as not, when no word is shared
    steep: float  # logits per unit of cosine
    base: float  # logits at `even`
    coverage: float  # logits for a text that holds all words of the question
    person: float = 0.0  # logits per unit by which the one asked for is nearer than others (domain.answerable)

    def answerable(self, cosine: float, coverage: float) -> float:
        """Return the chance, 0..1, that a pool with this best cosine and best coverage (0..1) has an answer."""
        logit = self.base + self.steep * (cosine - self.even) + self.coverage * coverage
        return UNSEEN + (1 - UNSEEN) / (1 + math.exp(-logit))


# Round numbers, gentler than the fit of bench/calibrate.py: its scopes are long, and in a short one a question that shares
# no word with its answer has a lower best cosine.
_MODELS = {"multilingual-e5-small-q4": Model(spread=0.06, even=0.83, steep=43.0, base=0.0, coverage=3.0, person=7.0)}
#: For a model that nobody has looked at: its cosines order memories, and say nothing by themselves.
_UNKNOWN = Model(spread=0.1, even=0.0, steep=0.0, base=0.8, coverage=3.0)


def model(name: str) -> Model:
    """Return how to read the cosines of the embedding model with this id; a part behind a slash does not count."""
    return _MODELS.get(name.split("/")[0], _UNKNOWN)
