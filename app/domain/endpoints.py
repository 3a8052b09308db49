"""Webhook endpoints of a project: make, change, delete, rotate the secret, send again. What is sent is decided elsewhere."""

from __future__ import annotations

import base64
import ipaddress
import secrets
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote, urlsplit
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.domain import audit, project_settings, signature
from app.model import Caller, Endpoint, Project, WebhookEvent
from app.providers import addresses, outbound
from app.runtime import Runtime
from app.store import deliveries, webhooks

SECRET_BYTES = 32  #: of randomness; Standard Webhooks asks for 24 to 64
URL_CHARS = 2048


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request says of an endpoint; None: nothing."""

    name: object = None
    url: object = None
    event_types: object = None
    is_active: bool | None = None


async def create(rt: Runtime, caller: Caller, wanted: Wanted) -> tuple[Endpoint, str]:
    """Make an endpoint of the caller's project; return it with the secret, which no answer shows again.

    Raises: InvalidRequest, which names the field.
    """
    name, kinds = _name(wanted.name), event_types(wanted.event_types)
    url = await checked_url(rt, wanted.url)
    secret = _new_secret()
    async with rt.db.transaction(caller.project.id) as conn:
        made = await webhooks.insert(
            conn,
            caller.project.id,
            name=name,
            url=url,
            event_types=kinds,
            is_active=wanted.is_active is not False,
            owner=caller.email,
            secret=secret,
        )
        await audit.note(conn, "webhook.create", project=caller.project, objects=[made.id])
    return made, secret


async def update(rt: Runtime, caller: Caller, id: str, wanted: Wanted) -> Endpoint:
    """Change what is wanted of an endpoint; a refusal changes nothing.

    Raises: WebhookNotFound, InvalidRequest.
    """
    name = None if wanted.name is None else _name(wanted.name)
    kinds = None if wanted.event_types is None else event_types(wanted.event_types)
    url = None if wanted.url is None else await checked_url(rt, wanted.url)
    async with rt.db.transaction(caller.project.id) as conn:
        changed = await webhooks.update(
            conn, caller.project.id, id, name=name, url=url, event_types=kinds, is_active=wanted.is_active
        )
        await audit.note(conn, "webhook.update", project=caller.project, objects=[id])
        return changed


async def delete(rt: Runtime, caller: Caller, id: str) -> None:
    """Delete an endpoint. Raises: WebhookNotFound."""
    async with rt.db.transaction(caller.project.id) as conn:
        await webhooks.delete(conn, caller.project.id, id)
        await audit.note(conn, "webhook.delete", project=caller.project, objects=[id])


async def rotate(rt: Runtime, project: Project, id: str) -> tuple[str, datetime]:
    """Sign with a new secret; return it, and until when the old one signs beside it. Raises: WebhookNotFound."""
    secret = _new_secret()
    async with rt.db.transaction(project.id) as conn:
        until = await webhooks.rotate(conn, project.id, id, secret, overlap_s=rt.settings.webhook_overlap_s)
        await audit.note(conn, "webhook.rotate", project=project, objects=[id])
    return secret, until


async def replay(rt: Runtime, project: Project, id: str, delivery_id: UUID | None) -> int:
    """Send a delivery again under its old id, or without `delivery_id` every one that failed; return how many.

    Raises: WebhookNotFound, NotFound; Conflict when the endpoint is not active, or the delivery is just being attempted.
    """
    async with rt.db.transaction(project.id) as conn:
        if not (await webhooks.get(conn, project.id, id)).is_active:
            raise errors.Conflict("The webhook is not active; activate it first.")
        count = 1
        if delivery_id is None:
            count = await deliveries.replay_failed(conn, project.id, id)
        else:
            await deliveries.replay(conn, project.id, id, delivery_id)
        await audit.note(conn, "webhook.replay", project=project, objects=[id, delivery_id or "*"])
    if count:
        await rt.queue.ring(delivery_id or uuid7())
    return count


def _new_secret() -> str:
    return signature.PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def event_types(value: object) -> list[WebhookEvent]:
    """Return the events that an endpoint asks for, each once; `memory:add` is `memory_add`. Raises: InvalidRequest."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given:
        raise errors.InvalidRequest("event_types must be a list of one event or more.", field="event_types")
    return list(dict.fromkeys(_event_type(item) for item in given))


def _event_type(value: object) -> WebhookEvent:
    try:
        return WebhookEvent(value.strip().replace(":", "_") if isinstance(value, str) else "")
    except ValueError:
        raise errors.InvalidRequest(
            f"event_types: {str(value)[:80]!r} is not an event; there are {', '.join(WebhookEvent)}.",
            field="event_types",
        ) from None


async def checked_url(rt: Runtime, value: object) -> str:
    """Return a URL that may be called: http or https, without a password, to addresses that are public or opened.

    A name that does not resolve is taken: it may resolve later, and the address is checked again at each call.
    Raises: InvalidRequest.
    """
    url = value.strip() if isinstance(value, str) else ""
    host = _host(url)
    port = urlsplit(url).port
    networks = rt.settings.outbound_allow_nets
    for address in await _addresses(host):
        if not addresses.allowed(address, networks):
            raise _refused(
                f"points to {address}, which is not a public address; MEMORYD_OUTBOUND_ALLOW_NETS opens networks."
            )
        if port not in (None, *outbound.PORTS) and not addresses.opened(address, networks):
            raise _refused(
                "must use port 80 or 443 of a public host; MEMORYD_OUTBOUND_ALLOW_NETS opens networks on any port."
            )
    return url


async def _addresses(host: str) -> list[addresses.Address]:
    try:
        return [ipaddress.ip_address(host.partition("%")[0])]
    except ValueError:
        return await addresses.resolve(host)


def _host(url: str) -> str:
    """Return the host of a URL, after a look at all of it. Raises: InvalidRequest."""
    if not url or len(url) > URL_CHARS:
        raise _refused(f"must be a URL of 1 to {URL_CHARS} characters.")
    if "\\" in url or any(character.isspace() or ord(character) < 32 for character in url):
        raise _refused("must be a URL without spaces and backslashes.")
    try:
        parts = urlsplit(url)
        host, port = unquote(parts.hostname or ""), parts.port
    except ValueError as error:
        raise _refused("is not a valid URL.") from error
    if parts.scheme not in ("http", "https"):
        raise _refused("must begin with http:// or https://.")
    if "@" in parts.netloc:
        raise _refused("must not hold a user name or a password.")
    if not host or port == 0:
        raise _refused("must name a host.")
    return host


def _refused(reason: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(f"url {reason}", field="url")


def _name(value: object) -> str:
    try:
        return project_settings.named(value)
    except ValueError as error:
        raise errors.InvalidRequest(f"name {error}", field="name") from error
