"""Whether what was found holds an answer at all: one estimate for the whole answer. Pure.

Two things speak against it. Nothing that was found is near the question, by cosine and by words: rank.Model tells that.
Or a person is named, and others are nearer to what is asked: the thing was said, and by somebody else.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence

from app.domain import lexemes, rank
from app.domain import question as questions

# Logits; round numbers beside the fit of `python -m bench.calibrate FILE --person` on the development half of LoCoMo
# (1.48, 2.55, 8.4), where the estimate is tested on conversations that took no part in the fit.
NAMED = 1.5  #: for a question that names one speaker, whose memories are as near as those of others
WORDS = 2.0  #: for words of the question that only the best text of that person holds, all of them: 1
READ = 3  #: texts of the person, and as many of the others, that are read for it


def estimate(pool: rank.Pool, model: rank.Model) -> float:
    """Return the chance, 0..1, that the memories in the pool answer its question; 0 for an empty one."""
    if not pool.candidates:
        return 0.0
    topic = model.answerable(*rank.best(pool))
    actor = questions.named_actor(pool.question, {c.actor for c in pool.candidates if c.actor})
    if actor is None:
        return topic
    words, meaning = gaps(pool, actor)
    return topic / (1 + math.exp(-(NAMED + WORDS * words + model.person * meaning)))


def gaps(pool: rank.Pool, actor: str) -> tuple[float, float]:
    """Return how much nearer the memories of `actor` come to the question than those of others; below 0: less near.

    By words: share of the question's terms, its names left out, weighted by rarity, -1..1. By meaning: best cosine beyond
    the mean of the pool. Both 0 where one side has no memory, meaning also in a pool that is too small for a mean.
    """
    sides = [[c for c in pool.candidates if (c.actor == actor) is own] for own in (True, False)]
    if not all(sides):
        return 0.0, 0.0
    of_names = {term for terms in pool.question.names.values() for term in terms}
    rarity = {term: weight for term, weight in pool.rarity.items() if term not in of_names}
    own, others = (_held(side, rarity) for side in sides)
    return own - others, _nearer(pool.candidates, actor)


def _held(candidates: Collection[rank.Candidate], rarity: Mapping[str, float]) -> float:
    """The largest share of the terms in one of the texts that the keyword arm likes most."""
    total = sum(rarity.values())
    liked = heapq.nlargest(READ, candidates, key=lambda c: c.bm25)
    held = (sum(rarity.get(term, 0.0) for term in set(lexemes.analyse(c.text))) for c in liked)
    return max(held) / total if total else 0.0


def _nearer(candidates: Sequence[rank.Candidate], actor: str) -> float:
    values = rank.centred(candidates)
    best: dict[bool, float] = {}
    for candidate, value in zip(candidates, values, strict=True):
        if value is not None:
            own = candidate.actor == actor
            best[own] = max(value, best.get(own, value))
    return best[True] - best[False] if len(best) == 2 else 0.0
