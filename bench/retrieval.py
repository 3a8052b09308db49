"""How often a search finds the turns that hold the answer: every turn one memory, every question one search.

    python -m bench.retrieval FILE [--view said|text|both] [--limit N] [--vectors FILE]

FILE is a conversation file of LoCoMo (.json) or an archive of BEAM (.tar.gz). Runs in this process, through the add's own
preparation, the store and the search verb, against an embedded PostgreSQL that is thrown away.

View `said` has the speaker's name in the text; view `text` leaves it to the message's name.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import numpy as np
import uuid_utils.compat as uuids

from app import config, queue
from app.domain import drafts, remember, search
from app.model import And, Caller, Condition, Message, Operator, Owners, ProjectSettings
from app.providers import embedder
from app.runtime import Runtime
from app.servers.postgres import PostgresServer
from app.store import db as databases
from app.store import messages, migrate, orgs, scopes
from bench import cached, conversations, measures

VECTORS = Path(tempfile.gettempdir()) / "memoryd-bench-vectors.sqlite"


@contextmanager
def server() -> Iterator[str]:
    """Run an empty PostgreSQL; return its address."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-bench-"))
    folder.chmod(0o711)
    made = PostgresServer(folder / "postgres", settings={"fsync": "off", "synchronous_commit": "off"})
    try:
        made.start()
        yield made.dsn
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def runtime(dsn: str, vectors: Path) -> AsyncIterator[tuple[Runtime, Caller]]:
    """Open a runtime over a migrated database, with a project in it."""
    await migrate.migrate(dsn)
    database = await databases.Database.open(dsn, pool_size=4, statement_cache=256)
    embed = cached.CachedEmbedder(embedder.EmbeddedModel(), vectors)
    async with database.transaction(None) as conn:
        organization = await orgs.insert_organization(conn, name="bench")
        project = await orgs.insert_project(conn, organization.id, name="bench", settings=ProjectSettings())
    rt = Runtime(settings=config.load(), db=database, queue=queue.SilentQueue(), llm=None, embedder=embed)
    try:
        yield rt, Caller(project=project, key_id=uuids.uuid7(), email="bench@localhost")
    finally:
        await embed.close()
        await database.close()


async def tell(rt: Runtime, caller: Caller, talk: conversations.Conversation, view: str) -> None:
    """Store every turn as an `infer: false` add does, a session at a time."""
    project_id, owners = caller.project.id, Owners(user_id=f"{talk.name}-{view}")
    before: Message | None = None
    for said_at, turns in itertools.groupby(talk.turns, key=lambda turn: turn.said_at):
        shared = remember.Shared(uuids.uuid7(), said_at, None, immutable=False, expiration_date=None)
        async with rt.db.transaction(project_id) as conn:
            scope = await scopes.ensure(conn, project_id, owners)
            said = [
                Message(
                    role=turn.role,
                    content=f"{turn.speaker}: {turn.text}" if view == "said" else turn.text,
                    name=turn.speaker,
                    index=index,
                    id=uuids.uuid7(),
                    said_at=said_at,
                )
                for index, turn in enumerate(turns)
            ]
            made = drafts.of_messages(said, before=before, scope=scope, observed_at=said_at)
            await messages.insert_many(conn, project_id, scope.id, shared.event_id, said)
            await remember.store(rt, conn, project_id, await remember.prepare(rt, made, shared))
        before = said[-1]


async def ask(
    rt: Runtime, caller: Caller, talk: conversations.Conversation, view: str, report: measures.Report
) -> list[float]:
    """Ask the questions whose evidence is known; return the milliseconds of each search."""
    node = And((Condition("user_id", Operator.EQ, f"{talk.name}-{view}"),))
    turn_of = {(f"{turn.speaker}: {turn.text}" if view == "said" else turn.text): turn.id for turn in talk.turns}
    took = []
    for question in talk.asked():
        started = time.perf_counter()
        hits = await search.run(rt, caller, search.Query(question.text, node, top_k=max(measures.KS), threshold=0.0))
        took.append(1000 * (time.perf_counter() - started))
        report.add(question.kind, measures.of_ranking([turn_of[hit.memory.text] for hit in hits], question.evidence))
    return took


async def measure(dsn: str, talks: list[conversations.Conversation], views: list[str], vectors: Path) -> None:
    """Print one table a view."""
    async with runtime(dsn, vectors) as (rt, caller):
        for view in views:
            report, took = measures.Report(), []
            for talk in talks:
                await tell(rt, caller, talk, view)
                took += await ask(rt, caller, talk, view, report)
            p50, p95 = np.percentile(took, [50, 95])
            print(f"\n## view {view}: {len(talks)} conversations, search p50 {p50:.1f} ms, p95 {p95:.1f} ms\n")
            print(report.table(), flush=True)


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--view", choices=["said", "text", "both"], default="both")
    parser.add_argument("--limit", type=int, default=None, help="only the first N conversations")
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="where embeddings are kept between runs")
    given = parser.parse_args()
    views = ["said", "text"] if given.view == "both" else [given.view]
    talks = conversations.read(given.file)[: given.limit]
    with server() as dsn:
        asyncio.run(measure(dsn, talks, views, given.vectors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
