"""Behind a pooler that lends its few sessions a transaction at a time, with the setting for it, nothing is different."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx
import pytest

from app.config import Settings
from app.runtime import Runtime
from app.store import db as databases
from tests import factories, fakes
from tests.conftest import FreshDatabase
from tests.field.conftest import ADD, LIST, SEARCH, Service, said
from tests.pooler import Pooler

SESSIONS, CLIENTS = 2, 8  # of the server; of the pooler


def through(dsn: str, port: int) -> str:
    """Return the address of a database by another port."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{port}"))


@pytest.fixture
async def pooler(fresh_db: FreshDatabase) -> AsyncIterator[Pooler]:
    """Run a pooler before a database of the test's own."""
    async with Pooler(urlsplit(fresh_db.dsn).port or 0, sessions=SESSIONS) as pooler:
        yield pooler


@pytest.fixture
async def rt(
    settings: Settings,
    fresh_db: FreshDatabase,
    pooler: Pooler,
    embedder: fakes.FakeEmbedder,
    queue: fakes.RecordingQueue,
) -> AsyncIterator[Runtime]:
    """Return a runtime that reaches its database through the pooler."""
    db = await databases.Database.open(through(fresh_db.dsn, pooler.port), pool_size=CLIENTS, statement_cache=0)
    yield Runtime(settings=settings, db=db, queue=queue, llm=None, embedder=embedder)
    await db.close()


@asynccontextmanager
async def tenant(rt: Runtime, statuses: Counter[int]) -> AsyncIterator[Service]:
    """Return the service as a new project knows it; each answer is counted by its status."""

    async def noted(response: httpx.Response) -> None:
        statuses[response.status_code] += 1

    async with rt.db.transaction(None) as conn:
        project = await factories.make_project(conn)
    headers = {"Authorization": f"Token {await factories.make_key(rt, project)}"}
    transport = httpx.ASGITransport(app=factories.make_app(rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://memoryd.test", headers=headers) as client:
        client.event_hooks = {"response": [noted]}
        yield Service(client, rt)


async def traffic(service: Service, colour: str) -> None:
    """Ask for a bit of everything, and see one's own memories alone."""
    client = service.client
    for turn in range(25):
        kept, gone = await service.add(f"{colour} {turn} kept", f"{colour} {turn} gone", user_id="alice")
        await client.post(ADD, json={**said(f"I moved to {colour}burg {turn}."), "user_id": "bob"})
        await client.put(f"/v1/memories/{kept}/", json={"metadata": {"turn": turn}})
        await client.delete(f"/v1/memories/{gone}/")
        await client.get(f"/v1/memories/{kept}/history/")
        await client.post(LIST, json={"filters": {"user_id": "bob"}})
        await client.get("/v1/events/")
        await client.get("/v1/entities/")
        await client.delete("/v1/memories/", params={"user_id": "nobody"})
        found = await service.find(SEARCH, {"user_id": "alice"}, colour)
        assert {memory["memory"].split()[0] for memory in found} == {colour}
        assert len(found) == turn + 1


async def test_five_hundred_mixed_requests_of_two_projects_are_answered(rt: Runtime, pooler: Pooler) -> None:
    statuses: Counter[int] = Counter()
    async with tenant(rt, statuses) as red, tenant(rt, statuses) as blue:
        await asyncio.gather(traffic(red, "Red"), traffic(blue, "Blue"))
        await rt.queue.drain(rt)  # type: ignore[attr-defined]
        for service, name in ((red, "Redburg"), (blue, "Blueburg")):
            texts = await service.list({"user_id": "bob"}, page_size=100)
            assert len(texts) == 25
            assert all(name in text for text in texts)
    assert set(statuses) == {200}
    assert statuses.total() >= 500
    assert pooler.transactions >= 500


async def test_without_the_setting_a_session_is_asked_for_what_another_was_told(
    fresh_db: FreshDatabase, pooler: Pooler
) -> None:
    ours: list[Any] = [await asyncpg.connect(through(fresh_db.dsn, pooler.port)) for _ in range(2 * SESSIONS)]

    async def ask() -> None:
        for _ in range(20):
            await asyncio.gather(*(conn.fetchval("SELECT $1::int", 1) for conn in ours))

    with pytest.raises((asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)):
        await ask()
    for conn in ours:
        conn.terminate()
