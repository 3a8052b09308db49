"""The head of a request, before anything is known about the caller: bounded in size and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from app.api import heads, server
from app.config import Settings

START = b"GET / HTTP/1.1\r\nHost: x\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(work_s: float = 0) -> AsyncIterator[int]:
    """Serve an application that answers every request after `work_s`, as the real one is served; yield its port."""

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await asyncio.sleep(work_s)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    config = server.configured(application, Settings())
    config.lifespan = "off"
    config.port = 0
    running = uvicorn.Server(config)
    config.load()
    running.lifespan = config.lifespan_class(config)
    await running.startup()
    try:
        yield running.servers[0].sockets[0].getsockname()[1]
    finally:
        await running.shutdown()


async def dial(port: int, data: bytes) -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    return reader, writer


async def all_of(streams: Streams) -> bytes:
    """Return what comes until the server closes the connection."""
    reader, writer = streams
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("endless", [b"X: " + b"a" * 2_000_000, b"X: a\r\n" * 300_000], ids=["value", "names"])
async def test_head_without_end_is_refused_early(endless: bytes) -> None:
    async with served() as port:
        reader, writer = await dial(port, START + endless)
        async with asyncio.timeout(10):
            assert (await reader.read(12)) == b"HTTP/1.1 400"
        writer.close()


async def test_head_that_does_not_come_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "WAIT_S", 0.2)
    async with served() as port:
        for data in (b"", b"GET / HT", START):
            assert await all_of(await dial(port, data)) == b""


async def test_second_head_of_a_connection_is_timed_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "WAIT_S", 0.2)
    async with served() as port:
        answer = await all_of(await dial(port, START + b"\r\n" + START))
        assert answer.count(b"HTTP/1.1 200") == 1


async def test_long_work_and_long_bodies_are_not_timed_as_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "WAIT_S", 0.1)
    post = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2000000\r\n\r\n"
    async with served(work_s=0.5) as port:
        assert b"200 OK" in await all_of(await dial(port, post + b"a" * 2_000_000))
        assert b"200 OK" in await all_of(await dial(port, START + b"\r\n" + START))


async def test_many_headers_of_a_usual_size_are_taken() -> None:
    async with served() as port:
        head = START + b"Cookie: " + b"c" * 30_000 + b"\r\nConnection: close\r\n\r\n"
        assert b"200 OK" in await all_of(await dial(port, head))
