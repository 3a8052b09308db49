"""Pages, keys, migrations and outages, as a program that runs for long meets them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest
import structlog

from app import errors, log
from app.runtime import Runtime
from app.store import db as databases
from app.store import memories
from tests import factories, fakes
from tests.conftest import FreshDatabase
from tests.field.conftest import ADD, LIST, SEARCH, Service, said


async def test_pages_of_equal_times_neither_repeat_nor_miss(service: Service) -> None:
    await service.add(*(f"text {number}" for number in range(60)), timestamp=1_600_000_000)
    seen: list[str] = []
    for page in (1, 2, 3):
        answer = await service.client.post(f"{LIST}?page={page}&page_size=20", json={"filters": {"user_id": "u1"}})
        seen += [memory["id"] for memory in answer.json()["results"]]
        await service.add(f"noise {page}", user_id="u2")
    assert len(seen) == len(set(seen)) == 60
    assert answer.json()["next"] is None
    assert [UUID(id_) for id_ in seen] == sorted((UUID(id_) for id_ in seen), reverse=True)


@pytest.mark.parametrize("name", ["run_id", "session_id"])
async def test_session_has_both_its_names_on_every_read(service: Service, name: str) -> None:
    (memory_id,) = await service.add("A", user_id="u1", run_id="r1")
    filters = {"AND": [{"user_id": "u1"}, {"run_id": "r1"}]}
    (listed,) = await service.find(LIST, filters)
    (hit,) = await service.find(SEARCH, filters, "A")
    assert [listed[name], hit[name], (await service.get(memory_id))[name]] == ["r1", "r1", "r1"]
    rows = await service.history(memory_id)
    assert rows[0]["session_id"] == "r1"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Token"},
        {"Authorization": "Token "},
        {"Authorization": "Token None"},
        {"Authorization": "Token null"},
        {"Authorization": "None"},
        {"X-API-Key": ""},
        {"X-API-Key": "None"},
        {"Authorization": "Token undefined", "X-API-Key": "null"},
    ],
)
async def test_no_key_is_never_a_key(service: Service, headers: dict[str, str]) -> None:
    del service.client.headers["Authorization"]
    ping = {"Authorization": "Token m0-none"}
    for method, path in [
        ("GET", "/v1/ping/"),
        ("GET", "/api/v1/orgs/organizations/"),
        ("POST", "/api/v1/orgs/organizations/"),
        ("DELETE", "/v1/memories/?user_id=u1"),
        ("POST", ADD),
    ]:
        for tried in (headers, ping):
            answer = await service.client.request(method, path, headers=tried)
            assert answer.status_code == 401
            assert answer.json()["detail"]


async def test_key_is_in_no_answer_no_event_and_no_log(service: Service, embedder: fakes.FakeEmbedder) -> None:
    secret = service.client.headers["Authorization"].split()[1]
    seen: list[str] = []
    with structlog.testing.capture_logs() as lines:
        ping = (await service.client.get("/v1/ping/")).json()
        root = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
        embedder.failures = [errors.EmbedderUnavailable()]
        requests: list[tuple[str, str, Any]] = [
            ("POST", ADD, {**said("A"), "user_id": "u1", "infer": False, "apiKey": secret}),
            ("POST", ADD, {**said("B"), "user_id": "u1", "api_key": secret}),
            ("GET", "/v1/events/", None),
            ("GET", "/v1/memories/x/", None),
            ("GET", root, None),
            ("GET", root + "members/", None),
            ("GET", f"/api/v1/webhooks/projects/{ping['project_id']}/", None),
            ("POST", "/v1/batch/", {"key": secret}),
        ]
        for method, path, body in requests:
            seen.append((await service.client.request(method, path, json=body)).text)
    assert secret not in json.dumps(seen)
    assert secret not in str(lines)
    assert secret[:12] not in str(lines)


@pytest.fixture
def own_log() -> Iterator[None]:
    """Let a test say how lines are logged; put it back afterwards."""
    root, former = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**former)


async def test_fault_of_ours_puts_no_key_into_the_log(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_log: None
) -> None:
    secret = service.client.headers["Authorization"].split()[1]

    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"a bug that quotes {secret}")

    monkeypatch.setattr(memories, "list_page", broken)
    log.configure("DEBUG")
    answer = await service.client.post(LIST, json={"filters": {"user_id": "u1"}, "api_key": secret})
    written = capsys.readouterr().err
    assert answer.status_code == 500
    assert "a bug that quotes [redacted]" in written
    assert secret[6:] not in written + answer.text


async def test_change_that_fails_leaves_what_is_found_and_its_history(
    service: Service, embedder: fakes.FakeEmbedder
) -> None:
    (memory_id,) = await service.add("parks the blue van on level 3")
    before = await service.get(memory_id)
    embedder.failures = [errors.EmbedderUnavailable()]
    answer = await service.client.put(
        f"/v1/memories/{memory_id}/", json={"text": "sold the boat", "metadata": {"a": 1}}
    )
    assert answer.status_code == 503
    assert await service.get(memory_id) == before
    assert await service.search("blue van") == ["parks the blue van on level 3"]
    assert [row["event"] for row in await service.history(memory_id)] == ["ADD"]


async def test_silent_embedder_stops_searches_and_delays_adds(
    service: Service, runtime: Runtime, embedder: fakes.FakeEmbedder
) -> None:
    (memory_id,) = await service.add("likes tea")
    embedder.failures = [errors.EmbedderUnavailable() for _ in range(2)]
    answer = await service.client.post(SEARCH, json={"query": "tea", "filters": {"user_id": "u1"}})
    assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
    service.rt = replace(runtime, settings=runtime.settings.model_copy(update={"retry_delays_s": (0.01, 0.01, 0.01)}))
    assert (await service.tell("I moved to Lisbon in May."))["status"] == "SUCCEEDED"
    assert embedder.failures == []
    assert (await service.client.delete(f"/v1/memories/{memory_id}/")).status_code == 200
    assert len(await service.list()) == 1


@pytest.mark.parametrize("name", ["custom_instructions", "agent_custom_instructions", "name"])
async def test_nul_in_a_setting_is_refused_or_gone(service: Service, name: str) -> None:
    ping = (await service.client.get("/v1/ping/")).json()
    root = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
    answer = await service.client.patch(root, json={name: "Keep\0 plans."})
    assert answer.status_code in (200, 400)
    kept = (await service.client.get(root)).json()[name]
    assert kept == "Keep plans." if answer.status_code == 200 else "\0" not in (kept or "")


@pytest.mark.parametrize("name", ["custom_categories", "usecase_setting", "retrieval_criteria"])
async def test_nul_deep_in_a_setting_breaks_nothing(service: Service, name: str) -> None:
    ping = (await service.client.get("/v1/ping/")).json()
    root = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
    for value in ([{"k\0": "v"}], [{"k": "v\0"}]):
        assert (await service.client.patch(root, json={name: value})).status_code in (200, 400)
        assert "\\u0000" not in (await service.client.get(root)).text


async def test_migration_during_traffic_is_not_noticed(runtime: Runtime, fresh_db: FreshDatabase) -> None:
    rt = replace(runtime, db=fresh_db.db)
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
        tables = [row[0] for row in await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    secret = await factories.make_key(rt, project)
    transport = httpx.ASGITransport(app=factories.make_app(rt))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://memoryd.test", headers={"Authorization": f"Token {secret}"}
    ) as client:
        service = Service(client, rt)
        kept, *spare = await service.add("A", *(f"to delete {table}" for table in ["", *tables]))

        async def traffic(turn: str) -> list[int]:
            """Ask for everything at once, so that every connection has its statements prepared."""
            user = {"user_id": f"u{turn}"}
            answers = await asyncio.gather(
                client.post(ADD, json={**said("A", f"text {turn}"), "user_id": "u2", "infer": False}),
                client.post(ADD, json={**said("I moved to Lisbon."), **user}),
                client.post(LIST, json={"filters": {"user_id": "*"}}),
                client.post(SEARCH, json={"query": "text", "filters": {"user_id": "u2"}}),
                client.get(f"/v1/memories/{kept}/"),
                client.get(f"/v1/memories/{kept}/history/"),
                client.put(f"/v1/memories/{kept}/", json={"text": f"now {turn}"}),
                client.delete(f"/v1/memories/{spare.pop()}/"),
                client.get("/v1/events/"),
                client.get("/v1/entities/"),
                client.delete("/v1/memories/", params=user),
            )
            return [answer.status_code for answer in answers]

        async def migrate(table: str) -> None:
            conn = await databases.connect(fresh_db.dsn)
            await conn.execute(f"ALTER TABLE {table} ADD COLUMN later text")
            await conn.close()

        statuses = await traffic("first")
        for table in tables:
            found, _ = await asyncio.gather(traffic(table), migrate(table))
            statuses += found
    assert set(statuses) == {200}
    assert len(statuses) > 200


async def test_statement_whose_answer_a_migration_changed_is_due_again(fresh_db: FreshDatabase) -> None:
    """What names its columns is never in this place; the rest is told to come again, and then finds a new plan."""

    async def read() -> Any:
        async with fresh_db.db.transaction(None) as conn:
            return await conn.fetchval("SELECT name FROM organizations")

    await read()
    owner = await databases.connect(fresh_db.dsn)
    await owner.execute("ALTER TABLE organizations ALTER COLUMN name TYPE varchar(255)")
    await owner.close()
    refused = 0
    for _ in range(17):  # each connection of the pool once, and one more
        try:
            assert await read() is None
        except errors.DatabaseUnavailable:
            refused += 1
    assert refused <= 16
    assert await read() is None
