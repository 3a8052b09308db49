"""What `openapi.yaml` says beside the routes themselves: the statuses that a route can answer, and their bodies."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from app.api import answers
from app.api.wire import Shape

Responses = dict[int | str, dict[str, Any]]

_MODELS: dict[Shape, type[BaseModel]] = {
    Shape.DETAIL: answers.Detail,
    Shape.ERROR: answers.Error,
    Shape.ADD: answers.AddError,
    Shape.MESSAGE: answers.Message,
    Shape.ERRORS: answers.Message,
    Shape.FIELDS: answers.Error,
    Shape.BOTH: answers.BothErrors,
    Shape.LISTED: answers.Error,
}
_INVALID: dict[Shape, Any] = {  # where the body of a 400 differs from the other errors
    Shape.ERRORS: answers.FieldErrors,
    Shape.FIELDS: answers.WebhookErrors,
    Shape.LISTED: answers.Error | list[str],
}
_MEANING = {
    400: "The request is not valid; the text names the field.",
    401: "No key, or not a valid one.",
    403: "The key may not do that.",
    404: "There is no such thing in this project.",
    408: "The body did not arrive in time.",
    409: "The present state does not allow it.",
    413: "The body is larger than a limit, or the project may keep no more memories; the text says which.",
    422: "The Idempotency-Key was used with another request.",
    429: "Too many requests of this project, or too much of it waits; `Retry-After` says when to try again.",
    500: "A fault of the service; the log has its cause under the request id.",
    501: "memoryd does not offer this.",
    502: "A model answered, and its answer is of no use.",
    503: "The database or a model does not answer; `Retry-After` says when to try again.",
}
_BODY = (400, 408, 413)  # what every route with a body can answer


def response(model: Any, description: str) -> dict[str, Any]:
    """Return one declared response."""
    return {"model": model, "description": description}


PAST_THE_END: Responses = {404: response(answers.Detail, "The page is past the end; its first page never is.")}
NOTHING_THERE: Responses = {
    404: response(
        answers.Error | answers.Detail, "There is no such thing in this project, or the page is past the end."
    )
}


def statuses(*codes: int, shape: Shape = Shape.DETAIL, guarded: bool = True, body: bool = False) -> Responses:
    """Return the errors that a route can answer: `codes`, and those that come with a key, a body and a database."""
    always = {400, 401, 403, 500, 503} if guarded else {500}
    wanted = sorted({*codes, *always, *(_BODY if body else ())})
    return {code: response(_model(code, shape), _MEANING[code]) for code in wanted}


def _model(code: int, shape: Shape) -> Any:
    if code == 401:
        return answers.Detail
    if code == 400 and shape in _INVALID:
        return _INVALID[shape]
    return answers.InternalError if code == 500 else _MODELS[shape]
