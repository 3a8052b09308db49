"""What the servers of tests have in common: real HTTP on loopback, a thread, and an end that no hanging answer delays."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class QuietHandler(BaseHTTPRequestHandler):
    """One request after the other on a connection, and nothing on standard error."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Loopback:
    """A server on a free port of 127.0.0.1. A context manager."""

    def __init__(self) -> None:
        self.stopped = threading.Event()  # ends every hanging answer
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def handler(self) -> type[QuietHandler]:
        """Return what answers; its instances are requests."""
        raise NotImplementedError

    @property
    def port(self) -> int:
        """Port on 127.0.0.1."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
