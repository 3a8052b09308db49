"""How search grows: files of memories are loaded with ready-made vectors, and their own questions are asked.

    python -m bench.scale FILE [FILE ...] [--rounds N] [--questions N]

FILE has a line a memory, user by user: {"user_id", "text", "metadata", "ts" (seconds since 1970), "needle"}. `needle` is
null, or {"kind": "exact" | "meaning", "question"}: a question whose answer this memory is; of kind `meaning` it shares no
word with it, so that only vectors find it. Each file gets a database of its own on one embedded PostgreSQL, which is thrown
away. The files are asked in turns, so that their times come from the same minutes; ratios are to the first file.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import uuid_utils.compat as uuids

from app import config, queue
from app.domain import search
from app.model import And, Caller, Condition, Operator, ProjectSettings
from app.runtime import Runtime
from app.store import db as databases
from app.store import migrate, orgs
from bench import bulk, retrieval
from bench.ready_made import ReadyMade

TOP_K = 20
_SIZES = """
SELECT relname, pg_total_relation_size(oid) AS bytes FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY bytes DESC LIMIT 4
"""


@dataclass
class Loaded:
    """A file in its database."""

    name: str
    rt: Runtime
    caller: Caller
    rows: int
    load_s: float
    questions: list[bulk.Row]
    sizes: dict[str, int] = field(default_factory=dict)  # bytes by table, indexes included
    took_ms: list[float] = field(default_factory=list)
    found: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))


async def load(stack: AsyncExitStack, server_dsn: str, path: Path, questions: int) -> Loaded:
    """Load a file into a new database."""
    name = f"scale_{path.stem}"
    admin = await databases.connect(server_dsn)
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    dsn = urlunsplit(urlsplit(server_dsn)._replace(path=f"/{name}"))
    await migrate.migrate(dsn)
    database = await databases.Database.open(dsn, pool_size=4, statement_cache=256)
    stack.push_async_callback(database.close)
    async with database.transaction(None) as conn:
        organization = await orgs.insert_organization(conn, name="bench")
        project = await orgs.insert_project(conn, organization.id, name="bench", settings=ProjectSettings())
    embed, started = ReadyMade(), time.perf_counter()
    owner = await databases.connect(dsn)
    rows = await bulk.load(owner, project.id, bulk.read(path))
    took = time.perf_counter() - started
    await owner.execute("VACUUM ANALYZE")
    sizes = {row["relname"]: row["bytes"] for row in await owner.fetch(_SIZES)}
    await owner.close()
    asked = [row for row in bulk.read(path) if row.question]
    chosen = random.Random(1).sample(asked, min(questions, len(asked)))
    chosen += [row for row in asked if row.by_meaning and row not in chosen][:questions]
    for row in chosen:
        if row.by_meaning and row.question:
            embed.mean(f"{row.question} ({row.user_id})", row.text)
    rt = Runtime(settings=config.load(), db=database, queue=queue.SilentQueue(), llm=None, embedder=embed)
    caller = Caller(project=project, key_id=uuids.uuid7(), email="bench@localhost")
    print(f"{path.name}: {rows:,} memories in {took:.0f} s", flush=True)
    return Loaded(path.stem, rt, caller, rows, took, chosen, sizes)


async def ask(loaded: Loaded, row: bulk.Row) -> None:
    """Ask one question, and note how long it took and whether the answer was among the hits."""
    assert row.question is not None
    text = f"{row.question} ({row.user_id})" if row.by_meaning else row.question
    node = And((Condition("user_id", Operator.EQ, row.user_id),))
    started = time.perf_counter()
    hits = await search.run(loaded.rt, loaded.caller, search.Query(text, node, top_k=TOP_K, threshold=0.0))
    loaded.took_ms.append(1000 * (time.perf_counter() - started))
    loaded.found["meaning" if row.by_meaning else "exact"].append(any(hit.memory.text == row.text for hit in hits))


def table(files: list[Loaded]) -> str:
    """Return the results, a line a file."""
    lines = [
        "| file | memories | load rows/s | MB | p50 ms | p95 ms | p50 ratio | p95 ratio | exact found | by meaning |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    first = np.percentile(files[0].took_ms, [50, 95])
    for item in files:
        p50, p95 = np.percentile(item.took_ms, [50, 95])
        shares = [f"{sum(f)} of {len(f)}" if (f := item.found[kind]) else "–" for kind in ("exact", "meaning")]
        lines.append(
            f"| {item.name} | {item.rows:,} | {item.rows / item.load_s:,.0f} | {sum(item.sizes.values()) / 1e6:,.0f} | {p50:.1f} "
            f"| {p95:.1f} | {p50 / first[0]:.2f} | {p95 / first[1]:.2f} | {shares[0]} | {shares[1]} |"
        )
    return "\n".join(lines)


async def measure(server_dsn: str, paths: list[Path], *, rounds: int, questions: int) -> None:
    """Load the files, ask them in turns, print the table."""
    async with AsyncExitStack() as stack:
        files = [await load(stack, server_dsn, path, questions) for path in paths]
        for number in range(rounds):
            for item in files:
                part = item.questions[number::rounds]
                for row in part[:3]:  # warm
                    await ask(item, row)
                    item.took_ms.pop()
                for row in part:
                    await ask(item, row)
        for item in files:
            print(f"{item.name}: " + ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in item.sizes.items()))
        print(table(files))


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each file (default 5)")
    parser.add_argument("--questions", type=int, default=300, help="of each file (default 300)")
    given = parser.parse_args()
    with retrieval.server() as dsn:
        asyncio.run(measure(dsn, given.files, rounds=given.rounds, questions=given.questions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
