"""How much of the answers a context holds that fits into a budget of tokens, against the best hits cut at that budget.

    python -m bench.context FILE [--view said|text] [--limit N] [--every N] [--vectors FILE]

FILE is a conversation file of LoCoMo. Every turn is a memory, every question with an answer one context a budget. Coverage
is the share of the distinct stems of the answer that stand in the block. Tokens are counted with o200k_base. `top k`: the
texts of the hits, a line each, as many as fit; `top k, dated`: each with its day in front.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC
from pathlib import Path

import numpy as np

from app.domain import context, search
from app.model import And, Caller, Condition, Hit, Operator
from app.providers import tokens
from app.runtime import Runtime
from bench import conversations, coverage, retrieval

BUDGETS = (250, 500, 1000)
WAYS = ("top k", "top k, dated", "context")


def cut(hits: list[Hit], budget: int, *, dated: bool) -> str:
    """Return the best hits as lines, as many as the budget holds whole."""
    block = ""
    for hit in hits:
        at = hit.memory.created_at.astimezone(UTC)
        day = f"[{at.day} {at:%B %Y}] " if dated else ""
        longer = f"{block}- {day}{hit.memory.text}\n"
        if tokens.count(longer) > budget:
            break
        block = longer
    return block


def share(answer: str, text: str) -> float:
    """Return the share of the answer's stems in a text."""
    wanted = coverage.stems(answer) or coverage.stems(answer, all_words=True)
    return len(wanted & coverage.stems(text, all_words=True)) / max(len(wanted), 1)


async def ask(
    rt: Runtime, caller: Caller, query: search.Query, answer: str, rows: dict[tuple[str, int], list[float]]
) -> None:
    """Answer one question in every way at every budget."""
    hits = await search.run(rt, caller, query)
    for budget in BUDGETS:
        made = await context.of(rt, caller, query, context.Wish(budget))
        assert made.tokens <= budget
        texts = (cut(hits, budget, dated=False), cut(hits, budget, dated=True), made.text)
        for way, text in zip(WAYS, texts, strict=True):
            rows.setdefault((way, budget), []).append(share(answer, text))


def table(rows: dict[tuple[str, int], list[float]]) -> str:
    """Return the means in percent with 95 % intervals by bootstrap, and the gain over the first way."""
    lines = ["| way | " + " | ".join(f"@{budget}" for budget in BUDGETS) + " |", "|---" * (1 + len(BUDGETS)) + "|"]
    picks = np.random.default_rng(7).integers(0, len(rows[WAYS[0], BUDGETS[0]]), (1000, len(rows[WAYS[0], BUDGETS[0]])))
    for way in WAYS:
        cells = []
        for budget in BUDGETS:
            values, plain = np.array(rows[way, budget]), np.array(rows[WAYS[0], budget])
            low, high = 100 * np.percentile(values[picks].mean(axis=1), [2.5, 97.5])
            gains = 100 * (values[picks].mean(axis=1) / plain[picks].mean(axis=1) - 1)
            least, most = np.percentile(gains, [2.5, 97.5])
            gain = 100 * (values.mean() / plain.mean() - 1)
            told = "" if way == WAYS[0] else f", {gain:+.1f} % ({least:+.1f} to {most:+.1f})"
            cells.append(f"{100 * values.mean():.1f} ({low:.1f}-{high:.1f}){told}")
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


async def measure(dsn: str, talks: list[conversations.Conversation], given: argparse.Namespace) -> None:
    """Print the table."""
    rows: dict[tuple[str, int], list[float]] = {}
    async with retrieval.runtime(dsn, given.vectors) as (rt, caller):
        for talk in talks:
            await retrieval.tell(rt, caller, talk, given.view)
            node = And((Condition("user_id", Operator.EQ, f"{talk.name}-{given.view}"),))
            answered = [question for question in talk.questions if question.answer]
            for question in answered[:: given.every]:
                query = search.Query(question.text, node, top_k=100, threshold=0.0)
                await ask(rt, caller, query, question.answer, rows)
    print(f"\n## view {given.view}: {len(rows[WAYS[0], BUDGETS[0]])} questions\n\n{table(rows)}", flush=True)


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--view", choices=["said", "text"], default="said")
    parser.add_argument("--limit", type=int, default=None, help="only the first N conversations")
    parser.add_argument("--every", type=int, default=1, help="only every Nth question")
    parser.add_argument(
        "--vectors", type=Path, default=retrieval.VECTORS, help="where embeddings are kept between runs"
    )
    given = parser.parse_args()
    talks = conversations.read(given.file)[: given.limit]
    with retrieval.server() as dsn:
        asyncio.run(measure(dsn, talks, given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
