"""Calls a route's function without FastAPI's own handler, where all that it takes is known already.

FastAPI reads headers, body and dependencies anew for every request; that was a quarter of an add's work. What the hot
routes take is there before: the body is validated, the caller known, the runtime opened. A route that takes anything else
goes FastAPI's way, and so does the description of the interface for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

_known: dict[Any, Callable[[Request], Any]] = {}
_optional: dict[Any, str] = {}


def knows(dependency: Callable[..., Any], make: Callable[[Request], Any]) -> None:
    """Say what a dependency makes of a request, at once."""
    _known[dependency] = make


def absent(dependency: Callable[..., Any], header: str) -> None:
    """Say that a dependency makes None of a request without this header; one with it goes FastAPI's way."""
    _optional[dependency] = header.lower()


def handler(route: APIRoute, otherwise: Handler) -> Handler:
    """Return what calls the route's function; `otherwise` for what only FastAPI can make.

    A request with a body has it validated: its `json` returns the model.
    """
    wants = route.dependant
    if any((
        wants.path_params, wants.query_params, wants.header_params, wants.cookie_params, len(wants.body_params) > 1,
        wants.websocket_param_name, wants.http_connection_param_name, wants.response_param_name,
        wants.background_tasks_param_name, wants.security_scopes_param_name,
    )):  # fmt: skip
        return otherwise
    if any(one.name is None or not (one.call in _known or one.call in _optional) for one in wants.dependencies):
        return otherwise
    makes = [(str(one.name), _known[one.call]) for one in wants.dependencies if one.call in _known]
    if wants.request_param_name:
        makes.append((wants.request_param_name, lambda request: request))
    absences = [(str(one.name), _optional[one.call]) for one in wants.dependencies if one.call in _optional]
    body = next((field.name for field in wants.body_params), None)
    call: Callable[..., Coroutine[Any, Any, Response]] = route.endpoint

    async def direct(request: Request) -> Response:
        values: dict[str, Any] = {}
        for name, header in absences:
            if header in request.headers:
                return await otherwise(request)
            values[name] = None
        for name, make in makes:
            values[name] = make(request)
        if body is not None:
            values[body] = await request.json()
        return await call(**values)

    return direct
