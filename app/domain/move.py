"""Memories as they are, out of the service and into it: what another service needs to have the same ones."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any, Literal
from uuid import UUID

import orjson
from uuid_utils.compat import uuid7

from app import errors
from app.domain import audit, lexemes, link, quota, remember
from app.domain.dedupe import md5
from app.model import Caller, FilterNode, Memory, NewMemory, Owners, Scope, State, Status, Vectors
from app.runtime import Runtime
from app.store import events, scopes
from app.store import memories as memory_store

KIND = "IMPORT"
BATCH = 500  #: memories of one import
PAGE = 500  #: memories that one step of a walk reads
COUNT_HEADER = "X-Memory-Count"

#: imported; exists: it is there already, the same id and text; duplicate: the same owners have the text under another id;
#: conflict: the id belongs to another memory; refused: it cannot be read.
Outcome = Literal["imported", "exists", "duplicate", "conflict", "refused"]


@dataclass(frozen=True, slots=True)
class Item:
    """A memory on its way in, checked."""

    id: UUID
    text: str
    owners: Owners
    metadata: dict[str, Any] | None = None
    categories: tuple[str, ...] | None = None
    immutable: bool = False
    expiration_date: date | None = None
    state: State = State.ACTIVE
    replaced_by: UUID | None = None
    synthesized: bool = False
    role: str | None = None
    actor: str | None = None
    position: int = 0
    happened_from: datetime | None = None
    happened_to: datetime | None = None
    created_at: datetime | None = None  # None: now
    updated_at: datetime | None = None  # None: as created_at


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of an item."""

    outcome: Outcome
    memory: Memory | None = None  # as it is stored; None unless it was imported or exists
    reason: str | None = None


# Out


def line(memory: Memory) -> bytes:
    """Return a memory as one line of JSON without its end; equal memories give equal bytes, whichever service has them."""
    return orjson.dumps(
        {
            "id": memory.id,
            "memory": memory.text,
            **{name: getattr(memory.owners, name) for name in ("user_id", "agent_id", "app_id", "run_id")},
            "hash": memory.hash,
            "metadata": memory.metadata,
            "categories": memory.categories,
            "immutable": memory.immutable,
            "expiration_date": memory.expiration_date,
            "lifecycle_state": memory.state.value,
            "replaced_by": memory.replaced_by,
            "synthesized": memory.synthesized,
            "role": memory.role,
            "actor": memory.actor,
            "position": memory.position,
            "happened_from": _utc(memory.happened_from),
            "happened_to": _utc(memory.happened_to),
            "created_at": _utc(memory.created_at),
            "updated_at": _utc(memory.updated_at),
        },
        option=orjson.OPT_UTC_Z,
    )


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


def digest(lines: Iterable[bytes], *, start: int = 0) -> int:
    """Return the digest of a set of lines, in whatever order they come: the sum of their SHA-256, modulo 2^256.

    `start`: the digest of those that came before.
    """
    total = start
    for one in lines:
        total += int.from_bytes(hashlib.sha256(one).digest(), "big")
    return total % (1 << 256)


async def count(rt: Runtime, caller: Caller, node: FilterNode) -> int:
    """Return how many memories match."""
    async with rt.db.acquire(caller.project.id) as conn:
        return await memory_store.count(conn, caller.project.id, node)


async def walk(rt: Runtime, caller: Caller, node: FilterNode) -> AsyncIterator[list[Memory]]:
    """Yield the memories that match, some at a time, in the order of their ids. Holds no connection between two steps."""
    after: UUID | None = None
    while True:
        async with rt.db.acquire(caller.project.id) as conn:
            found = await memory_store.walk(conn, caller.project.id, node, after=after, limit=PAGE)
        if found:
            yield found
        if len(found) < PAGE:
            return
        after = found[-1].id


# In


async def take(rt: Runtime, caller: Caller, items: Sequence[Item]) -> list[Taken]:
    """Store memories as they are, with their ids and times; return what became of each, in order.

    Safe to repeat: what is there already is neither embedded nor stored again. Nothing else in the project changes, and
    nobody is told: an import is no news.
    Raises: NotAllowed for a key that is no owner's; QuotaExceeded; EmbedderUnavailable, EmbedderRefused, with nothing stored.
    """
    if caller.role != "owner":
        raise errors.NotAllowed("Only an owner's key may import memories.")
    project_id = caller.project.id
    async with rt.db.transaction(project_id) as conn:
        there = await memory_store.get_many(conn, project_id, [item.id for item in items])
        await quota.require_room(conn, caller.project, sum(item.id not in there for item in items))
        owners = dict.fromkeys(item.owners for item in items if item.id not in there)
        made = {each: await scopes.ensure(conn, project_id, each) for each in owners}
        pairs = [(made[item.owners].id, md5(item.text)) for item in items if item.id not in there]
        known = await memory_store.known_hashes(conn, project_id, pairs)
    taken = _met(items, there, made, known)
    fresh = [item for item, met in zip(items, taken, strict=True) if met is None]
    stored = await _store(rt, caller, fresh, made) if fresh else {}
    return [met or _new(item, stored) for item, met in zip(items, taken, strict=True)]


def _met(
    items: Sequence[Item], there: Mapping[UUID, Memory], made: Mapping[Owners, Scope], known: set[tuple[int, str]]
) -> list[Taken | None]:
    """Return what is known of each item before anything is stored; None: it is new."""
    found: list[Taken | None] = []
    ids, pairs = set(there), set(known)
    for item in items:
        pair = (made[item.owners].id, md5(item.text)) if item.owners in made else None
        memory = there.get(item.id)
        if memory is not None:
            found.append(_compared(item, memory))
        elif item.id in ids:
            found.append(Taken("conflict", reason="its id came before in this import"))
        elif pair in pairs:
            found.append(Taken("duplicate", reason="the same owners have this text already"))
        else:
            found.append(None)
            ids.add(item.id)
            if pair is not None:
                pairs.add(pair)
    return found


def _compared(item: Item, memory: Memory) -> Taken:
    if (memory.text, memory.owners) == (item.text, item.owners):
        return Taken("exists", memory)
    return Taken("conflict", reason="its id belongs to another memory here, or to another text of this one")


def _new(item: Item, stored: Mapping[UUID, Memory]) -> Taken:
    memory = stored.get(item.id)
    # Somebody else stored the same text at the same moment.
    return Taken("imported", memory) if memory else Taken("duplicate", reason="the same owners have this text already")


async def _store(
    rt: Runtime, caller: Caller, fresh: Sequence[Item], made: Mapping[Owners, Scope]
) -> dict[UUID, Memory]:
    """Embed and store items; return what was stored, by id. All of them or, on an error, none."""
    texts = [item.text for item in fresh]
    vectors = remember.checked(await rt.embedder.embed(texts), len(texts), rt.embedder.dims)
    event_id = uuid7()
    prepared = await asyncio.to_thread(_prepared, fresh, made, vectors, event_id)
    async with rt.db.transaction(caller.project.id) as conn:
        stored = await remember.store(rt, conn, caller.project.id, prepared)
        await events.insert(
            conn,
            caller.project.id,
            event_id,
            KIND,
            {"memories": len(fresh)},
            status=Status.SUCCEEDED,
            metadata={"imported": len(stored)},
        )
        await audit.note(conn, "memories.import", project=caller.project, objects=[event_id])
    return {memory.id: memory for memory in stored}


def _prepared(fresh: Sequence[Item], made: Mapping[Owners, Scope], vectors: Vectors, event_id: UUID) -> list[NewMemory]:
    return [_memory(item, made[item.owners], vector, event_id) for item, vector in zip(fresh, vectors, strict=True)]


def _memory(item: Item, scope: Scope, vector: Vectors, event_id: UUID) -> NewMemory:
    said_at = item.created_at or datetime.now(UTC)
    return NewMemory(
        scope_id=scope.id,
        hash=md5(item.text),
        embedding=vector,
        terms=lexemes.document(item.text, actor=item.actor, said_at=said_at, previous=None),
        entities=link.entities(item.text),
        event_id=event_id,
        input=({"role": item.role or "user", "content": item.text},),
        **{field.name: getattr(item, field.name) for field in fields(Item) if field.name != "updated_at"},
        updated_at=item.updated_at or item.created_at,
    )
