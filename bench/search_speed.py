"""What a search costs beyond what it cannot do without, and how that grows.

    python -m bench.search_speed [--rounds N] [--questions N] [--elsewhere N]

Starts its own PostgreSQL and two services, each over a database of its own, and throws them away:

  alone   one user with 1,000 memories
  crowd   the same user; another with 20,000; and 100,000 memories of 1,000 others

Every round asks all of them in turns, one request at a time, so that a ratio's two sides come from the same minute. Each
question is new, so that no cache answers it. `floor` is what no search can do without: embedding the question (in this
process, the same engine), the service's own statements sent again by one plain connection, and a request that does nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from app import config, queue
from app.domain import access, search
from app.model import And, Caller, Condition, Operator
from app.providers import embedder as embedders
from app.runtime import Runtime
from app.store import db as databases
from app.store import migrate
from bench import bulk, load, texts
from bench.ready_made import ReadyMade
from bench.stage import Program, Stage, run

USER, LARGE_USER = "ada", "bela"
_SEARCH, _LIST = "/v3/memories/search/", "/v3/memories/?page=1&page_size=50"


@dataclass
class Place:
    """A service and its database."""

    dsn: str
    port: int
    key: str
    api: Program
    rt: Runtime
    caller: Caller


async def prepare(stage: Stage, name: str, sizes: dict[str, int], model: str) -> tuple[str, str]:
    """Make a database with the memories of these users; return its address and a key."""
    admin = await databases.connect(stage.postgres.dsn)
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    dsn = urlunsplit(urlsplit(stage.postgres.dsn)._replace(path=f"/{name}"))
    await migrate.migrate(dsn)
    db = await databases.Database.open(dsn, pool_size=2, statement_cache=0)
    rt = Runtime(config.load(data=stage.folder), db, queue.SilentQueue(), None, ReadyMade())
    first = await access.bootstrap(rt)
    _, key = await access.create_key(rt, first.project, name="speed")
    await db.close()
    owner = await databases.connect(dsn)
    for number, (user, count) in enumerate(sizes.items()):
        await bulk.load(owner, first.project.id, texts.rows(user, count, seed=number), model=model)
    await owner.execute("VACUUM ANALYZE")
    await owner.close()
    return dsn, key


async def place(stack: AsyncExitStack, stage: Stage, dsn: str, key: str, embedder: embedders.Embedder) -> Place:
    """Start a service over a database, and open it in this process too."""
    api, port = stage.api(DATABASE_URL=dsn)
    database = await databases.Database.open(dsn, pool_size=2, statement_cache=256)
    stack.push_async_callback(database.close)
    rt = Runtime(config.load(data=stage.folder), database, queue.SilentQueue(), None, embedder)
    return Place(dsn, port, key, api, rt, await access.authenticate(rt, key))


class Recorded:
    """The statements of a search, and what they take when a plain connection sends them again."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    async def record(self, at: Place, text: str, user: str) -> None:
        """Note the statements of one search."""
        real = asyncpg.Connection.fetch

        async def fetch(conn: Any, sql: str, *args: Any, **options: Any) -> Any:
            self.calls.append((sql, args))
            return await real(conn, sql, *args, **options)

        asyncpg.Connection.fetch = fetch
        try:
            node = And((Condition("user_id", Operator.EQ, user),))
            await search.follow(at.rt, at.caller, search.Query(text, node))
        finally:
            asyncpg.Connection.fetch = real

    async def replay(self, conn: databases.Conn) -> tuple[float, float]:
        """Return the milliseconds of all statements, and of the one that compares vectors."""
        whole = vectors = 0.0
        for sql, args in self.calls:
            started = time.perf_counter()
            await conn.fetch(sql, *args)
            took = 1000 * (time.perf_counter() - started)
            whole += took
            vectors += took if "count(*) FROM near" in sql else 0.0
        return whole, vectors


async def ask(at: Place, text: str, user: str) -> float:
    """Return the milliseconds of one search through HTTP."""
    body = {"query": text, "filters": {"user_id": user}, "top_k": 20, "threshold": 0.0}
    return await _timed(at, load.request("POST", _SEARCH, body, key=at.key))


async def _timed(at: Place, data: bytes) -> float:
    status, body, took = await load.once(at.port, data)
    if status != 200:
        raise RuntimeError(f"{status}: {body[:300]!r}")
    return took


async def measure(stage: Stage, *, rounds: int, questions: int, elsewhere: int) -> str:
    """Return the table."""
    engine = embedders.EmbeddedModel()
    crowd_sizes = {USER: 1_000, LARGE_USER: 20_000, **{f"user {n}": 100 for n in range(elsewhere // 100)}}
    asked = texts.sentences(rounds * questions * 8, seed=4711)
    took: dict[str, list[float]] = defaultdict(list)
    per_round: dict[str, list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        made = [
            await prepare(stage, name, sizes, engine.model)
            for name, sizes in (("alone", {USER: 1_000}), ("crowd", crowd_sizes))
        ]
        alone, crowd = [await place(stack, stage, dsn, key, engine) for dsn, key in made]
        plain = await databases.connect(alone.dsn, statement_cache=256)
        stack.push_async_callback(plain.close)
        await plain.execute("SET plan_cache_mode = force_custom_plan; SET jit = off; SET random_page_cost = 1.1")
        for _ in range(rounds):
            now: dict[str, list[float]] = defaultdict(list)
            for _ in range(questions):
                await one(alone, crowd, plain, engine, asked, now)
            for name, values in now.items():
                took[name] += values
            for name, value in ratios({name: statistics.median(values) for name, values in now.items()}).items():
                per_round[name].append(value)
    await engine.close()
    return table(took, per_round)


async def one(
    alone: Place,
    crowd: Place,
    plain: databases.Conn,
    engine: embedders.Embedder,
    asked: Iterator[str],
    took: dict[str, list[float]],
) -> None:
    """Measure everything once."""
    took["hello"].append(await _timed(alone, load.request("GET", "/v1/ping/", key=alone.key)))
    started = time.perf_counter()
    await engine.embed_query(next(asked))
    took["embedding"].append(1000 * (time.perf_counter() - started))
    statements = Recorded()
    await statements.record(alone, next(asked), USER)
    await statements.replay(plain)  # prepared now, as they are in the service
    whole, vectors = await statements.replay(plain)
    took["statements"].append(whole)
    took["vectors only"].append(vectors)
    took["search, 1,000"].append(await ask(alone, next(asked), USER))
    took["search, 1,000 in a crowd"].append(await ask(crowd, next(asked), USER))
    took["search, 20,000"].append(await ask(crowd, next(asked), LARGE_USER))
    took["list page, 1,000"].append(await _timed(crowd, _listing(crowd, USER)))
    took["list page, all"].append(await _timed(crowd, _listing(crowd, "*")))


def _listing(at: Place, user: str) -> bytes:
    return load.request("POST", _LIST, {"filters": {"user_id": user}}, key=at.key)


def ratios(p50: dict[str, float]) -> dict[str, float]:
    """Return the ratios of one round's medians, by what they say."""
    floor = p50["embedding"] + p50["statements"] + p50["hello"]
    return {
        "search / floor": p50["search, 1,000"] / floor,
        "all statements / comparing vectors": p50["statements"] / p50["vectors only"],
        "search in a crowd / alone": p50["search, 1,000 in a crowd"] / p50["search, 1,000"],
        "search in 20,000 / in 1,000": p50["search, 20,000"] / p50["search, 1,000 in a crowd"],
        "list page of all / of one user": p50["list page, all"] / p50["list page, 1,000"],
    }


#: What each ratio may be at most.
BARS = {
    "search / floor": 1.3,
    "all statements / comparing vectors": 5.0,
    "search in a crowd / alone": 1.2,
    "search in 20,000 / in 1,000": 6.0,
    "list page of all / of one user": 2.0,
}


def table(took: dict[str, list[float]], per_round: dict[str, list[float]]) -> str:
    """Return the results."""
    lines = ["| what | p50 ms | p95 ms |", "|---|---|---|"]
    for name, values in took.items():
        cuts = statistics.quantiles(values, n=20)
        lines.append(f"| {name} | {statistics.median(values):.2f} | {cuts[18]:.2f} |")
    lines += ["", "| ratio (median of rounds) | seen | range | bar | |", "|---|---|---|---|---|"]
    for name, values in per_round.items():
        seen = statistics.median(values)
        verdict = "holds" if seen <= BARS[name] else "MISSED"
        lines.append(f"| {name} | {seen:.2f} | {min(values):.2f}–{max(values):.2f} | ≤ {BARS[name]} | {verdict} |")
    return "\n".join(lines)


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    parser.add_argument("--questions", type=int, default=30, help="a round (default 30)")
    parser.add_argument("--elsewhere", type=int, default=100_000, help="memories of other users (default 100,000)")
    given = parser.parse_args()
    with Stage() as stage:
        print(run(measure(stage, rounds=given.rounds, questions=given.questions, elsewhere=given.elsewhere)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
