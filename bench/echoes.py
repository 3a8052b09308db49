"""Copies that recalled memories leave when they come back in what is added next: rounds of recall, then add.

    python -m bench.echoes [FILE] [--rounds N] [--vectors FILE]

FILE (default bench/data/junk.json) gives the facts. They are added without a model, in English and in Chinese; each round
asks for some of them and adds a conversation that shows what was found, in another dress each time: lists, tags, JSON,
quotes, sentences of the assistant. Prints how many memories there were before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from app.domain import add, search
from app.model import And, Caller, Condition, Message, Operator, Owners
from app.runtime import Runtime
from app.store import claims
from bench import junk, retrieval

USER = "echoes"
NODE = And((Condition("user_id", Operator.EQ, USER),))


def dressed(number: int, texts: list[str]) -> list[Message]:
    """Return a conversation that shows recalled texts in the dress of this round."""
    bullets = "\n".join(f"- {text}" for text in texts)
    forms = [
        ("user", f"<memories>\n{bullets}\n</memories>\n\nWhat should I do today?"),
        ("user", f"Relevant memories:\n{bullets}\n\nhi again"),
        ("user", "\n".join(f"{place}. {text} (score: 0.8{place})" for place, text in enumerate(texts, 1))),
        ("assistant", json.dumps({"results": [{"memory": text} for text in texts]}, ensure_ascii=False)),
        ("assistant", f"Here is what I remember:\n{bullets}"),
        ("assistant", " ".join(f'I remember: "{text}"' for text in texts)),
        ("user", "\n".join(texts)),
        ("assistant", "\n".join(f"You said that {text.removeprefix('User ')}" for text in texts)),
        ("user", f"相关记忆：\n{bullets}\n\n今晚吃什么好？"),
        ("assistant", "根据我的记忆：" + "；".join(text.replace("用户", "您") for text in texts)),
    ]
    role, content = forms[number % len(forms)]
    return [Message("user", "What do you know about me?", index=0), Message(role, content, index=1)]


async def told(rt: Runtime, caller: Caller, said: list[Message]) -> int:
    """Add messages as the service does; return the number of new memories."""
    await add.accept(rt, caller, add.Request(tuple(said), Owners(user_id=USER), timestamp=junk.SAID_AT))
    async with rt.db.acquire(None) as conn:
        event = await claims.claim(conn, lease_s=rt.settings.lease_s)
    while event is not None and event.kind != "ADD":  # the categories of what was added before
        async with rt.db.acquire(None) as conn:
            event = await claims.claim(conn, lease_s=rt.settings.lease_s)
    assert event is not None
    outcome = await add.process(rt, event)
    return getattr(outcome, "added", 0)


async def measure(dsn: str, facts: list[str], rounds: int, vectors: Path) -> int:
    """Print the counts; return the number of copies."""
    async with retrieval.runtime(dsn, vectors) as (rt, caller):
        before = 0
        for start in range(0, len(facts), junk.CHUNK):
            part = facts[start : start + junk.CHUNK]
            before += await told(rt, caller, [Message("user", text, index=at) for at, text in enumerate(part)])
        copies = 0
        for number in range(rounds):
            query = search.Query(facts[(number * 7) % len(facts)], NODE, top_k=5, threshold=0.0)
            hits = await search.run(rt, caller, query)
            new = await told(rt, caller, dressed(number, [hit.memory.text for hit in hits]))
            copies += new
            if new:
                found = await search.run(rt, caller, search.Query(query.text, NODE, top_k=100, threshold=0.0))
                newest = sorted(found, key=lambda hit: hit.memory.id, reverse=True)[:new]
                print(f"round {number} left {[hit.memory.text for hit in newest]}")
        print(
            f"{datetime.now(UTC):%Y-%m-%d}: {before} memories, {rounds} rounds of recall and add, {copies} more after them"
        )
    return copies


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=junk.DATA)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument(
        "--vectors", type=Path, default=retrieval.VECTORS, help="where embeddings are kept between runs"
    )
    given = parser.parse_args()
    rows = json.loads(given.file.read_text(encoding="utf-8"))["messages"]
    facts = [row["content"] for row in rows if row["kind"] == "fact" and row["role"] == "user"]
    with retrieval.server() as dsn:
        return int(asyncio.run(measure(dsn, facts, given.rounds, given.vectors)) > 0)


if __name__ == "__main__":
    sys.exit(main())
