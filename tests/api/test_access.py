"""Keys and the first start, with a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app import errors
from app.domain import access
from app.model import Project
from app.runtime import Runtime
from app.store import orgs
from app.store.db import Conn, Database


class Counting(Database):
    """A database that counts how often it is asked."""

    def __init__(self, inner: Database) -> None:
        """Ask `inner`."""
        self._inner = inner
        self.asked = 0

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Count and lend."""
        self.asked += 1
        async with self._inner.acquire(project_id) as conn:
            yield conn


async def test_first_start_makes_organization_project_and_one_key(runtime: Runtime) -> None:
    first = await access.bootstrap(runtime)
    assert (first.project.name, first.project.settings.compatibility) == ("default-project", "architecture")
    assert first.secret is not None
    caller = await access.authenticate(runtime, first.secret)
    assert caller.project.id == first.project.id
    assert await access.bootstrap(runtime) == access.Bootstrap(first.project, None)


async def test_first_project_follows_the_compatibility_setting(runtime: Runtime) -> None:
    hosted = replace(runtime, settings=runtime.settings.model_copy(update={"compatibility": "hosted"}))
    assert (await access.bootstrap(hosted)).project.settings.null_scoping is False


async def test_two_processes_that_start_together_make_one_project(runtime: Runtime, fresh_db: Any) -> None:
    shared = replace(runtime, db=fresh_db.db)
    made = await asyncio.gather(*(access.bootstrap(shared) for _ in range(8)))
    assert len({bootstrap.project.id for bootstrap in made}) == 1
    assert sum(bootstrap.secret is not None for bootstrap in made) == 1
    async with fresh_db.db.acquire(None) as conn:
        assert len(await orgs.list_organizations(conn)) == 1


async def test_valid_key_is_looked_up_once_in_some_seconds(runtime: Runtime, project: Project) -> None:
    _, secret = await access.create_key(runtime, project, name="test")
    counting = Counting(runtime.db)
    watched = replace(runtime, db=counting)
    for _ in range(5):
        assert (await access.authenticate(watched, secret)).project.id == project.id
    assert counting.asked == 1


async def test_mistyped_key_asks_nobody(runtime: Runtime) -> None:
    counting = Counting(runtime.db)
    with pytest.raises(errors.NotAuthenticated):
        await access.authenticate(replace(runtime, db=counting), access.new_secret()[:-1] + "!")
    assert counting.asked == 0


async def test_list_of_keys_shows_no_secret(runtime: Runtime, project: Project) -> None:
    key, secret = await access.create_key(runtime, project, name="  laptop ")
    assert [shown.name for shown in await access.list_keys(runtime, project)] == ["laptop"]
    assert secret.startswith(key.prefix)
    assert len(key.prefix) < 10
    assert secret not in str(await access.list_keys(runtime, project))


@pytest.mark.parametrize("name", ["", "  ", "x" * 101])
async def test_key_needs_a_name(runtime: Runtime, project: Project, name: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        await access.create_key(runtime, project, name=name)


async def test_key_of_another_project_cannot_be_revoked(runtime: Runtime, project: Project, conn: Conn) -> None:
    from tests import factories

    other = await factories.make_project(conn)
    key, secret = await access.create_key(runtime, other, name="theirs")
    with pytest.raises(errors.NotFound):
        await access.revoke_key(runtime, project, key.id)
    assert (await access.authenticate(runtime, secret)).project.id == other.id


async def test_caller_cache_is_bounded(runtime: Runtime, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CACHE_KEYS", 3)
    access.forget()
    for number in range(5):
        _, secret = await access.create_key(runtime, project, name=str(number))
        await access.authenticate(runtime, secret)
    assert len(access._callers) == 3


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/auth/email_code/"),
        ("POST", "/api/v1/auth/email_code/verify/"),
        ("POST", "/api/v1/auth/agent_mode/"),
        ("PATCH", "/api/v1/auth/agent_mode/caller/"),
        ("POST", "/api/v1/auth/agent_mode/caller/"),
        ("POST", "/v1/agent-rush/memories/"),
        ("POST", "/v1/agent-rush/memories/search/"),
    ],
)
async def test_nobody_signs_up_and_the_answer_says_where_keys_come_from(
    client: httpx.AsyncClient, conn: Conn, method: str, path: str
) -> None:
    before = await conn.fetchval("SELECT count(*) FROM api_keys")
    answer = await client.request(method, path, json={"email": "a@mail.example"}, headers={"Authorization": ""})
    assert answer.status_code == 403
    assert "memoryd keys create" in answer.json()["error"]
    assert await conn.fetchval("SELECT count(*) FROM api_keys") == before
