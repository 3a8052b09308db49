"""Work beyond what a project may have waiting is refused before it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app import config
from app.domain import backlog
from app.model import Project
from app.runtime import Runtime
from app.store import events
from tests import factories, fakes

LIMIT = 3
ROUTES = {
    "/v3/memories/add/": {"messages": "I like tea.", "user_id": "u1"},
    "/v1/memories/": {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "u1"},
    "/v1/exports/": {"schema": {"type": "object", "properties": {}}, "filters": {"user_id": "u1"}},
}


@pytest.fixture
def settings(settings: config.Settings) -> config.Settings:
    """Let few events wait."""
    return settings.model_copy(update={"max_pending": LIMIT})


@pytest.fixture(autouse=True)
async def anew() -> AsyncIterator[None]:
    """Remember no backlog."""
    backlog.forget()
    yield
    backlog.forget()


async def fill(client: httpx.AsyncClient) -> list[httpx.Response]:
    body = ROUTES["/v3/memories/add/"]
    return [await client.post("/v3/memories/add/", json=body) for _ in range(LIMIT + 1)]


@pytest.mark.parametrize("route", ROUTES)
async def test_a_full_backlog_is_429_with_whole_seconds_to_wait_and_nothing_is_stored(
    client: httpx.AsyncClient, runtime: Runtime, project: Project, queue: fakes.RecordingQueue, route: str
) -> None:
    assert [answer.status_code for answer in await fill(client)] == [200] * LIMIT + [429]
    refused = await client.post(route, json=ROUTES[route])
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert "MEMORYD_MAX_PENDING" in refused.json()["detail"]
    async with runtime.db.acquire(project.id) as conn:
        assert (await events.list_page(conn, project.id, limit=10))[0] == LIMIT
    assert len(queue.rung) == LIMIT


async def test_there_is_room_again_once_the_backlog_is_worked_off(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "CHECK_S", 0.0)
    assert (await fill(client))[-1].status_code == 429
    await queue.drain(runtime)
    assert (await client.post("/v3/memories/add/", json=ROUTES["/v3/memories/add/"])).status_code == 200


async def test_other_projects_and_direct_imports_and_searches_go_on(
    client: httpx.AsyncClient, runtime: Runtime, conn: Any
) -> None:
    assert (await fill(client))[-1].status_code == 429
    body: dict[str, Any] = ROUTES["/v3/memories/add/"]
    assert (await client.post("/v3/memories/add/", json={**body, "infer": False})).status_code == 200
    searched = await client.post("/v3/memories/search/", json={"query": "tea", "filters": {"user_id": "u1"}})
    assert searched.status_code == 200
    other = await factories.make_key(runtime, await factories.make_project(conn))
    elsewhere = await client.post("/v3/memories/add/", json=body, headers={"Authorization": f"Token {other}"})
    assert elsewhere.status_code == 200


async def test_without_a_limit_nothing_is_counted(runtime: Runtime, project: Project, conn: Any) -> None:
    rt = replace(runtime, settings=runtime.settings.model_copy(update={"max_pending": 0}))
    for _ in range(LIMIT * 2):
        await backlog.require_room(rt, project)
    assert backlog._rooms == {}


async def test_the_backlog_is_counted_through_its_index_and_no_further_than_the_limit(
    conn: Any, project: Project
) -> None:
    for number in range(5):
        await events.insert(conn, project.id, factories.uuid7(), "ADD", {"n": number})
    assert await events.count_pending(conn, project.id, most=3) == 3
    assert await events.count_pending(conn, project.id, most=30) == 5
    async with conn.transaction():
        await conn.execute("SET LOCAL enable_seqscan = off")
        plan = await conn.fetch("EXPLAIN " + events._COUNT_PENDING, project.id, 3, [])
    assert "events_due" in str(plan)
