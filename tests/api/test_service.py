"""Ping, health, readiness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from app import errors
from app.api import create_app
from app.model import Project
from app.runtime import Runtime
from app.store import workers
from app.store.db import Conn, Database


async def test_ping_names_organization_project_and_address(client: httpx.AsyncClient, project: Project) -> None:
    answer = await client.get("/v1/ping/")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "org_id": project.organization_public_id,
        "project_id": project.public_id,
        "user_email": "admin@localhost",
    }


async def test_health_needs_no_key(client: httpx.AsyncClient) -> None:
    del client.headers["Authorization"]
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_readiness_without_a_worker_is_degraded(client: httpx.AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "degraded",
        "database": "ok",
        "migrations": "ok",
        "redis": "off",
        "workers": 0,
        "detail": "No worker runs: adds are accepted, and wait.",
        "oldest_pending_s": None,
    }


async def test_readiness_with_a_live_worker_is_ok(client: httpx.AsyncClient, conn: Conn) -> None:
    await workers.beat(conn, "here", slots=4, running=0)
    answer = await client.get("/readyz/")
    assert (answer.json()["status"], answer.json()["workers"]) == ("ok", 1)


async def test_readiness_says_since_when_an_event_waits(client: httpx.AsyncClient) -> None:
    await client.post("/v3/memories/add/", json={"messages": "I like tea.", "user_id": "u"})
    assert (await client.get("/readyz")).json()["oldest_pending_s"] >= 0


class Away(Database):
    """A database that does not answer."""

    def __init__(self) -> None:
        """Connect to nothing."""

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Raise."""
        raise errors.DatabaseUnavailable
        yield


async def test_readiness_without_a_database_is_503(runtime: Runtime) -> None:
    app = create_app(replace(runtime, db=Away()))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://memoryd.test") as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert (answer.json()["status"], answer.json()["migrations"]) == ("unavailable", "unknown")
        assert answer.json()["detail"] == errors.DatabaseUnavailable().message
        assert (await client.get("/healthz")).status_code == 200


async def test_known_key_without_a_database_is_503_with_retry_after(
    client: httpx.AsyncClient, runtime: Runtime
) -> None:
    await client.get("/v1/ping/")  # the key is known for some seconds
    app = create_app(replace(runtime, db=Away()))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://memoryd.test", headers=client.headers
    ) as other:
        answer = await other.get("/v1/events/")
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert answer.json()["error"] == answer.json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_monitors_that_ask_for_the_head_alone_are_answered(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
