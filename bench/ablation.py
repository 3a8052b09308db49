"""What each arm finds alone, and what is lost when one part of the ranking is left out.

    python -m bench.ablation FILE [--view said|text] [--limit N] [--vectors FILE]

FILE as for bench.retrieval. The store is filled once, the arms are asked once a question, and their finds are ranked in
every way; where a part shapes what is stored or embedded, that is made anew. Differences are to the whole ranking, of the
same questions, in points of recall at 10, with their 95 % intervals (bootstrap by question, 1,000 rounds, seed 7).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain import lexemes, rank, search
from app.domain import question as questions
from app.model import And, Condition, Operator
from bench import conversations, measures, retrieval

Ranker = Callable[[rank.Pool, rank.Model], list[rank.Candidate]]
NOTHING = rank.Weights(**dict.fromkeys((field.name for field in fields(rank.Weights)), 0.0))
#: What shapes the stored or the embedded texts: the module, its constant, and the value that switches it off.
BEFORE_RANKING: dict[str, tuple[Any, str, object]] = {
    "names stripped from the dense query": (questions, "COMMON_SHARE", 1.0),
    "message before, in the keyword document": (lexemes, "NEIGHBOUR_CHARS", -1),
}


@dataclass(frozen=True)
class Asked:
    """A question, and what the arms found for it."""

    question: conversations.Question
    pool: rank.Pool
    turns: dict[str, str]  # id of the turn by the beginning of its text


def weighted(weights: rank.Weights) -> Ranker:
    """Rank by other weights."""
    return lambda pool, model: [found.candidate for found in rank.order(pool, model, weights=weights)]


def by_entities(pool: rank.Pool, _: rank.Model) -> list[rank.Candidate]:
    """Rank what is linked to named things of the question by how many, then by how rare."""
    linked = [candidate for candidate in pool.candidates if candidate.entity > 0]
    return sorted(linked, key=lambda candidate: (-candidate.entity, candidate.links, candidate.id))


def rankers() -> dict[str, Ranker]:
    """Return the whole ranking, each arm alone, and the ranking without each of its parts."""
    made: dict[str, Ranker] = {
        "whole": weighted(rank.WEIGHTS),
        "semantic arm alone": weighted(replace(NOTHING, semantic=1.0)),
        "keyword arm alone": weighted(replace(NOTHING, keyword=1.0, keyword_lookup=1.0)),
        "entity arm alone": by_entities,
        "both large arms, no structure": weighted(replace(NOTHING, semantic=1.0, keyword=rank.WEIGHTS.keyword)),
    }
    for field in fields(rank.Weights):
        without = rank.WEIGHTS.keyword if field.name == "keyword_lookup" else 0.0
        made[f"without {field.name}"] = weighted(replace(rank.WEIGHTS, **{field.name: without}))
    return made


@contextmanager
def switched(module: Any, name: str, value: object) -> Iterator[None]:
    """Give a constant another value for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


async def pools(dsn: str, talks: Sequence[conversations.Conversation], view: str, vectors: Path) -> list[Asked]:
    """Store the conversations in a project of its own and ask the arms every question whose evidence is known."""
    made = []
    async with retrieval.runtime(dsn, vectors) as (rt, caller):
        for talk in talks:
            await retrieval.tell(rt, caller, talk, view)
            node = And((Condition("user_id", Operator.EQ, f"{talk.name}-{view}"),))
            texts = ((f"{turn.speaker}: {turn.text}" if view == "said" else turn.text, turn.id) for turn in talk.turns)
            turns = {text[:2000]: turn_id for text, turn_id in texts}
            for question in talk.asked():
                query = search.Query(question.text, node, top_k=max(measures.KS))
                made.append(Asked(question, await search.gather(rt, caller, query), turns))
    return made


def rows(asked: Sequence[Asked], ranker: Ranker, model: rank.Model) -> list[dict[str, float]]:
    """Return the measures of each question."""
    return [
        measures.of_ranking([one.turns[c.text] for c in ranker(one.pool, model)[:50]], one.question.evidence)
        for one in asked
    ]


def line(name: str, found: list[dict[str, float]], whole: list[dict[str, float]]) -> str:
    """Return a row of the table."""
    shown = ("recall@5", "recall@10", "recall@20", "mrr")
    means = " | ".join(f"{100 * np.mean([row[measure] for row in found]):.1f}" for measure in shown)
    pairs = zip(found, whole, strict=True)
    lost: npt.NDArray[np.float64] = np.array([100 * (one["recall@10"] - other["recall@10"]) for one, other in pairs])
    picks = np.random.default_rng(7).integers(0, len(lost), (1000, len(lost)))
    low, high = np.percentile(lost[picks].mean(axis=1), [2.5, 97.5])
    return f"| {name} | {means} | {lost.mean():+.2f} ({low:+.1f} to {high:+.1f}) |"


async def ablate(dsn: str, talks: Sequence[conversations.Conversation], view: str, vectors: Path) -> None:
    """Print the table."""
    model = rank.model("multilingual-e5-small-q4")
    asked = await pools(dsn, talks, view, vectors)
    print(f"\n## view {view}: {len(talks)} conversations, {len(asked)} questions\n")
    print("| ranking | R@5 | R@10 | R@20 | MRR | R@10 against the whole (95 %) |\n|---|---|---|---|---|---|")
    whole = rows(asked, weighted(rank.WEIGHTS), model)
    for name, ranker in rankers().items():
        print(line(name, rows(asked, ranker, model), whole), flush=True)
    with switched(rank, "CENTRED", 0.0):
        print(line("without centring", rows(asked, weighted(rank.WEIGHTS), model), whole), flush=True)
    for name, (module, constant, value) in BEFORE_RANKING.items():
        with switched(module, constant, value):
            other = await pools(dsn, talks, view, vectors)
        print(line(f"without {name}", rows(other, weighted(rank.WEIGHTS), model), whole), flush=True)


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--view", choices=["said", "text"], default="text")
    parser.add_argument("--limit", type=int, default=None, help="only the first N conversations")
    parser.add_argument("--vectors", type=Path, default=retrieval.VECTORS, help="where embeddings are kept")
    given = parser.parse_args()
    with retrieval.server() as dsn:
        asyncio.run(ablate(dsn, conversations.read(given.file)[: given.limit], given.view, given.vectors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
