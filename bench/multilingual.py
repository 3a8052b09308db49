"""Whether Chinese and Japanese questions find their memory as well as English ones do.

    python -m bench.multilingual [--vectors FILE]

`bench/data/exact_LANGUAGE.txt` has 60 questions a language, made up for this, alike in the three: each names a person, a
product, a place or a code that one memory holds, among 300 of as many fields of life. A question (`?`) is followed by its
memory (`=`) and by four others of its field (`-`). Memories are stored in an order by chance, a day apart, so that
neither their neighbours nor their sessions help. Printed for the whole ranking and for each large arm alone.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.domain import rank, search
from app.model import And, Condition, Operator
from bench import ablation, conversations, measures, retrieval

DATA = Path(__file__).parent / "data"
LANGUAGES = ("en", "zh", "ja")
FROM = datetime(2024, 1, 1, tzinfo=UTC)
WAYS = {
    "whole": ablation.weighted(rank.WEIGHTS),
    "keyword arm alone": ablation.weighted(replace(ablation.NOTHING, keyword=1.0, keyword_lookup=1.0)),
    "semantic arm alone": ablation.weighted(replace(ablation.NOTHING, semantic=1.0)),
}


def read(language: str) -> conversations.Conversation:
    """Read the questions and memories of a language."""
    asked: list[conversations.Question] = []
    texts: list[str] = []
    for line in (DATA / f"exact_{language}.txt").read_text(encoding="utf-8").splitlines():
        mark, text = line[:2], line[2:]
        if mark == "? ":
            asked.append(conversations.Question(text, language, frozenset({str(len(texts))})))
        else:
            texts.append(text)
    order = list(range(len(texts)))
    random.Random(5).shuffle(order)
    turns = [
        conversations.Turn(str(number), "", "user", FROM + timedelta(days=place), texts[number])
        for place, number in enumerate(order)
    ]
    return conversations.Conversation(language, turns, asked)


async def measure(dsn: str, vectors: Path) -> None:
    """Print the table."""
    print("| language | ranking | n | R@1 | R@5 | R@10 (95 %) | MRR |\n|---|---|---|---|---|---|---|")
    async with retrieval.runtime(dsn, vectors) as (rt, caller):
        for language in LANGUAGES:
            talk = read(language)
            await retrieval.tell(rt, caller, talk, "text")
            node = And((Condition("user_id", Operator.EQ, f"{language}-text"),))
            turns = {turn.text: turn.id for turn in talk.turns}
            queries = [search.Query(question.text, node) for question in talk.questions]
            pools = [await search.gather(rt, caller, query) for query in queries]
            for name, ranker in WAYS.items():
                report, first = measures.Report(), 0
                for question, pool in zip(talk.questions, pools, strict=True):
                    ranked = [turns[candidate.text] for candidate in ranker(pool, rank.model(rt.embedder.model))]
                    report.add(language, measures.of_ranking(ranked, question.evidence))
                    first += ranked[0] in question.evidence
                low, high = report.interval("recall@10")
                cells = (
                    f"{100 * first / len(queries):.1f}",
                    f"{report.mean('recall@5'):.1f}",
                    f"{report.mean('recall@10'):.1f} ({low:.1f}-{high:.1f})",
                    f"{report.mean('mrr'):.1f}",
                )
                print(f"| {language} | {name} | {len(queries)} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, default=retrieval.VECTORS, help="where embeddings are kept")
    given = parser.parse_args()
    with retrieval.server() as dsn:
        asyncio.run(measure(dsn, given.vectors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
