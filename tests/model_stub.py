"""A chat model for tests: a real HTTP server on loopback that says what it is told to, well or badly."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tests.loopback import Loopback, QuietHandler

Fault = Literal["hang", "drip", "drop"]  # never answers; answers a byte at a time, for ever; closes the connection


@dataclass(frozen=True)
class Reply:
    """One HTTP answer, or the lack of one."""

    status: int = 200
    body: Any = None  # bytes go out as they are, all else as JSON
    headers: dict[str, str] = field(default_factory=dict)
    fault: Fault | None = None


def says(content: Any, *, finish: str = "stop", **message: Any) -> Reply:
    """A completion whose message has `content`: text as it is, all else as JSON text. `message`: further fields of it."""
    text = content if content is None or isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return Reply(body={"id": "chatcmpl-1", "object": "chat.completion", "model": "stub", "choices": [choice]})


def fails(status: int, message: str = "no", **headers: str) -> Reply:
    """An error in the usual shape. Header names are written with underscores."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": {"message": message, "type": "error"}}, names)


Script = Reply | Callable[[dict[str, Any]], Reply]


class ModelStub(Loopback):
    """Answers `POST /v1/chat/completions` from a script, then with `default`. Use as a context manager."""

    def __init__(self, *script: Script, default: Script | None = None) -> None:
        self.script: deque[Script] = deque(script)
        self.default = default  # None: 500 for a request too many
        self.refused: dict[str, str] = {}  # key of a request, or a type of response_format → what the refusal says
        self.refusal_status = 400
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        super().__init__()

    @property
    def url(self) -> str:
        """Base URL, as a setting would have it."""
        return f"http://127.0.0.1:{self.port}/v1"

    def prompts(self, role: str = "user") -> list[str]:
        """The first message of `role` in each request."""
        return [next(turn["content"] for turn in asked["messages"] if turn["role"] == role) for asked in self.requests]

    def then(self, *script: Script) -> Self:
        """Add to the script."""
        self.script.extend(script)
        return self

    def _reply(self, asked: dict[str, Any]) -> Reply:
        for key, words in self.refused.items():
            if key in asked or asked.get("response_format", {}).get("type") == key:
                return fails(self.refusal_status, words)
        step = self.script.popleft() if self.script else self.default
        if step is None:
            return fails(500, "the script has ended")
        return step if isinstance(step, Reply) else step(asked)

    def handler(stub) -> type[QuietHandler]:  # `self` is the request in here
        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                asked = json.loads(body)
                stub.requests.append(asked)
                stub.headers.append({name.lower(): value for name, value in self.headers.items()})
                stub.paths.append(self.path)
                reply = stub._reply(asked)
                self.close_connection = True
                if reply.fault == "hang":
                    stub.stopped.wait()
                elif reply.fault == "drip":
                    self._send(reply, [b" "], length=10**9)
                    self._drip()
                elif reply.fault is None:
                    data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                    self._send(reply, [data], length=len(data))

            def _send(self, reply: Reply, parts: Iterable[bytes], *, length: int) -> None:
                headers = {"Content-Type": "application/json", "Content-Length": str(length), "Connection": "close"}
                self.send_response(reply.status)
                for name, value in (headers | reply.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                for part in parts:
                    self.wfile.write(part)

            def _drip(self) -> None:
                try:
                    while not stub.stopped.wait(0.01):
                        self.wfile.write(b" ")
                except OSError:
                    return  # the client has had enough

        return Handler
