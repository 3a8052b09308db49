"""Limits of a project: what it may do in a minute, and how much it may keep."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.domain import access, quota
from app.model import Project
from app.runtime import Runtime
from app.store.db import Conn
from tests import fakes

ADD = {"user_id": "alice", "messages": [{"role": "user", "content": "I like tea."}]}
SEARCH = {"query": "tea", "filters": {"user_id": "alice"}}
ADDS = (("/v3/memories/add/", ADD), ("/v1/memories/", ADD))
SEARCHES = (
    ("/v3/memories/search/", SEARCH),
    ("/v2/memories/search/", SEARCH),
    ("/v1/memories/search/", {"query": "tea", "user_id": "alice"}),
)


def path(project: Project) -> str:
    return f"/api/v1/orgs/organizations/{project.organization_public_id}/projects/{project.public_id}/"


@pytest.fixture
async def limit(client: httpx.AsyncClient, project: Project) -> Any:
    async def limit(**settings: int | None) -> httpx.Response:
        return await client.patch(path(project), json=settings)

    return limit


@pytest.fixture(autouse=True)
def one_minute(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Stop the clock of the limits in the middle of a minute; the test may set it."""
    clock = [1_800_000_030.0]

    class Stopped:
        time = staticmethod(lambda: clock[0])

    monkeypatch.setattr(quota, "time", Stopped)
    return clock


async def rows(conn: Conn) -> tuple[int, ...]:
    return tuple([
        await conn.fetchval(f"SELECT count(*) FROM {table}")
        for table in ("events", "scopes", "owners", "memories", "messages")
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "routes"), [("adds_per_minute", ADDS), ("searches_per_minute", SEARCHES)], ids=["adds", "searches"]
)
async def test_beyond_the_limit_is_429_with_the_headers_until_the_next_minute(
    client: httpx.AsyncClient,
    conn: Conn,
    queue: fakes.RecordingQueue,
    limit: Any,
    one_minute: list[float],
    setting: str,
    routes: tuple[tuple[str, Any], ...],
) -> None:
    assert (await limit(**{setting: 2})).status_code == 200
    for _ in range(2):
        assert (await client.post(routes[0][0], json=routes[0][1])).status_code == 200
    before, rung = await rows(conn), len(queue.rung)
    for route, body in routes:
        refused = await client.post(route, json=body)
        assert refused.status_code == 429, route
        assert refused.headers["retry-after"] == "30"
        assert refused.headers["x-ratelimit-limit"] == "2"
        assert refused.headers["x-ratelimit-remaining"] == "0"
        assert refused.headers["x-ratelimit-reset"] == "1800000060"
        assert setting in refused.json()["detail"]
    assert (await rows(conn), len(queue.rung)) == (before, rung)
    one_minute[0] += 30
    assert (await client.post(routes[0][0], json=routes[0][1])).status_code == 200


async def test_limits_of_one_kind_and_project_are_not_those_of_another(
    client: httpx.AsyncClient, limit: Any, runtime: Runtime, conn: Conn
) -> None:
    from tests import factories

    await limit(adds_per_minute=1)
    other = await factories.make_project(conn)
    headers = {"Authorization": f"Token {await factories.make_key(runtime, other)}"}
    for _ in range(3):
        await client.post("/v3/memories/add/", json=ADD)
        assert (await client.post("/v3/memories/search/", json=SEARCH)).status_code == 200
        assert (await client.post("/v3/memories/add/", json=ADD, headers=headers)).status_code == 200


async def test_nothing_is_limited_unless_somebody_says_so(client: httpx.AsyncClient, limit: Any) -> None:
    await limit(adds_per_minute=1, max_memories=1)
    await limit(adds_per_minute=None, max_memories=None)
    for _ in range(5):
        assert (await client.post("/v3/memories/add/", json=ADD)).status_code == 200


@pytest.mark.parametrize("infer", [True, False])
async def test_a_full_project_is_413_and_reads_and_deletes_go_on(
    client: httpx.AsyncClient, conn: Conn, limit: Any, infer: bool
) -> None:
    await limit(max_memories=2)
    stored = []
    for text in ("I like tea.", "I like cake."):
        sent = {**ADD, "messages": [{"role": "user", "content": text}], "infer": False}
        stored += (await client.post("/v3/memories/add/", json=sent)).json()["results"]
    before = await rows(conn)
    refused = await client.post("/v3/memories/add/", json={**ADD, "infer": infer})
    assert refused.status_code == 413
    assert "2 of at most 2" in refused.json()["detail"]
    assert "quota" in refused.json()["detail"]
    assert await rows(conn) == before
    assert (await client.post("/v3/memories/search/", json=SEARCH)).status_code == 200
    assert (await client.delete(f"/v1/memories/{stored[0]['id']}/")).status_code == 200
    assert (await client.post("/v3/memories/add/", json={**ADD, "infer": infer})).status_code == 200


async def test_the_repeat_of_an_accepted_add_is_answered_in_a_full_project(
    client: httpx.AsyncClient, limit: Any
) -> None:
    await limit(max_memories=1)
    sent: dict[str, Any] = {"json": {**ADD, "infer": False}, "headers": {"Idempotency-Key": "k1"}}
    first = await client.post("/v3/memories/add/", **sent)
    again = await client.post("/v3/memories/add/", **sent)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["event_id"] == first.json()["event_id"]


async def test_an_import_beyond_the_quota_stores_nothing(client: httpx.AsyncClient, conn: Conn, limit: Any) -> None:
    await limit(max_memories=1)
    items = [{"memory": text, "user_id": "alice"} for text in ("One.", "Two.")]
    assert (await client.post("/v1/import/", json={"memories": items})).status_code == 413
    assert (await client.post("/v1/import/", json={"memories": items[:1]})).status_code == 200
    assert await conn.fetchval("SELECT count(*) FROM memories") == 1


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many", 10**13])
async def test_a_limit_is_a_whole_number_from_one(limit: Any, value: Any) -> None:
    for setting in ("adds_per_minute", "searches_per_minute", "max_memories"):
        assert (await limit(**{setting: value})).status_code == 400


async def test_a_plain_key_does_not_lift_the_limits_of_its_project(
    client: httpx.AsyncClient, runtime: Runtime, project: Project, limit: Any
) -> None:
    await limit(max_memories=7)
    _, secret = await access.create_key(runtime, project, name="plain", role="member")
    headers = {"Authorization": f"Token {secret}"}
    refused = await client.patch(path(project), json={"max_memories": None, "decay": True}, headers=headers)
    assert refused.status_code == 403
    shown = (await client.get(path(project))).json()
    assert (shown["max_memories"], shown["decay"]) == (7, False)
