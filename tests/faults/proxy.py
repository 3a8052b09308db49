"""A TCP proxy that does what networks do: delays, drips, resets, swallows; and stops a conversation at a chosen word."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Literal, Self

Mode = Literal["pass", "refuse", "reset", "blackhole", "delay", "drip"]

DELAY_S = 0.15  # of every piece, each way
DRIP_S = 0.002  # between two bytes


class Trap:
    """Stops one conversation when the client says `then`, after it has said `seen` on the same connection."""

    def __init__(self, seen: bytes, then: bytes, *, forward: bool) -> None:
        """`forward`: the words still reach the server, and only its answer is held back."""
        self.seen, self.then, self.forward = seen, then, forward
        self.sprung = threading.Event()


class _Pair:
    """One client, its server, and what the client has said so far."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server
        self.heard = False  # the trap's first words
        self.caught = False  # nothing moves any more
        self.vanished = False  # nor does the server hear that the client is gone

    def abort(self) -> None:
        self.vanished = False
        for writer in (self.client, self.server):
            with contextlib.suppress(OSError):
                writer.transport.abort()


class Proxy:
    """Listens on a port of the loopback interface and hands everything on to another one. A context manager."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.mode: Mode = "pass"
        self.trap: Trap | None = None
        self._pairs: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._accept, sock=self._listener))
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def set(self, mode: Mode) -> None:
        """Behave like this from now on. `refuse` and `reset` end what is open, too."""
        self.mode = mode
        if mode in ("refuse", "reset"):
            self.cut()

    def cut(self) -> None:
        """Break every connection that is open."""
        self._call(self._cut())

    def vanish(self) -> None:
        """Let those who are connected now disappear without a goodbye; new connections are good."""
        for pair in list(self._pairs):
            pair.vanished = True

    @property
    def open(self) -> int:
        """Connections that are open."""
        return len(self._pairs)

    def lay(self, seen: str, then: str, *, forward: bool) -> Trap:
        """Stop the first conversation that says `seen` and later `then`, and return the trap."""
        self.trap = Trap(seen.encode(), then.encode(), forward=forward)
        return self.trap

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _cut(self) -> None:
        for pair in list(self._pairs):
            pair.abort()

    async def _end(self) -> None:
        self._server.close()
        await self._cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.mode in ("refuse", "reset"):
            writer.transport.abort()
            return
        try:
            up, down = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = _Pair(writer, down)
        self._pairs.add(pair)
        ways = [
            asyncio.create_task(self._carry(pair, reader, down, self._listen)),
            asyncio.create_task(self._carry(pair, up, writer, lambda pair, _data: pair.caught)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            return  # the end; asyncio would complain about a handler that ends otherwise
        finally:
            self._pairs.discard(pair)
            pair.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(
        self,
        pair: _Pair,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        held: Callable[[_Pair, bytes], bool],
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                caught = held(pair, data)
                while self.mode == "blackhole" or caught or pair.vanished:
                    await asyncio.sleep(0.01)
                    if caught and not pair.vanished and reader.at_eof():
                        return
                if self.mode == "delay":
                    await asyncio.sleep(DELAY_S)
                step = 1 if self.mode == "drip" else len(data)
                for start in range(0, len(data), max(step, 1)):
                    writer.write(data[start : start + step])
                    await writer.drain()
                    if self.mode == "drip":
                        await asyncio.sleep(DRIP_S)
        while pair.vanished:  # noqa: ASYNC110 - a thread says so
            await asyncio.sleep(0.01)

    def _listen(self, pair: _Pair, data: bytes) -> bool:
        """Return whether this piece of what the client says stays here."""
        trap = self.trap
        if pair.caught:
            return True
        if trap is None or trap.sprung.is_set():
            return False
        pair.heard = pair.heard or trap.seen in data
        if not pair.heard or trap.then not in data:
            return False
        pair.caught = True
        trap.sprung.set()
        return not trap.forward
