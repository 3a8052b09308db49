"""A load generator that is lighter than what it measures: raw sockets, prepared bytes, one request at a time on each."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Makes the bytes of the next request; called once a request, so that ids and texts can differ.
Maker = Callable[[], bytes]


@dataclass
class Sample:
    """What one run of load has shown."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """Answers."""
        return len(self.latencies_ms)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.count / self.seconds

    @property
    def p50_ms(self) -> float:
        """Median latency."""
        return statistics.median(self.latencies_ms)

    @property
    def worst_ms(self) -> float:
        """Longest latency."""
        return max(self.latencies_ms)

    def require(self, status: int = 200) -> Sample:
        """Return itself, unless anything else than `status` was answered: refusals are fast, and mean nothing."""
        if set(self.statuses) != {status}:
            raise RuntimeError(f"wanted {status} alone, got {dict(self.statuses)}")
        return self


def request(method: str, path: str, body: Mapping[str, Any] | bytes | None = None, *, key: str | None = None) -> bytes:
    """Return one HTTP/1.1 request as bytes."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: bench"]
    if key is not None:
        lines.append(f"Authorization: Token {key}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode() + data


class _Line(asyncio.Protocol):
    """One connection: sends, waits for the whole answer, sends the next."""

    def __init__(self, make: Maker, sample: Sample, until: float) -> None:
        self._make, self._sample, self._until = make, sample, until
        self._got = bytearray()
        self._sent_at = 0.0
        self.last = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        data = self._make()
        self._sent_at = time.perf_counter()
        self._transport.write(data)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._got += data
        head_end = self._got.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._got[:head_end]).lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._got) < head_end + 4 + length:
            return
        now = time.perf_counter()
        self._sample.latencies_ms.append((now - self._sent_at) * 1000)
        self._sample.statuses[int(head[9:12])] += 1
        self.last = bytes(self._got[head_end + 4 :])
        self._got.clear()
        if now >= self._until:
            self._transport.close()
            self._finish()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._sample.statuses[0] += 1  # the server hung up
        self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def drive(port: int, make: Maker, *, connections: int, seconds: float, host: str = "127.0.0.1") -> Sample:
    """Keep `connections` requests under way for `seconds`, then let those under way end. Bounded: a minute beyond."""
    loop = asyncio.get_running_loop()
    sample = Sample()
    started = time.perf_counter()
    until = started + seconds
    gc.collect()
    lines = [
        (await loop.create_connection(lambda: _Line(make, sample, until), host, port))[1] for _ in range(connections)
    ]
    await asyncio.wait_for(asyncio.gather(*(line.done for line in lines)), seconds + 60)
    sample.seconds = time.perf_counter() - started
    return sample


async def once(
    port: int, data: bytes, *, host: str = "127.0.0.1", timeout_s: float = 120.0
) -> tuple[int, bytes, float]:
    """Send one request on a connection of its own; return status, body and milliseconds."""
    sample = Sample()
    loop = asyncio.get_running_loop()
    _, line = await loop.create_connection(lambda: _Line(lambda: data, sample, 0.0), host, port)
    await asyncio.wait_for(line.done, timeout_s)
    return next(iter(sample.statuses)), line.last, sample.latencies_ms[0] if sample.latencies_ms else float("nan")
