"""How much of what is not worth remembering is stored without a model, and how much of what is worth it is lost.

    python -m bench.junk [FILE …] [--show]

Each FILE (default: bench/data/junk*.json) holds messages as they come through the add of an agent: prompts, output of tools, code,
logs, thanks, requests, advice, memories told again, and true facts hidden among them. They are added eight at a time. A
junk message counts as stored when a fact names it as its source; a fact is kept when one stored fact has all words of one
entry of `wants`. Prints both, and what was wrong with `--show`. A set flatters the rules as soon as it was looked at: at first sight
27, 24 and 17 % of the junk messages of the second, third and fourth set were stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.domain import extract
from app.domain.conversation import Conversation
from app.model import Message

DATA = Path(__file__).resolve().parent / "data" / "junk.json"
CHUNK = 8  #: messages of one add
EARLIER = 10  #: that an add sees of those before
SAID_AT = datetime(2026, 11, 30, 9, tzinfo=UTC)


async def stored(rows: list[dict[str, Any]]) -> dict[int, list[str]]:
    """Return the facts by the number of the message that they come from."""
    said = [Message(row["role"], row["content"], None, at) for at, row in enumerate(rows)]
    found: dict[int, list[str]] = defaultdict(list)
    for start in range(0, len(said), CHUNK):
        chunk = said[start : start + CHUNK]
        heard = tuple(said[max(0, start - EARLIER) : start])
        talked = Conversation(tuple(chunk), SAID_AT, earlier=heard)
        for fact in (await extract.facts(None, talked, window_tokens=6000)).facts:
            found[fact.sources[0].message_index].append(fact.text)
    return found


def is_kept(wants: list[list[str]], facts: list[str]) -> bool:
    """Tell whether one of the facts has all words of one entry."""
    return any(all(word.lower() in fact.lower() for word in entry) for entry in wants for fact in facts)


def count(rows: list[dict[str, Any]], *, show: bool = False) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return by kind: the messages, those that were treated wrongly, and the facts that were made of them."""
    found = asyncio.run(stored(rows))
    total, wrong, facts = Counter(row["kind"] for row in rows), Counter[str](), Counter[str]()
    for at, row in enumerate(rows):
        got = found.get(at, [])
        bad = not is_kept(row["wants"], got) if row["kind"] == "fact" else bool(got)
        wrong[row["kind"]] += bad
        facts[row["kind"]] += len(got)
        if bad and show:
            print(f"{row['kind']:9} {row['role']:9} {row['content'][:160]!r}\n          -> {got}")
    return total, wrong, facts


def read(file: Path) -> list[dict[str, Any]]:
    """Return the messages of a set."""
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["messages"]
    return rows


def main() -> int:
    """Read the command line, add everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", default=sorted(DATA.parent.glob("junk*.json")))
    parser.add_argument(
        "--show", action="store_true", help="print the junk that was stored and the facts that were lost"
    )
    given = parser.parse_args()
    total, wrong, facts = Counter[str](), Counter[str](), Counter[str]()
    for file in given.files:
        for sums, part in zip((total, wrong, facts), count(read(file), show=given.show), strict=True):
            sums.update(part)
    print("\n| kind | messages | stored | facts of them |\n|---|---|---|---|")
    for kind in sorted(set(total) - {"fact"}):
        print(f"| {kind} | {total[kind]} | {wrong[kind]} | {facts[kind]} |")
    junk = total.total() - total["fact"]
    lost, spoiled, made = wrong["fact"], wrong.total() - wrong["fact"], facts.total() - facts["fact"]
    print(f"| **all junk** | {junk} | {spoiled} ({100 * spoiled / junk:.1f} %) | {made} |")
    print(f"\nFacts kept: {total['fact'] - lost} of {total['fact']} ({100 - 100 * lost / total['fact']:.1f} %).")
    print(f"Of {facts.total()} stored facts {made} are junk ({100 * made / max(facts.total(), 1):.1f} %).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
