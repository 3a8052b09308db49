"""JSON at the door: a body is read within limits, parsed strictly, and only after the caller is known."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self, cast
from urllib.parse import unquote_to_bytes

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from app import errors
from app.api import auth, direct, idempotency, rights, trail
from app.config import Settings
from app.domain import again

SHAPE = "memoryd.shape"  #: key of the ASGI scope: how the errors of the route look
THREAD_BYTES = 256 * 1024  #: larger bodies are parsed in a thread, so that other requests go on meanwhile
MAX_CONTAINERS = 100_000  #: objects and lists in one body; ten thousand messages of several parts have fewer

#: A string, closed or not, or a run of opening brackets. A string that begins always matches, so the scan is linear.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{\[]+', re.DOTALL)


class Body(Protocol):
    """What the body of a route is read as: a pydantic model with two things of its own."""

    cleaned: ClassVar[frozenset[str]]  # fields in whose texts U+0000 is removed; elsewhere it is refused

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """Read parsed JSON. Raises: ValidationError."""

    def check(self, settings: Settings) -> None:
        """Refuse what passes a limit of the settings. Raises: InvalidRequest."""


class Shape(StrEnum):
    """How the body of an error looks; the routes differ, and clients know the differences."""

    DETAIL = "detail"  # {"detail"}
    ERROR = "error"  # {"error", "detail"}
    MESSAGE = "message"  # {"message", "detail"}
    ERRORS = "errors"  # 400: {"errors": {field: [text]}, "message", "detail"}; else as MESSAGE
    FIELDS = "fields"  # 400: {field: [text], "detail"}; else as ERROR
    BOTH = "both"  # {"error", "message", "detail"}
    LISTED = "listed"  # no owner named: [text]; else as ERROR
    ADD = "add"  # {"error": "400 Bad Request", "details": {"message"}, "detail"}


class Reply(Response):
    """A JSON answer. Aware datetimes are written in UTC with `Z`."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return `content` as UTF-8 JSON."""
        return orjson.dumps(content, option=orjson.OPT_UTC_Z)


class Route(APIRoute):
    """A route that knows its caller before it reads the body, and reads the body strictly."""

    guarded: ClassVar[bool] = True  #: False: anyone may call it
    shape: ClassVar[Shape] = Shape.DETAIL

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Put authentication and our own body reader in front of FastAPI's handler."""
        handle = direct.handler(self, super().get_route_handler())
        model = cast(type[Body], self.body_field.field_info.annotation) if self.body_field else None
        rule = idempotency.RULES.get(self.name)

        async def handler(request: Request) -> Response:
            request.scope[SHAPE] = self.shape
            _check_address(request.scope)
            if not self.guarded:
                return await answer(request)
            await auth.authenticate(request)
            with trail.acting(request):
                try:
                    rights.require(request.scope[auth.CALLER], self.name)
                    return await answer(request)
                except errors.NotAllowed:
                    await trail.note_refusal(request, self.name)
                    raise

        async def answer(request: Request) -> Response:
            key = None if rule is None else idempotency.key_of(request)
            body = b""
            if model is not None:
                settings: Settings = request.app.state.runtime.settings
                body = await _read(request, settings)
                request = _Loaded(request, await read(body, settings, model))
            if rule is None or key is None:
                return await again.if_lost(lambda: handle(request))
            return await again.if_lost(lambda: idempotency.once(request, handle, rule, key, body))

        return handler


def _check_address(scope: Scope) -> None:
    """Refuse a path or query that is not UTF-8: read leniently, `%ff` would become U+FFFD, which may be an id too."""
    try:
        unquote_to_bytes(scope["raw_path"]).decode()
        unquote_to_bytes(scope["query_string"]).decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidRequest("The address is not valid UTF-8.") from error


def router(shape: Shape, *, tag: str, guarded: bool = True) -> APIRouter:
    """Return a router whose routes render their errors in `shape`."""
    kind = type("Route", (Route,), {"shape": shape, "guarded": guarded})
    return APIRouter(
        route_class=kind, tags=[tag], redirect_slashes=False, generate_unique_id_function=lambda route: route.name
    )


class _Loaded(Request):
    """A request whose body is read and validated; FastAPI takes it as JSON, whatever content type the client named."""

    def __init__(self, request: Request, loaded: Body) -> None:
        headers = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
        super().__init__({**request.scope, "headers": [*headers, (b"content-type", b"application/json")]})
        self._loaded = loaded

    async def body(self) -> bytes:
        """Return something that is not empty: FastAPI asks whether there is a body."""
        return b"{}"

    async def json(self) -> Any:
        """Return the body; validating an instance of its model again costs nothing."""
        return self._loaded


async def read(body: bytes, settings: Settings, model: type[Body]) -> Body:
    """Return the JSON object in `body` as `model`. Raises: InvalidRequest, RequestValidationError."""
    if len(body) > THREAD_BYTES:
        return await asyncio.to_thread(load, body, settings, model)
    return load(body, settings, model)


async def _read(request: Request, settings: Settings) -> bytes:
    """Return the body. Raises: TooLarge, BodyTimeout."""
    limit = settings.max_body_bytes
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > limit:
                    raise _too_large(limit)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise errors.BodyTimeout(f"The body did not arrive within {settings.body_timeout_s:g} seconds.") from error


def _too_large(limit: int) -> errors.TooLarge:
    return errors.TooLarge(f"The body is larger than {limit} bytes; MEMORYD_MAX_BODY_BYTES sets this limit.")


def load(body: bytes, settings: Settings, model: type[Body]) -> Body:
    """Parse and validate. Raises: InvalidRequest, RequestValidationError."""
    value = parse(body, settings, cleaned=model.cleaned)
    try:
        loaded = model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RequestValidationError([{**first, "loc": ("body", *first["loc"])}]) from error
    loaded.check(settings)
    return loaded


def parse(body: bytes, settings: Settings, *, cleaned: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Parse a JSON object strictly: no NaN, Infinity, lone surrogates, invalid UTF-8 or excessive depth.

    Raises: InvalidRequest.
    """
    if not body.strip():
        raise errors.InvalidRequest("The body is empty; send a JSON object.")
    depth = settings.max_json_depth
    brackets = body.count(b"{") + body.count(b"[")
    if brackets > MAX_CONTAINERS and _containers(body, most=MAX_CONTAINERS) > MAX_CONTAINERS:
        # Millions of tiny lists fit into the body limit, and would hold the interpreter for seconds.
        raise errors.InvalidRequest(f"The body has more than {MAX_CONTAINERS} objects and lists.")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.InvalidRequest(f"The body is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise errors.InvalidRequest("The body must be a JSON object.")
    messages = value.get("messages")
    if isinstance(messages, list) and len(messages) > settings.max_messages:
        # Before anything looks at each of them: two hundred thousand tiny messages fit into the body limit.
        raise errors.InvalidRequest(
            f"messages has {len(messages)} items; at most {settings.max_messages} are taken (MEMORYD_MAX_MESSAGES)."
        )
    if brackets > depth:  # with fewer it cannot be deeper
        _check_depth(value, depth)
    if b"\\u0000" in body:  # the only way to write U+0000 in JSON
        value = {key: _without_nul(key, part, remove=key in cleaned) for key, part in value.items()}
    return value


def _containers(body: bytes, *, most: int) -> int:
    """Return how many objects and lists begin outside the strings of `body`, counting to just beyond `most`."""
    count = 0
    for token in _TOKEN.finditer(body):
        if not token[0].startswith(b'"'):
            count += len(token[0])
            if count > most:
                break
    return count


def _check_depth(value: Any, limit: int) -> None:
    """Raise InvalidRequest when `value` nests deeper than `limit`. A stack of its own instead of recursion."""
    level: list[Any] = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise errors.InvalidRequest(f"The body nests deeper than {limit} levels (MEMORYD_MAX_JSON_DEPTH).")


def _without_nul(field: str, value: Any, *, remove: bool) -> Any:
    """Return `value` with U+0000 removed from its texts, or refuse it. The depth is checked before."""
    if isinstance(value, str):
        if "\0" in value and not remove:
            raise errors.InvalidRequest(f"{_shown(field)} holds U+0000.")
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_without_nul(field, part, remove=remove) for part in value]
    if isinstance(value, dict):
        if any("\0" in key for key in value):
            raise errors.InvalidRequest(f"A key in {_shown(field)} holds U+0000.")
        return {key: _without_nul(field, part, remove=remove) for key, part in value.items()}
    return value


def _shown(field: str) -> str:
    return field.replace("\0", "")[:80] or "The body"
