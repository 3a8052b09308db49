"""A database that swallows what it is sent: nobody waits for it for long, and everybody is told to come again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest

from app import config
from app.api import service
from app.domain import access
from app.runtime import Runtime
from app.store import db as databases
from tests import factories, fakes
from tests.conftest import FreshDatabase
from tests.faults.proxy import Proxy

STATEMENT_S, ACQUIRE_S, SLACK_S = 0.5, 0.4, 2.0


@pytest.fixture
def proxy(fresh_db: FreshDatabase) -> Iterator[Proxy]:
    with Proxy(urlsplit(fresh_db.dsn).port or 0) as proxy:
        yield proxy


@pytest.fixture
async def client(
    fresh_db: FreshDatabase, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of an API that reaches its database through the proxy, with two connections and short limits."""
    monkeypatch.setattr(databases, "_ACQUIRE_S", ACQUIRE_S)
    monkeypatch.setattr(databases, "_UNHEARD_S", 0.1)
    db = await databases.Database.open(
        _through(fresh_db.dsn, proxy.port), pool_size=2, statement_cache=256, statement_s=STATEMENT_S
    )
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
    rt = Runtime(config.load(data=tmp_path), db, fakes.RecordingQueue(), None, fakes.FakeEmbedder())
    secret = await factories.make_key(replace(rt, db=fresh_db.db), project)
    access.forget()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=factories.make_app(rt)),
        base_url="http://memoryd.test",
        headers={"Authorization": f"Token {secret}"},
        timeout=30,
    ) as client:
        yield client
    proxy.set("pass")
    proxy.cut()
    await db.close()


def _through(dsn: str, port: int) -> str:
    parts = urlsplit(dsn)
    user = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}"))


REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/ping/", None),
    ("POST", "/v3/memories/add/", {"messages": "I like tea", "user_id": "alice"}),
    ("POST", "/v3/memories/add/", {"messages": "I like tea", "user_id": "alice", "infer": False}),
    ("POST", "/v3/memories/search/", {"query": "tea", "filters": {"user_id": "alice"}}),
    ("POST", "/v3/memories/", {"filters": {"user_id": "alice"}}),
    ("DELETE", "/v1/memories/?user_id=alice", None),
]


@pytest.mark.parametrize("known", [True, False], ids=["key known", "key unknown"])
async def test_every_request_is_answered_with_503_and_when_to_come_again(
    client: httpx.AsyncClient, proxy: Proxy, known: bool
) -> None:
    for method, path, body in REQUESTS[: 6 if known else 1]:
        assert (await client.request(method, path, json=body)).status_code == 200
    proxy.set("blackhole")
    for method, path, body in REQUESTS[1 if known else 0 :]:
        if not known:
            access.forget()
        started = time.monotonic()
        answer = await client.request(method, path, json=body)
        assert answer.status_code == 503, (method, path, answer.text)
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["detail"]
        assert time.monotonic() - started < STATEMENT_S + ACQUIRE_S + SLACK_S
    proxy.set("pass")
    proxy.cut()
    answer = await client.request(*REQUESTS[1][:2], json=REQUESTS[1][2])
    assert answer.status_code == 200


async def test_many_adds_at_once_are_all_answered(client: httpx.AsyncClient, proxy: Proxy) -> None:
    method, path, body = REQUESTS[1]
    assert (await client.request(method, path, json=body)).status_code == 200
    proxy.set("blackhole")
    started = time.monotonic()
    answers = await asyncio.gather(*(client.request(method, path, json=body) for _ in range(30)))
    assert {answer.status_code for answer in answers} == {503}
    assert time.monotonic() - started < STATEMENT_S + 2 * ACQUIRE_S + SLACK_S


async def test_readiness_is_told_within_three_seconds(client: httpx.AsyncClient, proxy: Proxy) -> None:
    assert (await client.get("/readyz")).status_code == 200
    proxy.set("blackhole")
    for _ in range(2):
        started = time.monotonic()
        answer = await client.get("/readyz")
        assert time.monotonic() - started < 3.0
        assert answer.status_code == 503
        assert answer.json()["database"] != "ok"


async def test_readiness_does_not_wait_for_a_statement(
    client: httpx.AsyncClient, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits of the service itself are longer than a monitor's patience."""
    monkeypatch.setattr(service, "LOOK_S", 0.2)
    assert (await client.get("/readyz")).status_code == 200
    proxy.set("blackhole")
    started = time.monotonic()
    answer = await client.get("/readyz")
    assert time.monotonic() - started < STATEMENT_S
    assert answer.status_code == 503
