"""How the best cosine and the best coverage of a pool tell whether it holds an answer, for the constants of rank.Model.

    python -m bench.calibrate FILE [--limit N] [--vectors FILE]

Every conversation is asked its own questions and as many of the other conversations, which it cannot answer. Prints both
distributions, the logistic that separates them with equal weight, how well rank.py's own does, and what the default
threshold costs. The constants in rank.py are rounded, and gentler than the fit: a small scope of short facts answers
questions whose words it does not share, at cosines that are low for a long conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.domain import rank, search
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
    given = parser.parse_args()
    with retrieval.server() as dsn:
        asyncio.run(calibrate(dsn, conversations.read(given.file)[: given.limit], given.vectors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
