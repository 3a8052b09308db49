"""Who calls: the key in the header becomes a Caller before the body is read."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.types import Scope

from app import errors, log, model
from app.api import direct
from app.domain import access
from app.runtime import Runtime

CALLER = "memoryd.caller"  #: key of the ASGI scope
RUNTIME = "memoryd.runtime"  #: the same: what the route works with, where it is not the runtime of the process
_SCHEMES = frozenset({"token", "bearer"})

_log = log.get(__name__)


def secret_of(request: Request) -> str | None:
    """Return the key that the request carries, or None. `Authorization` wins over `X-API-Key`."""
    scheme, _, secret = request.headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() in _SCHEMES and secret.strip():
        return secret.strip()
    return request.headers.get("x-api-key", "").strip() or None


async def authenticate(request: Request) -> None:
    """Remember the caller in the request.

    Raises: NotAuthenticated, DatabaseUnavailable. What the caller may do, `rights` says.
    """
    secret = secret_of(request)
    if secret is None:
        raise errors.NotAuthenticated(
            "Authentication credentials were not provided. Send `Authorization: Token <key>`."
        )
    request.scope[CALLER] = await access.authenticate(request.app.state.runtime, secret)


async def note_use(scope: Scope) -> None:
    """Write down that the caller's key was used; after the answer, and at most once a minute a key."""
    caller: model.Caller | None = scope.get(CALLER)
    if caller is None:
        return
    try:
        await access.note_use(scope["app"].state.runtime, caller)
    except errors.AppError as error:  # a time that is shown to people; the request itself is answered
        _log.warning("key.use_not_noted", code=error.code)


async def _caller(request: Request) -> model.Caller:
    caller: model.Caller = request.scope[CALLER]
    return caller


async def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.scope.get(RUNTIME) or request.app.state.runtime
    return runtime


direct.knows(_caller, lambda request: request.scope[CALLER])
direct.knows(_runtime, lambda request: request.scope.get(RUNTIME) or request.app.state.runtime)

Caller = Annotated[model.Caller, Depends(_caller)]
RuntimeDep = Annotated[Runtime, Depends(_runtime)]
