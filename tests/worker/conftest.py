"""A laboratory: a project, runtimes over its database, and what tests of adds and workers do with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from app import config
from app.domain import add
from app.model import INTERNAL_KINDS, Caller, Event, Memory, Message, Owners, Project, ProjectSettings, Status
from app.runtime import Runtime
from app.store import claims, events, memories
from app.store.db import Database
from tests import factories, fakes
from tests.conftest import FreshDatabase

FAST = {"lease_s": 60.0, "sweep_s": 0.05, "drain_s": 5.0, "retry_delays_s": (0.01, 0.01)}


class Embedder(fakes.FakeEmbedder):
    """Fails, when told to, for what is going to be stored only."""

    async def embed_query(self, text: str) -> Any:
        return fakes.vector(text)


class Lab:
    """A project in a database, and the few things that tests of adds and workers do with it."""

    def __init__(self, db: Database, project: Project, data: Path) -> None:
        self.db, self.project, self._data = db, project, data
        self.embedder = Embedder()
        self.queue = fakes.RecordingQueue()

    def runtime(self, *, llm: Any = None, db: Database | None = None, **settings: Any) -> Runtime:
        """Return a runtime over the database, with short waits."""
        chosen = config.load(data=self._data, **(FAST | settings))
        return Runtime(chosen, db or self.db, self.queue, llm, self.embedder)

    def caller(self, project: Project | None = None) -> Caller:
        return Caller(project or self.project, uuid4(), "test@example.com")

    async def add(self, rt: Runtime, *said: str, project: Project | None = None, **request: Any) -> add.Accepted:
        """Accept an add of these texts, said by user and assistant in turn; alice's unless owners are named."""
        roles = ("user", "assistant")
        turns = tuple(Message(roles[index % 2], text, index=index) for index, text in enumerate(said))
        values: dict[str, Any] = {"messages": turns, "owners": Owners(user_id="alice")}
        key = request.pop("idempotency_key", None)
        return await add.accept(rt, self.caller(project), add.Request(**(values | request)), idempotency_key=key)

    async def claim(self, rt: Runtime, kind: str = "ADD") -> Event:
        """Claim the next event of a kind; those of other kinds that were due before stay with a worker that is busy."""
        while True:
            async with self.db.acquire(None) as conn:
                event = await claims.claim(conn, lease_s=rt.settings.lease_s)
            assert event is not None, f"no {kind} is due"
            if event.kind == kind:
                return event

    async def event(self, accepted: add.Accepted | Event) -> Event:
        """Return the event as it is stored now."""
        event = accepted.event if isinstance(accepted, add.Accepted) else accepted
        async with self.db.acquire(event.project_id) as conn:
            return await events.get(conn, event.project_id, event.id)

    async def memories(self, project: Project | None = None) -> list[Memory]:
        """Return every memory of the project in order of acceptance."""
        project_id = (project or self.project).id
        async with self.db.acquire(project_id) as conn:
            ids = [row["id"] for row in await conn.fetch("SELECT id FROM memories WHERE project_id = $1", project_id)]
            found = await memories.get_many(conn, project_id, ids)
        return sorted(found.values(), key=lambda memory: (memory.created_at, memory.id))

    async def count(self, table: str) -> int:
        """Return how many rows a table has; of events, how many were requested."""
        where = "WHERE kind <> ALL ($1::text[])" if table == "events" else "WHERE $1::text[] IS NOT NULL"
        async with self.db.acquire(None) as conn:
            return int(await conn.fetchval(f"SELECT count(*) FROM {table} {where}", list(INTERNAL_KINDS)))

    async def execute(self, sql: str, *args: Any) -> None:
        async with self.db.acquire(None) as conn:
            await conn.execute(sql, *args)

    async def is_done(self, *accepted: add.Accepted) -> bool:
        return all([(await self.event(item)).status in (Status.SUCCEEDED, Status.FAILED) for item in accepted])


async def eventually(holds: Callable[[], Awaitable[bool]], *, within_s: float = 20.0) -> None:
    """Return once `holds` does; fail after `within_s`."""
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110 - the other side is a database or a process
            await asyncio.sleep(0.01)


def facts(*texts: str, speaker: str = "user") -> dict[str, Any]:
    """Return what a chat model answers that found these facts, without a word about where."""
    return {"facts": [{"text": text, "speaker": speaker} for text in texts]}


@pytest.fixture
def lab(db: Database, project: Project, tmp_path: Path) -> Lab:
    """Return a laboratory over the rolled-back connection: for one thing at a time."""
    return Lab(db, project, tmp_path)


@pytest.fixture
async def fresh_lab(fresh_db: FreshDatabase, tmp_path: Path) -> Lab:
    """Return a laboratory over a database of the test's own: for workers and other things that happen at once."""
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
    return Lab(fresh_db.db, project, tmp_path)


@pytest.fixture
async def other_project(lab: Lab) -> Project:
    """Return a second project, which keeps the memories of a user and an agent together."""
    async with lab.db.transaction(None) as conn:
        return await factories.make_project(conn, settings=ProjectSettings(split_by_attribution=False))
