"""Texts to memories: hash, embedding, index terms and entities of each, in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

import numpy as np
import uuid_utils.compat as uuids

from app import errors
from app.domain import lexemes, link
from app.model import Memory, Message, NewMemory, Scope, Vectors
from app.runtime import Runtime
from app.store import memories as memory_store
from app.store import models as model_store
from app.store.db import Conn


@dataclass(frozen=True, slots=True)
class Draft:
    """A text on its way to become a memory."""

    scope: Scope
    text: str
    hash: str  # MD5 of the text
    position: int  # order within its add
    said_at: datetime  # of the message that it comes from, in the speakers' time zone
    role: str | None = None
    actor: str | None = None
    previous: str | None = None  # the message before that one, with its speaker
    sources: tuple[Message, ...] = ()  # messages that it comes from; stored ones have an id
    spans: tuple[tuple[int, int], ...] = ()  # characters in each of `sources`
    happened_from: datetime | None = None
    happened_to: datetime | None = None

    @property
    def scope_id(self) -> int:
        """The scope's id."""
        return self.scope.id


@dataclass(frozen=True, slots=True)
class Shared:
    """What all memories of one add have in common."""

    event_id: UUID
    created_at: datetime | None  # None: the database's clock
    metadata: dict[str, Any] | None
    immutable: bool
    expiration_date: date | None


def spoken(message: Message) -> str:
    """Return the message with its speaker in front, as the keyword arm reads what was said before a memory."""
    return f"{message.name or message.role}: {message.content}"


async def prepare(rt: Runtime, drafts: Sequence[Draft], shared: Shared) -> list[NewMemory]:
    """Return memories that are ready to be stored, in the order of `drafts`. Holds no connection.

    Raises: EmbedderUnavailable, EmbedderRefused.
    """
    if not drafts:
        return []
    vectors = checked(await rt.embedder.embed([draft.text for draft in drafts]), len(drafts), rt.embedder.dims)
    # Thousands of texts take seconds to analyse, and the loop must keep renewing leases meanwhile.
    return await asyncio.to_thread(_analysed, drafts, vectors, shared)


def checked(vectors: Vectors, count: int, dims: int) -> Vectors:
    """Return `vectors` if they are float32[count, dims] and finite.

    Raises: EmbedderRefused.
    """
    if vectors.shape != (count, dims):
        raise errors.EmbedderRefused(f"The embedder gave {vectors.shape} numbers where {(count, dims)} were expected.")
    if not np.isfinite(vectors).all():
        raise errors.EmbedderRefused("The embedder gave numbers that are not finite.")
    return vectors


def _analysed(drafts: Sequence[Draft], vectors: Vectors, shared: Shared) -> list[NewMemory]:
    return [_memory(draft, vector, shared) for draft, vector in zip(drafts, vectors, strict=True)]


def _memory(draft: Draft, vector: Vectors, shared: Shared) -> NewMemory:
    stored = [
        (message, span) for message, span in zip(draft.sources, draft.spans, strict=True) if message.id is not None
    ]
    return NewMemory(
        id=uuids.uuid7(),
        scope_id=draft.scope.id,
        owners=draft.scope.owners,
        text=draft.text,
        hash=draft.hash,
        embedding=vector,
        terms=lexemes.document(draft.text, actor=draft.actor, said_at=draft.said_at, previous=draft.previous),
        entities=link.entities(draft.text),
        role=draft.role,
        actor=draft.actor,
        metadata=shared.metadata,
        immutable=shared.immutable,
        expiration_date=shared.expiration_date,
        event_id=shared.event_id,
        position=draft.position,
        happened_from=draft.happened_from,
        happened_to=draft.happened_to,
        created_at=shared.created_at,
        message_ids=tuple(message.id for message, _ in stored if message.id is not None),
        spans=tuple(span for _, span in stored),
        input=tuple(shown(message) for message in dict.fromkeys(draft.sources)),
    )


def shown(message: Message) -> dict[str, Any]:
    """Return the message as histories show it."""
    plain = {"role": message.role, "content": message.content}
    return plain if message.name is None else plain | {"name": message.name}


async def store(rt: Runtime, conn: Conn, project_id: int, memories: Sequence[NewMemory]) -> list[Memory]:
    """Store memories in the caller's transaction; return those that were not there already, in order.

    Raises: EmbedderRefused when the stored vectors of this model have other dimensions.
    """
    if not memories:
        return []
    await know_model(rt, conn)
    return await memory_store.insert_many(conn, project_id, memories, model=rt.embedder.model)


async def know_model(rt: Runtime, conn: Conn) -> None:
    """Register the embedder's model before its first vector is stored. Safe to repeat.

    Raises: EmbedderRefused when the stored vectors of this model have other dimensions.
    """
    model, dims = rt.embedder.model, rt.embedder.dims
    # The runtime has compared them at the start, unless an endpoint was away then.
    known = (await model_store.stored(conn)).get(model)
    if known is None:
        await model_store.register(conn, model, dims)
    elif known != dims:
        raise errors.EmbedderRefused(f"{model} makes vectors of {dims} dimensions, and the stored ones have {known}.")


def results(memories: Sequence[Memory]) -> list[dict[str, Any]]:
    """Return what an event tells about the memories that it added; both forms of the text, for clients of every age."""
    return [
        {"id": str(memory.id), "event": "ADD", "data": {"memory": memory.text}, "memory": memory.text}
        | memory.owners.named()
        for memory in memories
    ]
