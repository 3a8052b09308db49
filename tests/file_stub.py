"""A host for tests: a real HTTP server on loopback that serves files, well or badly, and keeps what was asked."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from tests.loopback import Loopback, QuietHandler


@dataclass(frozen=True)
class Served:
    """One answer, or the lack of one."""

    body: bytes = b""
    mime: str | None = "text/plain; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    fault: Literal["drip", "endless", "hang"] | None = None  # a byte at a time; without an end; never


class FileStub(Loopback):
    """Answers `GET` by path, and in turn where a path has several answers, the last for ever. A context manager."""

    def __init__(self, **files: Served | list[Served]) -> None:
        self.files = {name: deque(given if isinstance(given, list) else [given]) for name, given in files.items()}
        self.requests: list[tuple[str, str, dict[str, str]]] = []  # method, path, headers in lower case
        super().__init__()

    def url(self, name: str, *, host: str = "127.0.0.1") -> str:
        """Address of a file."""
        return f"http://{host}:{self.port}/{name}"

    def _served(self, name: str) -> Served:
        answers = self.files.get(name)
        if answers is None:
            return Served(b"not here", status=404)
        return answers.popleft() if len(answers) > 1 else answers[0]

    def handler(stub) -> type[QuietHandler]:  # `self` is the request in here
        class Handler(QuietHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                stub.requests.append((self.command, self.path, headers))
                served = stub._served(self.path.lstrip("/").partition("?")[0])
                self.close_connection = True
                if served.fault == "hang":
                    stub.stopped.wait()
                    return
                length = len(served.body) if served.fault is None else 10**12
                self.send_response(served.status)
                named = {} if served.mime is None else {"Content-Type": served.mime}
                for name, value in (named | {"Content-Length": str(length)} | served.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self._write(served)

            do_POST = do_GET

            def _write(self, served: Served) -> None:
                pause_s, part = (0.01, b" ") if served.fault == "drip" else (0.0, b" " * 65536)
                try:
                    self.wfile.write(served.body)
                    while served.fault and not stub.stopped.wait(pause_s):
                        self.wfile.write(part)
                except OSError:
                    return  # the client has had enough

        return Handler
