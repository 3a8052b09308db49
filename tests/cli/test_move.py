"""`memoryd export` and `memoryd import`, against services that listen."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner, Result

from app import config, errors
from app.cli import commands, move
from app.runtime import Runtime
from app.store import db as databases
from tests import conftest, factories, fakes


@dataclass(frozen=True)
class Service:
    """A service that listens."""

    url: str
    key: str

    def texts(self) -> list[str]:
        headers = {"Authorization": f"Token {self.key}"}
        answer = httpx.post(f"{self.url}/v1/exports/raw/", json={}, headers=headers, trust_env=False)
        return [json.loads(line)["memory"] for line in answer.content.split(b"\n")[:-1]]

    def add(self, *memories: dict[str, Any]) -> None:
        headers = {"Authorization": f"Token {self.key}"}
        answer = httpx.post(
            f"{self.url}/v1/import/", json={"memories": memories}, headers=headers, trust_env=False, timeout=60
        )
        assert answer.json()["counts"] == {"imported": len(memories)}, answer.text


@asynccontextmanager
async def listening(server_dsn: str, template: str, data: Path) -> AsyncIterator[Service]:
    """Run the API on a port of its own, in a thread, over a database of its own."""
    ready: Future[Service] = Future()
    server = uvicorn.Server(uvicorn.Config(app=None, log_config=None, lifespan="off"))  # type: ignore[arg-type]
    async with conftest._clone(server_dsn, template) as dsn:
        thread = threading.Thread(target=asyncio.run, args=(_serve(server, dsn, data, ready),), daemon=True)
        thread.start()
        yield await asyncio.wait_for(asyncio.wrap_future(ready), 60)
        server.should_exit = True
        await asyncio.to_thread(thread.join, 30)


async def _serve(server: uvicorn.Server, dsn: str, data: Path, ready: Future[Service]) -> None:
    db = await databases.Database.open(dsn, pool_size=4, statement_cache=256)
    rt = Runtime(config.load(data=data), db, fakes.RecordingQueue(), None, fakes.FakeEmbedder())
    async with db.transaction(None) as conn:
        project = await factories.make_project(conn)
    secret = await factories.make_key(rt, project)
    server.config.app = factories.make_app(rt)
    server.config.host, server.config.port = "127.0.0.1", 0
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    ready.set_result(Service(f"http://127.0.0.1:{port}", secret))
    await serving
    await db.close()


@pytest.fixture
async def service(postgres_dsn: str, template: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with listening(postgres_dsn, template, tmp_path / "one") as found:
        yield found


@pytest.fixture
async def other(postgres_dsn: str, template: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with listening(postgres_dsn, template, tmp_path / "other") as found:
        yield found


async def run(*arguments: str, of: Service, stdin: bytes | None = None) -> Result:
    """Run a command in a thread, as it waits for the service."""
    line = [*arguments, "--url", of.url, "--key", of.key]
    done = await asyncio.to_thread(CliRunner().invoke, commands.cli, line, input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def memories(count: int, **owners: str) -> list[dict[str, Any]]:
    return [
        {
            "id": str(UUID(int=(7 << 76) + number)),
            "memory": f"Fact number {number}.",
            **(owners or {"user_id": f"user {number % 3}"}),
            "metadata": {"number": number},
            "created_at": f"2024-01-{1 + number % 28:02d}T00:00:00Z",
        }
        for number in range(count)
    ]


def set_of(done: Result) -> str:
    return next(line for line in done.stderr.split() if len(line.strip(",")) == 64).strip(",")


async def test_export_into_an_empty_service_and_out_again_is_the_same_file(service, other, tmp_path) -> None:
    service.add(*memories(230))
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    out = await run("export", str(first), of=service)
    assert "230 memories" in out.stderr
    taken = await run("import", str(first), of=other)
    assert taken.exit_code == 0
    assert "230 imported" in taken.stderr
    assert "the same as in the source" in taken.stderr
    back = await run("export", str(second), of=other)
    assert first.read_bytes() == second.read_bytes()
    assert set_of(out) == set_of(taken) == set_of(back)
    again = await run("import", str(first), of=other)
    assert (again.exit_code, "230 exists" in again.stderr) == (0, True)


async def test_bad_lines_are_named_and_keep_no_other_out(service, tmp_path) -> None:
    good = [json.dumps(memory) for memory in memories(5)]
    lines = [
        good[0],
        "nonsense",
        good[1],
        "",
        '{"memory": "no owner"}',
        good[2],
        "[]",
        good[3],
        '{"a\\u0000": 1}',
        good[4],
    ]
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join(lines))
    done = await run("import", str(file), of=service)
    assert done.exit_code == 1
    assert "5 imported" in done.stderr
    assert "4 refused" in done.stderr
    for number in (2, 5, 7, 9):
        assert f"line {number}" in done.stderr
    assert len(service.texts()) == 5


@pytest.mark.parametrize("form", ["array", "page", "pretty", "standard input"])
async def test_lists_and_pages_are_read(service, tmp_path, form) -> None:
    found = memories(4)
    file = tmp_path / "list.json"
    if form == "standard input":
        done = await run("import", "-", of=service, stdin="\n".join(map(json.dumps, found)).encode())
    else:
        value: Any = {"count": 4, "next": None, "results": found} if form != "array" else found
        file.write_text(json.dumps(value, indent=2 if form == "pretty" else None))
        done = await run("import", str(file), of=service)
    assert (done.exit_code, len(service.texts())) == (0, 4), done.stderr


async def test_memories_of_another_memoryd_are_taken_by_its_address(service, other) -> None:
    service.add(
        *memories(7), {"memory": "Of a session.", "user_id": "u", "run_id": "r", "expiration_date": "2001-01-01"}
    )
    done = await run("import", service.url, "--source-key", service.key, of=other)
    assert (done.exit_code, "8 imported" in done.stderr) == (0, True), done.stderr
    assert sorted(other.texts()) == sorted(service.texts())


async def test_key_may_come_from_a_file(service, tmp_path) -> None:
    path = tmp_path / "key"
    path.write_text(service.key + "\n")
    await run("export", str(tmp_path / "all.jsonl"), of=Service(service.url, f"@{path}"))
    assert (tmp_path / "all.jsonl").read_bytes() == b""


async def test_filters_choose_what_is_written(service, tmp_path) -> None:
    service.add(*memories(6))
    file = tmp_path / "some.jsonl"
    await run("export", str(file), "--filters", '{"user_id": "user 1"}', of=service)
    assert len(file.read_bytes().splitlines()) == 2


async def test_wrong_key_and_absent_service_are_told(service, tmp_path) -> None:
    with pytest.raises(errors.SetupError, match="401"):
        await run("export", str(tmp_path / "x"), of=Service(service.url, "m0-wrong"))
    assert list(tmp_path.glob("*x*")) == []
    with pytest.raises(errors.SetupError, match="does not answer"):
        await run("import", "http://127.0.0.1:9", "--source-key", "k", of=service)
    with pytest.raises(errors.SetupError, match="no such file|No such file"):
        await run("import", str(tmp_path / "none"), of=service)


async def test_import_goes_on_after_the_service_was_away(service, tmp_path, monkeypatch) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text("\n".join(map(json.dumps, memories(250))))
    real, calls = httpx.Client.post, []

    def post(self: httpx.Client, *arguments: Any, **keywords: Any) -> httpx.Response:
        calls.append(1)
        if len(calls) > 1:
            raise httpx.ConnectError("gone")
        return real(self, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(move, "TRIES", 1)
        patch.setattr(httpx.Client, "post", post)
        with pytest.raises(errors.SetupError, match="goes on where it stopped"):
            await run("import", str(file), of=service)
    assert len(service.texts()) == 100
    done = await run("import", str(file), of=service)
    assert "100 exists" in done.stderr
    assert "150 imported" in done.stderr


# A service that has nothing but the list


class Hosted(BaseHTTPRequestHandler):
    """Answers like the hosted platform: a list in pages, and 404 for what it does not know."""

    memories: list[dict[str, Any]] = []
    asked: list[dict[str, Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path, _, query = self.path.partition("?")
        if self.headers["authorization"] != "Token m0-hosted":
            return self.answer(401, {"detail": "Invalid API key."})
        if path != "/v3/memories/":
            return self.answer(404, {"detail": "Not found."})
        self.asked.append(body)
        given = dict(part.split("=") for part in query.split("&"))
        page, size = int(given["page"]), int(given["page_size"])
        (condition,) = body["filters"]["OR"]
        (name,) = condition
        found = [memory for memory in self.memories if memory.get("session_id" if name == "run_id" else name)]
        start = (page - 1) * size
        more = f"http://hosted/v3/memories/?page={page + 1}" if start + size < len(found) else None
        return self.answer(
            200, {"count": len(found), "next": more, "previous": None, "results": found[start : start + size]}
        )

    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


async def test_memories_of_a_service_with_a_list_alone_are_taken_once_each(service) -> None:
    Hosted.memories = [
        *memories(403, user_id="u"),
        {
            "id": str(uuid4()),
            "memory": "Of both.",
            "user_id": "u",
            "session_id": "s",
            "created_at": "2024-01-01T00:00:00Z",
        },
        {"id": str(uuid4()), "memory": "Of an agent.", "agent_id": "bot", "categories": ["x"]},
    ]
    Hosted.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hosted)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        done = await run("import", url, "--source-key", "m0-hosted", of=service)
        assert (done.exit_code, "405 imported" in done.stderr) == (0, True), done.stderr
        assert len(service.texts()) == 405
        assert {name for body in Hosted.asked for part in body["filters"]["OR"] for name in part} == {
            "user_id", "agent_id", "app_id", "run_id",
        }  # fmt: skip
        with pytest.raises(errors.SetupError, match="refuses the key"):
            await run("import", url, "--source-key", "m0-other", of=service)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
