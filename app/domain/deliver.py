"""Webhooks: put a change into the outbox, make one attempt at a delivery, decide what comes next."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from app import errors, log
from app.domain import attempt, signature
from app.model import Memory, Owners, Status, WebhookEvent
from app.providers import outbound
from app.runtime import Runtime
from app.store import announcements, deliveries, webhooks
from app.store.announcements import Notice
from app.store.db import Conn
from app.store.deliveries import Attempt, Claimed

LEASE_MARGIN_S = 20.0  #: beyond the time limit of a request, for a database that is slow to take the outcome
PER_ENDPOINT = 2  #: deliveries under way to one endpoint
ANSWER_BYTES = 1024  #: of an answer that the log keeps; more is not even read
LONGEST_WAIT_S = 86_400  #: a Retry-After beyond this is not obeyed
LONGEST_TEXT = 500  #: characters of a reason in the log

_GONE = 410
_EVENT_NAMES = {
    WebhookEvent.MEMORY_ADD: "ADD",
    WebhookEvent.MEMORY_UPDATE: "UPDATE",
    WebhookEvent.MEMORY_DELETE: "DELETE",
}

_log = log.get(__name__)


# Into the outbox


def of_memory(change: WebhookEvent, memory: Memory, event_id: UUID | None) -> Notice:
    """Return the notice of a memory that was added, changed or categorized, and is now as given."""
    if change is WebhookEvent.MEMORY_CATEGORIZE:
        details: dict[str, Any] = {
            "event": "CATEGORIZE",
            "memory_id": str(memory.id),
            "categories": list(memory.categories or ()),
        }
    else:
        details = {"id": str(memory.id), "data": {"memory": memory.text}, "event": _EVENT_NAMES[change]}
    return Notice(change, details, memory.owners, event_id or memory.event_id, memory.id)


def of_ingest(event_id: UUID, owners: Owners, results: Sequence[dict[str, Any]], *, cancelled: bool = False) -> Notice:
    """Return the notice of an add that has ended well. `cancelled`: a delete_all kept some or all of it from being stored."""
    kind = WebhookEvent.INGEST_JOB_COMPLETED
    if cancelled:
        kind = WebhookEvent.INGEST_JOB_PARTIALLY_COMPLETED if results else WebhookEvent.INGEST_JOB_CANCELLED
    details = {
        "event": kind.value.upper(),
        "event_id": str(event_id),
        "status": Status.SUCCEEDED.value,
        "results": list(results),
        "error": None,
    }
    return Notice(kind, details, owners, event_id)


async def announce(conn: Conn, project_id: int, changes: Sequence[Notice]) -> int:
    """Write a delivery for every change and every active endpoint that asks for it, in the caller's transaction.

    Return how many; ring for them after the commit, or the next sweep finds them.
    """
    return await announcements.insert(conn, project_id, changes)


# One attempt


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from an attempt."""

    status: Status
    delay_s: float = 0.0  # until the next attempt, with PENDING
    gone: bool = False  # the endpoint says that it is no more


def body(claimed: Claimed) -> bytes:
    """Return the JSON that is sent: the same bytes at every attempt."""
    delivery = claimed.delivery
    sent = {
        "event_details": delivery.details,
        "event_type": delivery.event_type,
        "event_id": delivery.event_id,
        "project_id": claimed.project,
        **delivery.owners.named(),
        "timestamp": delivery.created_at,
        "sequence": delivery.seq,
    }
    return orjson.dumps(sent, option=orjson.OPT_UTC_Z)


async def once(rt: Runtime, claimed: Claimed) -> Verdict | None:
    """Make one attempt at a claimed delivery, put down what came of it, and return it; None: another worker has it now.

    Raises: DatabaseUnavailable when the outcome could not be put down; the lease runs out then, and it is sent again.
    """
    made, retry_after_s = await _post(rt, claimed)
    verdict = judge(made, claimed.delivery.attempts, rt.settings.webhook_delays_s, retry_after_s)
    held = await attempt.settle(rt, claimed.delivery.project_id, lambda conn: _record(rt, conn, claimed, made, verdict))
    return verdict if held else None


async def give_back(rt: Runtime, claimed: Claimed) -> bool:
    """Return the delivery undone, at no cost of an attempt: this worker stops. False: another one has it."""
    delivery = claimed.delivery
    return await attempt.settle(rt, delivery.project_id, lambda conn: deliveries.release(conn, delivery))


async def _post(rt: Runtime, claimed: Claimed) -> tuple[Attempt, int | None]:
    """Send the request; return what came of it, and how long the answer asks to wait."""
    content = body(claimed)
    signed = signature.headers(claimed.secrets, str(claimed.delivery.id), claimed.now, content)
    began = time.perf_counter()
    try:
        answer = await outbound.request(
            "POST",
            claimed.url,
            networks=rt.settings.outbound_allow_nets,
            timeout_s=rt.settings.webhook_timeout_s,
            max_bytes=ANSWER_BYTES,
            headers={"Content-Type": "application/json", **signed},
            content=content,
        )
    except (errors.OutboundRefused, errors.OutboundUnavailable) as error:
        text = log.redact(error.message)[:LONGEST_TEXT]
        return Attempt(claimed.now, None, _ms_since(began), error.code, text), None
    response = answer.body.decode(errors="replace").replace("\0", "")
    retry_after_s = outbound.retry_after_s(answer.headers.get("retry-after", ""), longest_s=LONGEST_WAIT_S)
    return Attempt(claimed.now, answer.status, _ms_since(began), response=response), retry_after_s


def judge(made: Attempt, attempts: int, delays_s: Sequence[float], retry_after_s: int | None) -> Verdict:
    """Return what follows from the attempt that was the last of `attempts`. Only 2xx is a success."""
    if made.status_code is not None and 200 <= made.status_code < 300:
        return Verdict(Status.SUCCEEDED)
    gone = made.status_code == _GONE
    if gone or attempts > len(delays_s):
        return Verdict(Status.FAILED, gone=gone)
    delay_s = delays_s[max(attempts, 1) - 1] * random.uniform(1 - attempt.JITTER, 1 + attempt.JITTER)
    return Verdict(Status.PENDING, max(delay_s, float(retry_after_s or 0)))


async def _record(rt: Runtime, conn: Conn, claimed: Claimed, made: Attempt, verdict: Verdict) -> bool:
    # The endpoint before the delivery, as everybody who deletes an endpoint.
    delivery = claimed.delivery
    if verdict.status is Status.SUCCEEDED:
        await webhooks.succeeded(conn, delivery.project_id, delivery.endpoint_id)
    else:
        await _note_failure(rt, conn, claimed, gone=verdict.gone)
    return await deliveries.settle(conn, delivery, made, verdict.status, delay_s=verdict.delay_s)


async def _note_failure(rt: Runtime, conn: Conn, claimed: Claimed, *, gone: bool) -> None:
    place = claimed.delivery.project_id, claimed.delivery.endpoint_id
    failing_s = await webhooks.failed(conn, *place, streak_s=deliveries.STREAK_S)
    days = rt.settings.webhook_disable_days
    if failing_s is None or not (gone or failing_s > days * 86_400):
        return
    reason = "The endpoint answered 410 Gone." if gone else f"Every attempt has failed for {days:g} days."
    await webhooks.disable(conn, *place, reason)
    _log.warning("webhook.disabled", webhook=claimed.delivery.endpoint_id, reason=reason)


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
