"""Everything that can go wrong, by what the caller can do about it.

AppError
├── InvalidRequest          400  fix the request
│   ├── OwnerRequired            name an owner
│   ├── TooLarge            413  send less; the text names the limit and its setting
│   ├── BodyTimeout         408  send faster
│   ├── OutboundRefused     400  an address that may not be called, or an answer that will not change
│   └── MediaUnreadable     400  an image or document that cannot be read
├── NotAuthenticated        401  show who you are
├── NotAllowed              403  this key may not do that
├── NotFound                404  look elsewhere
│   ├── MemoryNotFound
│   ├── EventNotFound
│   ├── WebhookNotFound
│   └── PageNotFound
├── QuotaExceeded           413  delete something, or let somebody raise the limit
├── Conflict                409  the state does not allow it
│   └── KeyReused           422  an idempotency key came back with another request
├── TryLater                503  nothing is wrong with the request
│   ├── RateLimited         429
│   ├── StillRunning        409  the same request, under the same idempotency key, has not ended yet
│   ├── DatabaseUnavailable 503
│   │   └── TransactionLost      another transaction won; run it again
│   ├── ModelUnavailable    503  a model or embedder did not answer (retryable)
│   ├── EmbedderUnavailable 503
│   └── OutboundUnavailable 503  an address of the caller's did not answer (retryable)
├── ShapeUnfilled           422  what is known does not fill the schema that was asked for
├── NotOffered              501  a part of the hosted interface that memoryd does not have
├── ModelRefused            502  a model answered, and the answer is of no use
├── EmbedderRefused         502  an embedder answered with other dimensions, NaN or too few vectors
├── SetupError              500  the operator must change something before memoryd can run
└── InternalError           500  a bug of ours; the log has it, the caller only this class's text

Adapters translate a driver's error once, with the cause kept. Doors render: the API as a status and a body, the worker
as a retry or a failed event, the command line as one line and exit code 1.
"""

from __future__ import annotations

from typing import Any, ClassVar


class AppError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "error"  #: stable, snake_case; part of the contract
    status: ClassVar[int] = 500  #: HTTP status at the API door
    retryable: ClassVar[bool] = False  #: the same call may succeed later

    def __init__(self, message: str | None = None, *, retry_after_s: int | None = None, **details: Any) -> None:
        """`message` is shown to the caller (default: the first line of the class docstring)."""
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.retry_after_s = retry_after_s
        self.details = details
        super().__init__(self.message)


class InvalidRequest(AppError):
    """The request is not valid."""

    code, status = "invalid_request", 400


class OwnerRequired(InvalidRequest):
    """One of the filters: app_id, user_id, agent_id, run_id is required!"""

    code = "owner_required"


class TooLarge(InvalidRequest):
    """The request is larger than a limit allows."""

    code, status = "too_large", 413


class BodyTimeout(InvalidRequest):
    """The body did not arrive in time."""

    code, status = "body_timeout", 408


class OutboundRefused(InvalidRequest):
    """The address must not be called."""

    code = "outbound_refused"


class MediaUnreadable(InvalidRequest):
    """The image or document cannot be read."""

    code = "media_unreadable"


class NotAuthenticated(AppError):
    """Invalid API key. Send it as `Authorization: Token <key>`; `memoryd keys create` makes one."""

    code, status = "not_authenticated", 401


class NotAllowed(AppError):
    """This key may not do that."""

    code, status = "not_allowed", 403


class NotFound(AppError):
    """Not found."""

    code, status = "not_found", 404


class MemoryNotFound(NotFound):
    """Memory not found!"""

    code = "memory_not_found"


class EventNotFound(NotFound):
    """Event not found or you don't have permission to access it."""

    code = "event_not_found"


class WebhookNotFound(NotFound):
    """Webhook not found"""

    code = "webhook_not_found"


class PageNotFound(NotFound):
    """Invalid page."""

    code = "page_not_found"


class QuotaExceeded(AppError):
    """Memory quota exceeded."""

    code, status = "quota_exceeded", 413


class Conflict(AppError):
    """The present state does not allow this."""

    code, status = "conflict", 409


class KeyReused(Conflict):
    """This Idempotency-Key was used for another request: another route, or another body. Choose a new key."""

    code, status = "idempotency_key_reused", 422


class TryLater(AppError):
    """Not possible at this moment; try again."""

    code, status, retryable = "try_later", 503, True


class RateLimited(TryLater):
    """Too many requests; try again later."""

    # details: limit, remaining, reset_at (seconds since 1970), where there is a limit for a time

    code, status = "rate_limited", 429


class StillRunning(TryLater):
    """The first request with this Idempotency-Key still runs; send this one again in a moment."""

    code, status = "still_running", 409


class DatabaseUnavailable(TryLater):
    """The database does not answer; try again."""

    code = "database_unavailable"


class TransactionLost(DatabaseUnavailable):
    """The database let another change win every time; try again."""


class ModelUnavailable(TryLater):
    """The language model does not answer."""

    code = "model_unavailable"


class EmbedderUnavailable(TryLater):
    """The embedder does not answer."""

    code = "embedder_unavailable"


class OutboundUnavailable(TryLater):
    """The address does not answer."""

    code = "outbound_unavailable"


class ShapeUnfilled(AppError):
    """The memories do not fill the schema."""

    code, status = "shape_unfilled", 422


class NotOffered(AppError):
    """not_yet_available: memoryd does not offer this."""

    code, status = "not_yet_available", 501


class ModelRefused(AppError):
    """The language model's answer is of no use."""

    code, status, retryable = "model_refused", 502, True


class EmbedderRefused(AppError):
    """The embedder's answer is of no use."""

    code, status = "embedder_refused", 502


class SetupError(AppError):
    """memoryd cannot run as it is set up."""

    code = "setup"


class InternalError(AppError):
    """Something went wrong inside memoryd; its log says what."""

    code, retryable = "internal", True
