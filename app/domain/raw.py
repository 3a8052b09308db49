"""`infer: false`: the messages become memories as they are, at once, in the request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids

from app import errors
from app.domain import announce, dedupe, drafts, parts, remember
from app.domain.request import Request
from app.model import Event, Memory, Message, Project, Status, WebhookEvent
from app.runtime import Runtime
from app.store import events, messages, scopes
from app.store import memories as memory_store
from app.store.db import Conn

Skipped = dict[str, Any]  #: {"index", "role", "reason"} of a message that is not stored


async def store(
    rt: Runtime,
    project: Project,
    request: Request,
    payload: Mapping[str, Any],
    idempotency_key: str | None,
    body_print: bytes | None,
) -> Event:
    """Store the messages and return their finished event: results are the added memories, metadata tells what was skipped.

    Everything goes to the scope of all owners together. Nothing is stored when the embedder fails.
    Raises: InvalidRequest for more messages than a request can wait for; EmbedderUnavailable, EmbedderRefused, KeyReused,
    DatabaseUnavailable.
    """
    roles = project.settings.stored_roles
    # Before anything else is done with each of them.
    _check_count(sum(_reason(said, roles) is None for said in request.messages), most=rt.settings.max_raw_messages)
    kept, skipped = choose(request.messages, roles)
    now = datetime.now(UTC)  # for index terms of messages that name no time; rows get the database's
    said = stamped(kept, (request.timestamp or request.observation_at or now).astimezone(request.zone))
    async with rt.db.transaction(project.id) as conn:
        if idempotency_key is not None:
            earlier = await events.find_by_key(conn, project.id, idempotency_key, body_print)
            if earlier is not None:
                return earlier
        scope = await scopes.ensure(conn, project.id, request.owners)
        before = await messages.newest(conn, project.id, scope.id, 1)
        # In a thread: thousands of texts are analysed, and other requests go on meanwhile.
        found = await asyncio.to_thread(
            drafts.of_messages, said, before=before[0] if before else None, scope=scope, observed_at=now
        )
        known = await memory_store.known_hashes(conn, project.id, [(draft.scope_id, draft.hash) for draft in found])
    shared = remember.Shared(
        event_id=uuids.uuid7(),
        created_at=request.timestamp,
        metadata=request.metadata,
        immutable=request.immutable,
        expiration_date=request.expiration_date or project.settings.expiration_date,
    )
    prepared = await remember.prepare(rt, dedupe.new(found, known), shared)
    async with rt.db.transaction(project.id) as conn:
        event = await events.insert(
            conn,
            project.id,
            shared.event_id,
            "ADD",
            payload,
            status=Status.SUCCEEDED,
            scope_id=scope.id,
            target_scope_ids=[scope.id],
            idempotency_key=idempotency_key,
            idempotency_print=body_print,
        )
        if event.id != shared.event_id:  # the same request was just answered by another connection
            return event
        await messages.insert_many(conn, project.id, scope.id, event.id, said)
        stored = await remember.store(rt, conn, project.id, prepared)
        outcome: dict[str, Any] = {"facts": len(found), "duplicates": len(found) - len(stored)}
        if skipped:
            outcome["skipped"] = skipped
        event, following = await _told(conn, project.id, event.id, request, stored, outcome)
    await announce.ring(rt, following)
    return event


def _check_count(count: int, *, most: int) -> None:
    if count > most:
        raise errors.InvalidRequest(
            f"messages has {count} to store; at most {most} are taken with infer: false, because the answer waits for"
            " all of them (MEMORYD_MAX_RAW_MESSAGES). Send them in several requests."
        )


async def _told(
    conn: Conn, project_id: int, event_id: UUID, request: Request, stored: Sequence[Memory], outcome: Mapping[str, Any]
) -> tuple[Event, list[UUID]]:
    """Put down what came of the add, in its event and for whoever wants to hear of it; return the event, and what to ring."""
    results = remember.results(stored)
    following = await announce.changed(
        conn, project_id, WebhookEvent.MEMORY_ADD, stored, custom_categories=request.custom_categories
    )
    await events.record(conn, project_id, event_id, results, outcome)
    following += await announce.ingested(conn, project_id, event_id, request.owners, results)
    return await events.get(conn, project_id, event_id), following


def choose(said: Sequence[Message], roles: Sequence[str]) -> tuple[list[Message], list[Skipped]]:
    """Return the messages that are stored, and those that are not with their reasons; pure."""
    kept: list[Message] = []
    skipped: list[Skipped] = []
    for message in said:
        reason = _reason(message, roles)
        if reason is None:
            kept.append(replace(message, parts=()))
        if left_out := reason or _unread(message):
            skipped.append({"index": message.index, "role": message.role, "reason": left_out})
    return kept, skipped


def _reason(message: Message, roles: Sequence[str]) -> str | None:
    if message.role == "system":
        return "system messages are never stored"
    if message.role not in roles:
        return f"this project stores messages of {' and '.join(roles) or 'no role'} only"
    if not message.content.strip():
        return _unread(message) or "the message is blank"
    return None


def _unread(message: Message) -> str | None:
    """Return what is said about the images and documents of a message that is stored without them."""
    kinds = ", ".join(dict.fromkeys(part.kind for part in parts.media(message)))
    return f"parts of type {kinds} are read with infer: true only" if kinds else None


def stamped(said: Iterable[Message], said_at: datetime) -> tuple[Message, ...]:
    """Return the messages with an id, in order of saying, and the time."""
    return tuple(replace(message, id=uuids.uuid7(), said_at=said_at) for message in said)
