"""What happens when I add: `accept` in the request, `process` in the worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids

from app import errors, log, metrics
from app.domain import (
    again,
    announce,
    attempt,
    attribute,
    backlog,
    checkpoint,
    dedupe,
    drafts,
    echo,
    extract,
    media,
    merge,
    pins,
    procedure,
    quota,
    raw,
    remember,
    supersede,
    together,
)
from app.domain.conversation import Conversation, Found
from app.domain.request import Request as Request
from app.domain.request import fingerprint, from_payload, to_payload
from app.model import (
    Caller,
    Condition,
    Event,
    Fact,
    Memory,
    Message,
    NewMemory,
    Operator,
    Owners,
    Project,
    Scope,
    State,
    Status,
    WebhookEvent,
)
from app.runtime import Runtime
from app.store import claims, events, messages, orgs, scopes, search
from app.store import memories as memory_store
from app.store.arrivals import Arrival
from app.store.db import Conn

EARLIER = 10  #: messages of the scope that an extractor sees from before, as on the v3 platform
EXISTING = 10  #: nearest memories that it sees, as there
STANDING = Condition("state", Operator.EQ, State.ACTIVE.value)  #: what is no longer so would only mislead it
CONTEXT_CHARS = 6000  #: of the new conversation, its end, are compared with memories; an embedder reads no more

_log = log.get(__name__)

QUEUED = "Memory processing has been queued for background execution"
STORED = "Memories stored successfully"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to an add."""

    event: Event
    message: str
    results: list[dict[str, Any]] | None = None  # None: the event's outcome will have them
    skipped: tuple[dict[str, Any], ...] = ()  # messages that `infer: false` did not store, each with its reason


async def accept(rt: Runtime, caller: Caller, request: Request, *, idempotency_key: str | None = None) -> Accepted:
    """Commit the event of this add and ring the worker; with `infer: false`, store the messages at once.

    With an `idempotency_key` that was used for the same request, return its event again.
    Raises: InvalidRequest for images and documents that nobody here reads; RateLimited, QuotaExceeded; KeyReused; DatabaseUnavailable;
    for `infer: false` also EmbedderUnavailable and EmbedderRefused.
    """
    pins.require(caller, request.owners, *_owners_of(caller, request))
    payload = to_payload(request)
    body_print = None if idempotency_key is None else fingerprint("ADD", payload)
    await quota.spend(rt, caller.project, "adds")
    await _require_room(rt, caller, request, idempotency_key, body_print)
    if not request.infer:
        event = await raw.store(rt, caller.project, request, payload, idempotency_key, body_print)
        skipped = tuple((event.metadata or {}).get("skipped", ()))
        return Accepted(event, STORED, results=event.results, skipped=skipped)
    media.check(rt, request)
    await backlog.require_room(rt, caller.project)
    event = await _insert(rt, caller, request, payload, idempotency_key, body_print)
    metrics.count("events_accepted")
    await rt.queue.ring(event.id)
    # A repeat gets the answer of the first time, whatever has become of the event meanwhile.
    return Accepted(event if event.status is Status.PENDING else replace(event, status=Status.PENDING), QUEUED)


async def _insert(
    rt: Runtime,
    caller: Caller,
    request: Request,
    payload: dict[str, Any],
    idempotency_key: str | None,
    body_print: bytes | None,
) -> Event:
    """Commit the event of an add, together with those that arrive at the same time; with a key, by itself."""
    project_id = caller.project.id
    # The scope of all owners keeps the conversation and the order; the memories may go to scopes of their own.
    arrival = Arrival(uuids.uuid7(), payload, request.owners, _owners_of(caller, request))
    if idempotency_key is None:
        chars = sum(len(message.content) for message in request.messages)
        event = await together.insert(rt.db, project_id, arrival, chars=chars)
        if event is not None:
            return event
    async with rt.db.transaction(project_id) as conn:
        scope = await scopes.ensure(conn, project_id, request.owners)
        targets = [
            scope if owners == request.owners else await scopes.ensure(conn, project_id, owners)
            for owners in arrival.targets
        ]
        return await events.insert(
            conn,
            project_id,
            arrival.event_id,
            "ADD",
            payload,
            scope_id=scope.id,
            target_scope_ids=[target.id for target in targets],
            idempotency_key=idempotency_key,
            idempotency_print=body_print,
        )


async def _require_room(
    rt: Runtime, caller: Caller, request: Request, idempotency_key: str | None, body_print: bytes | None
) -> None:
    """Refuse an add that the project has no room for, unless it is the repeat of one that was accepted."""
    if caller.project.settings.max_memories is None:
        return
    async with rt.db.acquire(caller.project.id) as conn:
        key = idempotency_key
        if key is not None and await events.find_by_key(conn, caller.project.id, key, body_print) is not None:
            return
        await quota.require_room(conn, caller.project, 1 if request.infer else len(request.messages))


def _owners_of(caller: Caller, request: Request) -> tuple[Owners, ...]:
    """Return the owners that memories of this add may belong to."""
    split = caller.project.settings.split_by_attribution and request.memory_type != procedure.KIND and request.infer
    return attribute.targets(request.owners, split=split)


async def process(rt: Runtime, event: Event) -> attempt.Outcome:
    """Turn a claimed event into memories and finish it, put it off, or fail it; return which.

    Safe to run twice: only the holder of the claim changes anything, and everything is written in one transaction.
    Raises: errors that mean a bug of ours; DatabaseUnavailable when the outcome could not be put down.
    """
    return await attempt.run(rt, event, _work(rt, event))


@dataclass(frozen=True, slots=True)
class _Add:
    """A claimed add with what it is processed with."""

    event: Event
    project: Project
    request: Request
    messages: tuple[Message, ...]  # as they will be stored: with id and time, without system messages
    earlier: tuple[Message, ...]  # what was said before in its scope, oldest first
    targets: tuple[Scope, ...]  # in the order of attribute.targets
    kept: checkpoint.Kept  # what an earlier attempt has found, and the texts of images and documents

    @property
    def is_procedure(self) -> bool:
        return self.request.memory_type == procedure.KIND


async def _work(rt: Runtime, event: Event) -> int:
    add = await _load(rt, event)
    extracted = await _extracted(rt, add)
    found = drafts.of_facts(
        extracted.facts,
        add.messages,
        before=add.earlier[-1] if add.earlier else None,
        targets=add.targets,
        observed_at=_observed_at(add.request, event),
    )
    if not add.request.temporal_reasoning:
        found = [replace(draft, happened_from=None, happened_to=None) for draft in found]
    async with rt.db.acquire(event.project_id) as conn:
        pairs = [(draft.scope_id, draft.hash) for draft in found]
        known = await memory_store.known_hashes(conn, event.project_id, pairs)
    fresh = dedupe.new(found, known)
    shared = remember.Shared(
        event_id=event.id,
        created_at=_created_at(add),
        metadata=_metadata(add),
        immutable=add.request.immutable,
        expiration_date=add.request.expiration_date or add.project.settings.expiration_date,
    )
    prepared = await remember.prepare(rt, fresh, shared)
    stored = await again.if_lost(lambda: _commit(rt, add, extracted, found, prepared))
    return len(stored)


def _created_at(add: _Add) -> datetime:
    # The time of acceptance, not of processing: the order of work then changes nothing that is remembered.
    return add.request.timestamp or add.event.created_at


def _metadata(add: _Add) -> dict[str, Any] | None:
    return {**(add.request.metadata or {}), "memory_type": procedure.KIND} if add.is_procedure else add.request.metadata


async def _load(rt: Runtime, event: Event) -> _Add:
    try:
        request = from_payload(event.payload)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise errors.InvalidRequest("This release cannot read the stored request; send it again.") from error
    kept = await _read_media(rt, event, request)
    async with rt.db.acquire(event.project_id) as conn:
        project = await orgs.get_project(conn, event.project_id)
        earlier: list[Message] = []
        if event.scope_id is not None:
            earlier = await messages.newest(conn, event.project_id, event.scope_id, EARLIER)
    split = attribute.targets(request.owners, split=len(event.target_scope_ids) > 1)
    targets = (Scope(event.project_id, n, owners) for n, owners in zip(event.target_scope_ids, split, strict=True))
    said_at = _observed_at(request, event)
    texts = kept.texts or {}
    said = (replace(m, content=texts.get(m.index, m.content), parts=()) for m in request.messages)
    stored = raw.stamped((m for m in said if m.role != "system" and m.content.strip()), said_at)
    return _Add(event, project, request, stored, tuple(earlier), tuple(targets), kept)


async def _read_media(rt: Runtime, event: Event, request: Request) -> checkpoint.Kept:
    """Return what is known already, and the texts of images and documents, which are read once for all attempts.

    Raises: as media.texts; Fenced.
    """
    kept = _kept(event)
    if kept.texts is not None or kept.facts is not None:
        return kept
    texts = await media.texts(rt, request)
    return await _keep(rt, event, checkpoint.Kept(texts)) if texts else kept


def _kept(event: Event) -> checkpoint.Kept:
    try:
        return checkpoint.read(event.checkpoint)
    except (KeyError, TypeError, ValueError, AttributeError):  # a newer release wrote it, or nobody of ours
        _log.warning("checkpoint.unreadable", event_id=str(event.id))
        return checkpoint.Kept()


async def _keep(rt: Runtime, event: Event, kept: checkpoint.Kept) -> checkpoint.Kept:
    async with rt.db.acquire(event.project_id) as conn:
        if not await claims.save_checkpoint(conn, event, checkpoint.rows(kept)):
            raise attempt.Fenced
    return kept


def _observed_at(request: Request, event: Event) -> datetime:
    return (request.timestamp or request.observation_at or event.created_at).astimezone(request.zone)


async def _extracted(rt: Runtime, add: _Add) -> Found:
    """Return the facts of the add: those of an earlier attempt, or else what the extractor finds.

    Raises: ModelUnavailable, ModelRefused; Fenced.
    """
    if add.kept.facts is not None:
        return Found(list(add.kept.facts), add.kept.refused)
    find = procedure.facts if add.is_procedure else extract.facts
    found = await find(rt.llm, await _conversation(rt, add), window_tokens=rt.settings.extraction_window_tokens)
    if rt.llm is not None:  # rules find the same again, at no cost
        await _keep(rt, add.event, replace(add.kept, facts=found.facts, refused=found.refused))
    return found


async def _conversation(rt: Runtime, add: _Add) -> Conversation:
    request, settings = add.request, add.project.settings
    said = add.messages
    if not add.is_procedure:  # a run's record tells what tools printed, memories too
        said = await echo.blank(rt, add.event.project_id, request.owners, said)
    return Conversation(
        messages=said,
        observed_at=_observed_at(request, add.event),
        earlier=add.earlier,
        # Only a model reads them; the rules would not know what to do with them.
        existing=await _existing(rt, add) if rt.llm is not None and not add.is_procedure else (),
        timezone=request.zone,
        custom_instructions=request.custom_instructions or settings.custom_instructions,
        # The agent's text is for statements of an agent: an add that names none has no use for it.
        agent_custom_instructions=request.owners.agent_id
        and (request.agent_custom_instructions or settings.agent_custom_instructions),
        includes=request.includes,
        excludes=request.excludes,
        agent_only=request.owners.agent_id is not None and request.owners.user_id is None,
        split=len(add.targets) > 1,
        names=tuple(request.owners.named().values()),
        multilingual=settings.multilingual,
    )


async def _existing(rt: Runtime, add: _Add) -> tuple[tuple[UUID, str], ...]:
    """Return the stored memories that are nearest to the new conversation, nearest first."""
    text = "\n".join(message.content for message in add.messages)[-CONTEXT_CHARS:].strip()
    if not text:
        return ()
    vector = await rt.embedder.embed_query(text)
    async with rt.db.acquire(add.event.project_id) as conn:
        near = await search.semantic(
            conn,
            add.event.project_id,
            [target.id for target in add.targets],
            STANDING,
            vector,
            model=rt.embedder.model,
            limit=EXISTING,
        )
        found = await memory_store.get_many(conn, add.event.project_id, [memory_id for memory_id, _ in near])
    return tuple((memory_id, found[memory_id].text) for memory_id, _ in near if memory_id in found)


async def _commit(
    rt: Runtime, add: _Add, extracted: Found, found: Sequence[remember.Draft], prepared: Sequence[NewMemory]
) -> list[Memory]:
    """Write everything that came of the event in one transaction; return what was really added.

    Raises: Fenced, with nothing written.
    """
    event = add.event
    async with rt.db.transaction(event.project_id) as conn:
        cancelled = await claims.lock_for_finish(conn, event)
        if cancelled is None:
            raise attempt.Fenced
        kept = [memory for memory in prepared if memory.scope_id not in cancelled]
        if cancelled or event.scope_id is None:
            # What was said goes too, and with it the sources of memories in a scope that was not emptied.
            kept = [replace(memory, message_ids=(), spans=()) for memory in kept]
        else:
            await messages.insert_many(conn, event.project_id, event.scope_id, event.id, add.messages)
        stored = await remember.store(rt, conn, event.project_id, kept)
        await announce.changed(
            conn,
            event.project_id,
            WebhookEvent.MEMORY_ADD,
            stored,
            custom_categories=add.request.custom_categories,
        )
        replaced = await _supersede(rt, conn, add, extracted.facts, found, stored)
        merged = await merge.apply(
            conn, event.project_id, extracted.facts, found, kept, stored, model=rt.embedder.model
        )
        metadata: dict[str, Any] = {"facts": len(found), "duplicates": len(found) - len(stored)}
        if cancelled:
            metadata = {"facts": len(found), "cancelled_by": "delete_all"}
        if extracted.refused:
            metadata["refused"] = [
                {"reason": reason, "count": count} for reason, count in sorted(extracted.refused.items())
            ]
        if replaced:
            metadata["superseded"] = replaced
        if merged:
            metadata["merged"] = [{"id": str(pair.id), "into": str(pair.into)} for pair in merged]
        results = remember.results(stored)
        await announce.ingested(
            conn, event.project_id, event.id, add.request.owners, results, cancelled=bool(cancelled)
        )
        if not await claims.finish(conn, event, results, metadata):
            raise attempt.Fenced
    return stored


async def _supersede(
    rt: Runtime,
    conn: Conn,
    add: _Add,
    facts: Sequence[Fact],
    found: Sequence[remember.Draft],
    stored: Sequence[Memory],
) -> int:
    """Mark what the new memories replace; return how many memories that are."""
    if add.is_procedure:
        return 0
    project_id = add.event.project_id
    by_model = rt.llm is not None
    told = supersede.by_model(facts, found) if by_model else await supersede.by_rule(conn, project_id, found)
    return len(await supersede.apply(conn, project_id, told, stored, said_at=_created_at(add)))
