"""What every request passes: key, path, id, limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import httpx
import pytest
import structlog
from starlette.types import Message, Receive, Scope, Send

from app import errors
from app.api import create_app
from app.domain import access
from app.model import Project
from app.runtime import Runtime
from app.store.db import Conn, Database

ADD = "/v3/memories/add/"


def key_of(client: httpx.AsyncClient) -> str:
    return client.headers["Authorization"].split()[1]


# Keys


@pytest.mark.parametrize("form", ["Token {}", "token {}", "Bearer {}", "bEaReR   {}"])
async def test_scheme_words_are_token_and_bearer_in_any_case(client: httpx.AsyncClient, form: str) -> None:
    answer = await client.get("/v1/ping/", headers={"Authorization": form.format(key_of(client))})
    assert answer.status_code == 200


async def test_key_may_come_in_a_header_of_its_own(client: httpx.AsyncClient) -> None:
    key = key_of(client)
    del client.headers["Authorization"]
    assert (await client.get("/v1/ping/", headers={"X-API-Key": key})).status_code == 200


@pytest.mark.parametrize(
    "header", ["", "Token", "Token ", "Token None", "Token null", "Basic dTpw", "m0-x", "Token {} x", "{}"]
)
async def test_anything_else_is_401_with_a_detail(client: httpx.AsyncClient, header: str) -> None:
    answer = await client.get("/v1/ping/", headers={"Authorization": header.format(key_of(client))})
    assert answer.status_code == 401
    assert list(answer.json()) == ["detail"]


async def test_well_formed_key_that_nobody_made_is_401(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/ping/", headers={"Authorization": f"Token {access.new_secret()}"})
    assert answer.status_code == 401


async def test_revoked_key_stops_working(client: httpx.AsyncClient, runtime: Runtime, project: Project) -> None:
    assert (await client.get("/v1/ping/")).status_code == 200
    (key,) = await access.list_keys(runtime, project)
    await access.revoke_key(runtime, project, key.id)
    assert (await client.get("/v1/ping/")).status_code == 401


async def test_use_of_a_key_is_noted_after_the_answer(
    client: httpx.AsyncClient, runtime: Runtime, project: Project
) -> None:
    await client.get("/v1/ping/")
    (key,) = await access.list_keys(runtime, project)
    assert key.last_used_at is not None


@pytest.mark.parametrize(
    "fault", [errors.DatabaseUnavailable(), errors.SetupError("No space left."), RuntimeError("a bug of ours")]
)
async def test_what_is_noted_after_the_answer_cannot_harm_it(
    client: httpx.AsyncClient, runtime: Runtime, fault: Exception
) -> None:
    """Counting a read and the use of a key: the database is gone when the answer is out."""
    user = {"filters": {"user_id": "nobody"}}
    broken = _Breakable(runtime.db)
    app = create_app(replace(runtime, db=cast(Database, broken)))

    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                broken.fault = fault

        await app(scope, receive, watched)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=breaking), base_url="http://memoryd.test", headers=client.headers
    ) as other:
        with structlog.testing.capture_logs() as lines:
            answer = await other.post("/v3/memories/", json=user)
    assert answer.status_code == 200
    assert broken.refused, "nothing was to be noted"
    assert [line["event"] for line in lines if line["event"].endswith("_noted")]


class _Breakable:
    """A database that fails from a moment on."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.fault: Exception | None = None
        self.refused = 0

    def acquire(self, project_id: int | None) -> AbstractAsyncContextManager[Conn]:
        self._check()
        return self._db.acquire(project_id)

    def transaction(self, project_id: int | None) -> AbstractAsyncContextManager[Conn]:
        self._check()
        return self._db.transaction(project_id)

    def _check(self) -> None:
        if self.fault is not None:
            self.refused += 1
            raise self.fault


async def test_every_route_needs_a_key_unless_it_is_declared_public(
    client: httpx.AsyncClient, described: dict[str, Any]
) -> None:
    del client.headers["Authorization"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            answer = await client.request(method, path.replace("{", "").replace("}", ""))
            assert (answer.status_code == 401) == bool(operation["security"]), (method, path)


async def test_body_is_not_read_without_a_key(runtime: Runtime) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=create_app(runtime)), base_url="http://memoryd.test"
    ) as stranger:
        answer = await stranger.post(ADD, content=never(), headers={"Content-Length": str(50 * 2**20)})
    assert answer.status_code == 401


# Paths


@pytest.mark.parametrize("path", ["/v1/ping/", "/v1/ping", "//v1/ping/", "///v1/ping"])
async def test_both_slash_forms_are_served_without_a_redirect(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(httpx.URL("http://memoryd.test").copy_with(raw_path=path.encode()))
    assert answer.status_code == 200


async def test_unknown_route_is_404_and_unknown_method_405(client: httpx.AsyncClient) -> None:
    missing = await client.get("/v9/none/")
    assert (missing.status_code, missing.json()["detail"]) == (404, "There is no such route.")
    refused = await client.patch("/v3/memories/")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "POST"


async def test_methods_of_one_path_in_two_routers_do_not_hide_each_other(client: httpx.AsyncClient) -> None:
    assert (await client.delete("/v1/memories/")).status_code == 400


async def test_delete_of_an_empty_id_is_not_a_delete_of_everything(client: httpx.AsyncClient) -> None:
    for path in (b"/v1/memories//", b"/v1/memories//?user_id=alice"):
        answer = await client.delete(httpx.URL("http://memoryd.test").copy_with(raw_path=path))
        assert answer.status_code == 404


async def test_encoded_slash_stays_in_its_segment(client: httpx.AsyncClient) -> None:
    answer = await client.get(httpx.URL("http://memoryd.test").copy_with(raw_path=b"/v1/memories/a%2Fb/"))
    assert (answer.status_code, answer.json()["error"]) == (400, "memory_id should be a valid UUID")


# Ids and faults


async def test_request_id_of_the_client_comes_back(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/ping/", headers={"X-Request-ID": "abc-1"})
    assert answer.headers["x-request-id"] == "abc-1"


async def test_request_id_that_is_no_id_is_replaced(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/ping/", headers={"X-Request-ID": "a b\tc" * 50})
    assert len(answer.headers["x-request-id"]) == 32


class Broken(Database):
    """A database with a bug."""

    def __init__(self) -> None:
        """Connect to nothing."""

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Raise what nobody expects."""
        raise RuntimeError("SELECT secret FROM somewhere")
        yield


async def test_fault_of_ours_shows_nothing_but_the_request_id(client: httpx.AsyncClient, runtime: Runtime) -> None:
    await client.get("/v1/ping/")  # the key is known for some seconds
    app = create_app(replace(runtime, db=Broken()))
    headers = {**client.headers, "X-Request-ID": "fault-1"}
    with structlog.testing.capture_logs() as lines:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://memoryd.test", headers=headers
        ) as other:
            answer = await other.get("/v1/events/")
    assert answer.status_code == 500
    assert answer.json()["request_id"] == "fault-1"
    assert "SELECT" not in answer.text
    assert "Traceback" not in answer.text
    assert [line["event"] for line in lines] == ["request.failed", "request"]


async def test_log_has_one_line_a_request_without_anything_that_was_said(client: httpx.AsyncClient) -> None:
    said = "the canary sings at noon"
    with structlog.testing.capture_logs() as lines:
        await client.post(ADD, json={"messages": said, "user_id": "canary-user", "infer": False})
        await client.get("/v1/memories/canary-path/")
    assert [line["event"] for line in lines] == ["request", "request"]
    assert "canary" not in str(lines)
    assert (lines[0]["status"], lines[0]["route"], lines[0]["method"]) == (200, ADD, "POST")
    assert lines[0]["bytes_in"] > 0


# Limits


@pytest.mark.parametrize("declared", [True, False])
async def test_body_beyond_the_limit_is_413_and_names_the_setting(client: httpx.AsyncClient, declared: bool) -> None:
    taken = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(50):
            taken += 1
            yield b" " * 2**20

    headers = {"Content-Length": str(50 * 2**20)} if declared else {}
    answer = await client.post(ADD, content=body(), headers=headers)
    assert answer.status_code == 413
    assert "10485760" in answer.json()["detail"]
    assert "MEMORYD_MAX_BODY_BYTES" in answer.json()["detail"]
    assert taken <= (1 if declared else 12)


async def test_body_that_never_ends_is_408(client: httpx.AsyncClient, runtime: Runtime) -> None:
    app = create_app(replace(runtime, settings=runtime.settings.model_copy(update={"body_timeout_s": 0.01})))

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://memoryd.test", headers=client.headers
    ) as other:
        answer = await other.post(ADD, content=body())
    assert answer.status_code == 408


# Tenants


async def test_other_project_sees_nothing(client: httpx.AsyncClient, runtime: Runtime, conn: Conn) -> None:
    from tests import factories

    added = await client.post(ADD, json={"messages": "A", "user_id": "u1", "infer": False})
    memory_id, event_id = added.json()["results"][0]["id"], added.json()["event_id"]
    other = await factories.make_project(conn)
    theirs = {"Authorization": f"Token {await factories.make_key(runtime, other)}"}
    for method, path in [
        ("GET", f"/v1/memories/{memory_id}/"),
        ("PUT", f"/v1/memories/{memory_id}/"),
        ("DELETE", f"/v1/memories/{memory_id}/"),
        ("GET", f"/v1/memories/{memory_id}/history/"),
        ("GET", f"/v1/event/{event_id}/"),
    ]:
        answer = await client.request(method, path, headers=theirs, json={"text": "B"} if method == "PUT" else None)
        assert answer.status_code == 404, (method, path)
    listed = await client.post("/v3/memories/", headers=theirs, json={"filters": {"OR": [{"user_id": "*"}]}})
    assert listed.json()["count"] == 0
    assert (await client.delete("/v1/memories/?user_id=u1", headers=theirs)).status_code == 200
    assert (await client.get(f"/v1/memories/{memory_id}/")).json()["memory"] == "A"
