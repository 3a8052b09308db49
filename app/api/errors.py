"""AppError → status and body. The only file that knows what the body of an error looks like."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app import errors, log
from app.api.trail import REQUEST_ID as REQUEST_ID
from app.api.wire import SHAPE, Reply, Shape

NO_FIELD = "non_field_errors"  #: where a text is shown that belongs to no field
RETRY_AFTER_S = 5  #: what a 503 advises when nothing better is known
_LIMITS = {"X-RateLimit-Limit": "limit", "X-RateLimit-Remaining": "remaining", "X-RateLimit-Reset": "reset_at"}
_SHOWN_CHARS = 500  #: a message may quote what the client sent, and that may be long

_log = log.get(__name__)


def install(app: FastAPI) -> None:
    """Render everything that goes wrong inside a route of `app`."""
    app.add_exception_handler(errors.AppError, _app_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)


def body_of(shape: Shape, status: int, message: str, *, field: str | None = None) -> dict[str, Any]:
    """Return the body: `detail` always, and beside it the key that the route's clients read.

    `field`: the field of the request that is wrong, where one is.
    """
    if status == 401:
        shape = Shape.DETAIL
    if shape is Shape.MESSAGE or (shape is Shape.ERRORS and status != 400):
        return {"message": message, "detail": message}
    if shape is Shape.ERRORS:
        return {"errors": {field or NO_FIELD: [message]}, "message": message, "detail": message}
    if shape is Shape.FIELDS and status == 400:
        return {field or NO_FIELD: [message], "detail": message}
    if shape is Shape.BOTH:
        return {"error": message, "message": message, "detail": message}
    if shape is Shape.ADD:
        return {
            "error": f"{status} {_PHRASES.get(status, 'Error')}",
            "details": {"message": message},
            "detail": message,
        }
    if shape in (Shape.ERROR, Shape.FIELDS, Shape.LISTED):
        return {"error": message, "detail": message}
    return {"detail": message}


_PHRASES = {
    400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict",
    413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests", 500: "Internal Server Error",
    502: "Bad Gateway", 503: "Service Unavailable",
}  # fmt: skip


def internal(scope: Scope) -> Reply:
    """Return the answer to a fault of ours: nothing from inside, and the id under which the log has it."""
    request_id = scope.get(REQUEST_ID)
    message = f"Internal error; the log has its cause under request id {request_id}."
    return Reply({"error": message, "detail": message, "request_id": request_id}, status_code=500)


async def _app_error(request: Request, error: Exception) -> Reply:
    assert isinstance(error, errors.AppError)
    if error.status == 500:
        _log.error("request.refused", code=error.code, error=error.message)
        return internal(request.scope)
    if error.status > 500:
        _log.warning("request.refused", code=error.code, error=error.message, cause=repr(error.__cause__))
    shape = Shape.DETAIL if isinstance(error, errors.PageNotFound) else request.scope.get(SHAPE, Shape.DETAIL)
    headers = {}
    if isinstance(error, errors.TryLater):
        headers["Retry-After"] = str(error.retry_after_s or RETRY_AFTER_S)
    headers |= {name: str(error.details[key]) for name, key in _LIMITS.items() if key in error.details}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Token"
    body = body_of(shape, error.status, _cut(error.message), field=error.details.get("field"))
    if shape is Shape.LISTED and isinstance(error, errors.OwnerRequired):
        return Reply([error.message], status_code=error.status)
    return Reply(body, status_code=error.status, headers=headers)


async def _validation_error(request: Request, error: Exception) -> Reply:
    assert isinstance(error, RequestValidationError)
    problem = error.errors()[0]
    field = str(problem["loc"][1]) if len(problem["loc"]) > 1 else None
    return await _app_error(request, errors.InvalidRequest(sentence(problem), field=field))


async def _http_exception(request: Request, error: Exception) -> Reply:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if error.status_code == 404:
        message = "There is no such route."
    elif error.status_code == 405:
        message = f"This route does not answer {request.method}."
    shape = request.scope.get(SHAPE, Shape.ERROR)
    return Reply(body_of(shape, error.status_code, message), status_code=error.status_code, headers=error.headers)


def sentence(problem: dict[str, Any]) -> str:
    """Return one problem of a validation as a sentence that names the field."""
    place = _place(problem["loc"])
    if problem["type"] == "missing":
        return f"{place or 'The body'} is required."
    reason = str(problem["msg"])
    if problem["type"] == "value_error":  # ours: a whole sentence, which follows the name of the field
        reason = reason.removeprefix("Value error, ")
        return f"{place} {reason}" if place else reason
    return f"{place}: {reason}." if place else f"{reason}."


def _place(loc: tuple[str | int, ...]) -> str:
    place = ""
    for part in loc[1:]:  # the first is body, query or path
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    return place


def _cut(message: str) -> str:
    return message if len(message) <= _SHOWN_CHARS else message[: _SHOWN_CHARS - 1] + "…"
