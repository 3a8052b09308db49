"""A webhook receiver for tests: a real HTTP server on loopback that answers by a script and keeps every request."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks import Webhook

from tests.loopback import Loopback, QuietHandler


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False  # never comes
    drips: bool = False  # begins, and goes on byte by byte without an end


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    at: float  # by the monotonic clock

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def sent(self) -> dict[str, Any]:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def details(self) -> dict[str, Any]:
        return self.sent["event_details"]

    def verify(self, secret: str) -> None:
        """Check the signature as receivers do. Raises: WebhookVerificationError."""
        Webhook(secret).verify(self.body, self.headers)


class Receiver(Loopback):
    """Answers the requests of each path in turn, the last answer for ever; 200 where nothing is said. A context manager."""

    def __init__(self, **replies: Reply | list[Reply]) -> None:
        self.replies = {name: deque(given if isinstance(given, list) else [given]) for name, given in replies.items()}
        self.requests: list[Received] = []
        super().__init__()

    def url(self, name: str = "hook", *, host: str = "127.0.0.1") -> str:
        """Address of a path."""
        return f"http://{host}:{self.port}/{name}"

    def at(self, name: str = "hook") -> list[Received]:
        """Requests to a path, in order."""
        return [request for request in self.requests if request.path == f"/{name}"]

    def _reply(self, name: str) -> Reply:
        replies = self.replies.get(name)
        if replies is None:
            return Reply()
        return replies.popleft() if len(replies) > 1 else replies[0]

    def handler(receiver) -> type[QuietHandler]:  # `self` is the request in here
        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Received(self.path, headers, body, time.monotonic()))
                reply = receiver._reply(self.path.lstrip("/"))
                self.close_connection = True
                if reply.hangs:
                    receiver.stopped.wait()
                    return
                try:
                    self.send_response(reply.status)
                    for name, value in ({"Content-Length": str(len(reply.body))} | reply.headers).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(reply.body)
                    while reply.drips and not receiver.stopped.wait(0.05):
                        self.wfile.write(b".")
                except OSError:
                    return  # the client has read enough

            do_GET = do_POST

        return Handler
