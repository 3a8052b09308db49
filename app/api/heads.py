"""The head of a request at the door: short, and there in time, for callers whose key nobody has seen yet.

The body has limits of its own, which the routes enforce; a head reaches no route before it is complete.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_BYTES = 64 * 1024  #: of a request line and headers that one read of the socket did not complete
WAIT_S = 30.0  #: from the connection, or from the first byte of a later request, to the end of the head


class Protocol(HttpToolsProtocol):
    """uvicorn's own protocol, which by itself keeps whatever comes, for as long as it comes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._began = False  # with the bytes that are looked at now
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for a head from now on."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and refuse a head that grows too long."""
        self._began = False
        super().data_received(data)
        if not self._in_head or self._began or self.transport.is_closing():
            return
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            self.send_400_response(f"The headers are larger than {MAX_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """Count and time the head that begins."""
        super().on_message_begin()
        self._in_head = self._began = True
        self._bytes = 0
        self._start_timer()

    def on_headers_complete(self) -> None:
        """Leave the rest to the route."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(WAIT_S, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._start_timer()  # an earlier request of this connection still waits for its answer
        else:
            self.transport.close()
