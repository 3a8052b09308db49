"""What every HTTP request passes before FastAPI sees it: one form of its path, one id, one log line."""

from __future__ import annotations

import re
import secrets
import time
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import log, metrics
from app.api import auth, stats
from app.api import errors as rendering

_BARE = frozenset(
    {b"/healthz", b"/readyz", b"/metrics", b"/openapi.json"}
)  #: paths that are known without a slash at the end
_GIVEN_ID = re.compile(r"[A-Za-z0-9._:\-]{1,128}")
_CLIENT_GONE = 499  # nginx's status for a client that left; only in the log

_log = log.get("app.api")


class Paths:
    """Serves both slash forms directly, collapses leading slashes, and keeps segments encoded.

    Some clients drop the body or the key when they are redirected, and an id that holds an encoded slash must stay in
    its segment: routes see the raw path, and handlers decode a parameter once.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Rewrite the path and go on."""
        if scope["type"] == "http":
            raw = scope.get("raw_path") or quote(scope["path"]).encode()
            raw = b"/" + raw.lstrip(b"/")
            # A slash is added, never removed: `/v1/memories//` is a delete of no id, not a delete of everything.
            if raw.rstrip(b"/") in _BARE:
                raw = raw.rstrip(b"/")
            elif not raw.endswith(b"/"):
                raw += b"/"
            scope = {**scope, "path": raw.decode("latin-1"), "raw_path": raw}
        await self._app(scope, receive, send)


class Requests:
    """Gives a request its id and a log line, and answers for whatever nobody expected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request with its id bound to every log line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN_ID.fullmatch(given) else secrets.token_hex(16)
        scope[rendering.REQUEST_ID] = request_id
        watch = _Watch(request_id, receive, send)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._run(scope, watch)
            try:
                await auth.note_use(scope)
                await stats.note_read(scope, watch.status)
            except Exception:  # noqa: BLE001 — the answer is sent: what is only noted must not cost the connection
                _log.exception("request.not_noted")

    async def _run(self, scope: Scope, watch: _Watch) -> None:
        try:
            await self._app(scope, watch.receive, watch.send)
        except ClientDisconnect:
            watch.status = _CLIENT_GONE
        except Exception:  # noqa: BLE001 — the door: no request may take the server down or show what is inside
            _log.exception("request.failed")
            if watch.status == 0:
                await rendering.internal(scope)(scope, watch.receive, watch.send)
        caller = scope.get(auth.CALLER)
        took_s = time.perf_counter() - watch.started
        route = getattr(scope.get("route"), "path", None)  # the template: a path may hold somebody's name
        metrics.request(scope["method"], route, watch.status, took_s)
        _log.info(
            "request",
            method=scope["method"],
            route=route,
            status=watch.status,
            ms=round(took_s * 1000, 1),
            bytes_in=watch.bytes_in,
            bytes_out=watch.bytes_out,
            project_id=caller.project.public_id if caller else None,
            key_id=str(caller.key_id) if caller else None,
        )


class _Watch:
    """Counts what goes in and out of one request."""

    def __init__(self, request_id: str, receive: Receive, send: Send) -> None:
        self._request_id = request_id
        self._receive = receive
        self._send = send
        self.started = time.perf_counter()
        self.status = 0  # no answer yet
        self.bytes_in = 0
        self.bytes_out = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.bytes_in += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(raw=message["headers"])["X-Request-ID"] = self._request_id
        self.bytes_out += len(message.get("body", b""))
        await self._send(message)
