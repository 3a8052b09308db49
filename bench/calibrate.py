"""How the best cosine and the best coverage of a pool tell whether it holds an answer, for the constants of rank.Model.

    python -m bench.calibrate FILE [--limit N] [--vectors FILE] [--person] [--view said|text]

Every conversation is asked its own questions and as many of the other conversations, which it cannot answer. Prints both
distributions, the logistic that separates them with equal weight, how well rank.py's own does, and what the default
threshold costs. The constants in rank.py are rounded, and gentler than the fit: a small scope of short facts answers
questions whose words it does not share, at cosines that are low for a long conversation.

With --person every conversation is asked all its own questions instead, those without an answer too: for the constants of
domain.answerable. The fit is tested on each conversation in turn, which takes no part in it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.domain import answerable, rank, search
from app.domain import question as questions
from app.model import And, Caller, Condition, Operator
from app.runtime import Runtime
from bench import conversations, retrieval

FOREIGN = 30  #: questions of other conversations that each is asked
SHOWN = 20  #: hits that the threshold is applied to
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """One question and what came of it."""

    answerable: bool
    cosine: float
    coverage: float
    recall: float  # in the first SHOWN, 0..1
    recall_cut: float  # the same above the default threshold
    kept: float  # share of the first SHOWN above it


async def ask(rt: Runtime, caller: Caller, talk: conversations.Conversation, others: list[str]) -> list[Asked]:
    """Ask a stored conversation its own questions and `others`."""
    node = And((Condition("user_id", Operator.EQ, f"{talk.name}-text"),))
    ids = {turn.text: turn.id for turn in talk.turns}
    rows = []
    own = [(question.text, question.evidence) for question in talk.asked()]
    for text, evidence in [*own, *((other, frozenset[str]()) for other in others)]:
        query = search.Query(text, node, top_k=SHOWN, threshold=0.0)
        cosine, coverage = rank.best(await search.gather(rt, caller, query))
        hits = await search.run(rt, caller, query)
        kept = [hit for hit in hits if hit.score >= search.THRESHOLD]
        found = [
            len({ids[hit.memory.text] for hit in part} & evidence) / max(len(evidence), 1) for part in (hits, kept)
        ]
        rows.append(Asked(bool(evidence), cosine, coverage, found[0], found[1], len(kept) / max(len(hits), 1)))
    print(f"{talk.name}: {len(own)} own questions, {len(others)} foreign", flush=True)
    return rows


def fit(x: Rows, y: Rows) -> Rows:
    """Return intercept and weights of the logistic of y on x, both classes of equal weight (Newton's method)."""
    design = np.c_[np.ones(len(x)), x]
    weight = np.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    w = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ w))
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + 1e-6 * np.eye(len(w))
        w += np.linalg.solve(hessian, design.T @ (weight * (y - p)))
    return w


def auroc(p: Rows, y: Rows) -> float:
    """Return the chance that a positive has the higher p; ties count half."""
    higher = p[y > 0][:, None] - p[y == 0][None, :]
    return float((higher > 0).mean() + (higher == 0).mean() / 2)


@dataclass(frozen=True)
class Tried:
    """One question of a conversation's own, which may have no answer."""

    talk: str
    answerable: bool
    topic: float  # chance by nearness alone
    named: bool
    gaps: tuple[float, float]
    estimate: float  # of the constants as they are


async def attempt(rt: Runtime, caller: Caller, talk: conversations.Conversation, view: str) -> list[Tried]:
    """Ask a stored conversation everything that it has."""
    node, model = And((Condition("user_id", Operator.EQ, f"{talk.name}-{view}"),)), rank.model(rt.embedder.model)
    rows = []
    for question in talk.questions:
        without = question.kind in conversations.UNANSWERABLE
        if not (without or question.evidence):
            continue
        pool = await search.gather(rt, caller, search.Query(question.text, node, top_k=SHOWN))
        actor = questions.named_actor(pool.question, {c.actor for c in pool.candidates if c.actor})
        gaps = answerable.gaps(pool, actor) if actor else (0.0, 0.0)
        topic = model.answerable(*rank.best(pool))
        made = answerable.estimate(pool, model)
        rows.append(Tried(talk.name, not without, topic, actor is not None, gaps, made))
    return rows


def calibration_error(p: Rows, y: Rows, bins: int = 10) -> float:
    """Return the expected calibration error over bins of equal width."""
    place = np.minimum((p * bins).astype(int), bins - 1)
    parts = [(place == one) for one in range(bins) if (place == one).any()]
    return float(sum(part.mean() * abs(p[part].mean() - y[part].mean()) for part in parts))


def descend(rows: Sequence[Tried]) -> Rows:
    """Return the constants NAMED, WORDS and Model.person of the largest likelihood (coordinate descent)."""
    y = np.array([row.answerable for row in rows])
    weights, step = np.array([1.0, 2.0, 7.0]), np.array([0.3, 0.5, 2.0])

    def loss(tried: Rows) -> float:
        p = np.clip(predicted(rows, tried), 1e-6, 1 - 1e-6)
        return -float(np.mean(np.where(y, np.log(p), np.log(1 - p))))

    least = loss(weights)
    while step.max() > 0.01:
        moves = [weights + sign * step * np.eye(3)[at] for at in range(3) for sign in (1, -1)]
        losses = [loss(move) for move in moves]
        if min(losses) < least:
            least, weights = min(losses), moves[int(np.argmin(losses))]
        else:
            step = step / 2
    return weights


def predicted(rows: Sequence[Tried], weights: Rows) -> Rows:
    """Return the estimate of each row with these constants."""
    topic, named = np.array([row.topic for row in rows]), np.array([row.named for row in rows])
    logit = np.array([(1.0, *row.gaps) for row in rows]) @ weights
    return np.where(named, topic / (1 + np.exp(-logit)), topic)


def report_person(rows: Sequence[Tried]) -> None:
    """Print how well the estimate does, by constants that never saw the conversation and by those in use."""
    y = np.array([float(row.answerable) for row in rows])
    left_out = np.zeros(len(rows))
    for talk in dict.fromkeys(row.talk for row in rows):
        own = np.array([row.talk == talk for row in rows])
        left_out[own] = predicted(
            [row for row in rows if row.talk == talk], descend([row for row in rows if row.talk != talk])
        )
    print(f"{len(rows)} questions, {100 * y.mean():.0f} % with an answer; fit: {np.round(descend(rows), 2)}")
    for name, p in (
        ("nearness alone", np.array([row.topic for row in rows])),
        ("fit, by conversation left out", left_out),
        ("constants in use", np.array([row.estimate for row in rows])),
    ):
        print(f"{name:30s} AUROC {auroc(p, y):.3f}, calibration error {calibration_error(p, y):.3f}")


def report(rows: list[Asked], model: rank.Model) -> None:
    """Print what the constants of the model rest on."""
    x = np.array([(row.cosine, row.coverage) for row in rows])
    y = np.array([float(row.answerable) for row in rows])
    own = np.array([model.answerable(row.cosine, row.coverage) for row in rows])
    for name, chosen in (("own", y > 0), ("foreign", y == 0)):
        for title, values in (("best cosine", x[:, 0]), ("best coverage", x[:, 1]), ("answerable", own)):
            shown = "  ".join(f"{value:.3f}" for value in np.percentile(values[chosen], [5, 25, 50, 75, 95]))
            print(f"{name:8s} {title:14s} 5/25/50/75/95 %:  {shown}")
    intercept, steep, coverage = fit(x - np.array([model.even, 0.0]), y)
    print(f"fit: base {intercept:.2f} at cosine {model.even}, steep {steep:.1f}, coverage {coverage:.1f}")
    print(f"AUROC of rank.py's constants: {auroc(own, y):.3f}")
    answered = [row for row in rows if row.answerable]
    whole, cut = (100 * float(np.mean([getattr(row, name) for row in answered])) for name in ("recall", "recall_cut"))
    print(f"recall@{SHOWN} {whole:.2f}, above the threshold {search.THRESHOLD}: {cut:.2f}")
    for name, wanted in (("own", True), ("foreign", False)):
        share = np.mean([row.kept for row in rows if row.answerable is wanted])
        print(f"hits above the threshold, {name} questions: {100 * share:.0f} % of {SHOWN}")


async def calibrate_person(dsn: str, talks: list[conversations.Conversation], vectors: Path, view: str) -> None:
    """Store the conversations, ask them their own questions, and print."""
    async with retrieval.runtime(dsn, vectors) as (rt, caller):
        rows: list[Tried] = []
        for talk in talks:
            await retrieval.tell(rt, caller, talk, view)
            rows += await attempt(rt, caller, talk, view)
        report_person(rows)


async def calibrate(dsn: str, talks: list[conversations.Conversation], vectors: Path) -> None:
    """Store the conversations, ask, and print."""
    async with retrieval.runtime(dsn, vectors) as (rt, caller):
        rows: list[Asked] = []
        for talk in talks:
            await retrieval.tell(rt, caller, talk, "text")
            others = [question.text for other in talks if other is not talk for question in other.asked()]
            picked = random.Random(talk.name).sample(others, min(FOREIGN, len(others)))
            rows += await ask(rt, caller, talk, picked)
        report(rows, rank.model(rt.embedder.model))


def main() -> int:
    """Read the command line and calibrate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="only the first N conversations")
    parser.add_argument(
        "--vectors", type=Path, default=retrieval.VECTORS, help="where embeddings are kept between runs"
    )
    parser.add_argument("--person", action="store_true", help="for the constants of domain.answerable")
    parser.add_argument("--view", choices=["said", "text"], default="text", help="with --person")
    given = parser.parse_args()
    talks = conversations.read(given.file)[: given.limit]
    with retrieval.server() as dsn:
        if given.person:
            asyncio.run(calibrate_person(dsn, talks, given.vectors, given.view))
        else:
            asyncio.run(calibrate(dsn, talks, given.vectors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
