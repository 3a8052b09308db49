"""A pooler for tests, as pgbouncer is in transaction mode: many clients share few sessions of the server, one transaction
after the other, so that nothing that a session is told, or has prepared, is there the next time.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from types import TracebackType
from typing import Self

_SSL, _CANCEL = 80877103, 80877102
#: What clients may say at the start; pgbouncer refuses everything else.
_KNOWN = {"user", "database", "client_encoding", "application_name", "datestyle", "timezone"}


class _Server:
    """A session of the server, and what it said of itself when it was opened."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the type of the next message and the whole of it."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


async def _startup(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """Return the first message of a client; None: it only wants something cancelled."""
    while True:
        head = await reader.readexactly(8)
        length, code = struct.unpack("!II", head)
        rest = await reader.readexactly(length - 8)
        if code == _CANCEL:
            return None
        if code != _SSL:
            return head + rest
        writer.write(b"N")


class Pooler:
    """Listens on loopback and lends `sessions` sessions of the server at `port`. An async context manager."""

    def __init__(self, port: int, *, sessions: int) -> None:
        self.transactions = 0  #: that were lent a session
        self.clients = 0  #: that are connected
        self._target, self._left = port, sessions
        self._idle: asyncio.LifoQueue[_Server] = asyncio.LifoQueue()
        self._servers: list[_Server] = []
        self._greeting = b""  # what follows the password when a session is opened
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            server.writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.clients += 1
        # The client has gone, or the test has ended.
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            if await self._is_in(reader, writer):
                await self._serve(reader, writer)
        self.clients -= 1
        writer.transport.abort()

    async def _is_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Let a client in: the first ones give the server its password, the others are believed."""
        first = await _startup(reader, writer)
        if first is None:
            return False
        words = first[8:].rstrip(b"\0").split(b"\0")
        if unknown := {name.decode() for name in words[::2]} - _KNOWN:
            said = f"SFATAL\0C08P01\0Munsupported startup parameter: {', '.join(unknown)}\0\0".encode()
            writer.write(b"E" + struct.pack("!I", len(said) + 4) + said)
            await writer.drain()
            return False
        if self._left == 0:
            while not self._greeting:  # noqa: ASYNC110 - the first one is on its way
                await asyncio.sleep(0.005)
            writer.write(self._greeting)
            return True
        self._left -= 1
        server = _Server(*await asyncio.open_connection("127.0.0.1", self._target))
        self._servers.append(server)
        server.writer.write(first)
        greeting, kind = b"", b""
        while kind != b"Z":
            kind, message = await _message(server.reader)
            writer.write(message)
            if kind == b"R" and message[5:9] in (b"\0\0\0\x0a", b"\0\0\0\x0b", b"\0\0\0\x03", b"\0\0\0\x05"):
                server.writer.write((await _message(reader))[1])  # the server asks for more, and the client answers
            elif kind != b"R" or message[5:9] == b"\0\0\0\0":
                greeting += message
        self._greeting = greeting
        self._idle.put_nowait(server)
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lend a session for each transaction, until the client leaves."""
        loan: _Loan | None = None
        while True:
            kind, message = await _message(reader)
            if kind == b"X":
                return
            if loan is None or loan.answering.done():
                loan = _Loan(await self._idle.get(), writer, self._idle)
                self.transactions += 1
            loan.due += kind in b"QS"
            loan.server.writer.write(message)


class _Loan:
    """A session in the hands of a client, which hears its answers; it goes back at the end of the transaction."""

    def __init__(self, server: _Server, client: asyncio.StreamWriter, idle: asyncio.Queue[_Server]) -> None:
        self.server, self._client, self._idle = server, client, idle
        self.due = 0  # answers "ready" that are still to come
        self.answering = asyncio.create_task(self._answer())

    async def _answer(self) -> None:
        while True:
            kind, message = await _message(self.server.reader)
            self._client.write(message)
            self.due -= kind == b"Z"
            if kind == b"Z" and message[5:] == b"I" and not self.due:
                self._idle.put_nowait(self.server)
                return
