"""Memories: each change keeps text, vector, terms, entities, history and the scope's counters in step.

Whoever changes memories of a scope holds the scope's row until the end of the transaction, and takes several in the
order of their ids. So no two changes of a scope mix, and none deadlock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from itertools import islice
from typing import Any, Final
from uuid import UUID

from app import errors
from app.model import Entity, FilterNode, Memory, NewMemory, Vector
from app.store import entities, exports, filters, history, memory_index, memory_rows, owners, scopes
from app.store.db import Conn

_BATCH = 1_000  # memories that one round of a deletion takes


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET  #: this field stays as it is; None would be a value


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """What to change of a memory. A new text comes with all five fields that are made from it."""

    text: str | Unset = UNSET
    hash: str | Unset = UNSET
    embedding: Vector | Unset = UNSET
    model: str | Unset = UNSET
    terms: dict[str, int] | Unset = UNSET
    entities: tuple[Entity, ...] | Unset = UNSET
    metadata: dict[str, Any] | None | Unset = UNSET
    categories: tuple[str, ...] | None | Unset = UNSET
    expiration_date: date | None | Unset = UNSET
    created_at: datetime | Unset = UNSET
    input: tuple[dict[str, Any], ...] = ()  # what the history shows
    event_id: UUID | None = None  # the request, for the history


# Reading


_GET = f"""
SELECT {memory_rows.COLUMNS}
FROM memories m
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
"""  # noqa: S608 - the columns are a constant


async def get(conn: Conn, project_id: int, memory_id: UUID) -> Memory:
    """Return the memory, whatever its state. Raises: MemoryNotFound."""
    found = await get_many(conn, project_id, [memory_id])
    if not found:
        raise errors.MemoryNotFound
    return found[memory_id]


async def get_many(conn: Conn, project_id: int, ids: Collection[UUID]) -> dict[UUID, Memory]:
    """Return those of these memories that exist, by id."""
    rows = await conn.fetch(_GET, project_id, list(ids))
    return {row["id"]: memory_rows.read(row) for row in rows}


_SUPERSEDED = """
WITH RECURSIVE chain (id) AS (
    SELECT $3::uuid
    UNION                                                       -- not ALL: a circle ends
    SELECT m.id FROM chain c JOIN memories m ON m.project_id = $1 AND m.scope_id = $2 AND m.replaced_by = c.id
)
SELECT id FROM chain WHERE id <> $3
"""


async def superseded_by(conn: Conn, project_id: int, memory: Memory) -> list[UUID]:
    """Return the older memories of its scope that it replaced, and those that they replaced in their time."""
    return [row["id"] for row in await conn.fetch(_SUPERSEDED, project_id, memory.scope_id, memory.id)]


_KNOWN = """
SELECT m.scope_id, m.hash
FROM unnest($2::bigint[], $3::text[]) AS wanted (scope_id, hash)
JOIN memories m ON m.project_id = $1 AND m.scope_id = wanted.scope_id AND m.hash = wanted.hash     -- its unique key
"""


async def known_hashes(conn: Conn, project_id: int, pairs: Collection[tuple[int, str]]) -> set[tuple[int, str]]:
    """Return those of these (scope id, MD5 of a text) that a memory has."""
    rows = await conn.fetch(_KNOWN, project_id, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return {(row["scope_id"], row["hash"]) for row in rows}


async def list_page(
    conn: Conn, project_id: int, node: FilterNode, *, limit: int, offset: int
) -> tuple[int, list[Memory]]:
    """Return how many memories match, and a page of them, newest first: created_at, then id.

    Index memories_newest of the scopes that can match.
    """
    where, args = await _where(conn, project_id, node)
    total: int = await conn.fetchval(f"SELECT count(*) FROM memories m WHERE {where}", *args)  # noqa: S608
    if offset >= total or limit == 0:
        return total, []
    page = f"ORDER BY m.created_at DESC, m.id DESC LIMIT ${len(args) + 1} OFFSET ${len(args) + 2}"
    sql = f"SELECT {memory_rows.COLUMNS} FROM memories m WHERE {where} {page}"  # noqa: S608
    return total, [memory_rows.read(row) for row in await conn.fetch(sql, *args, limit, offset)]


async def walk(conn: Conn, project_id: int, node: FilterNode, *, after: UUID | None = None, limit: int) -> list[Memory]:
    """Return the next memories that match, in the order of their ids, from behind `after`: a walk through all of them."""
    where, args = await _where(conn, project_id, node)
    beyond = f"(${len(args) + 1}::uuid IS NULL OR m.id > ${len(args) + 1}) ORDER BY m.id LIMIT ${len(args) + 2}"
    sql = f"SELECT {memory_rows.COLUMNS} FROM memories m WHERE {where} AND {beyond}"  # noqa: S608
    return [memory_rows.read(row) for row in await conn.fetch(sql, *args, after, limit)]


async def count(conn: Conn, project_id: int, node: FilterNode) -> int:
    """Return how many memories match."""
    where, args = await _where(conn, project_id, node)
    total: int = await conn.fetchval(f"SELECT count(*) FROM memories m WHERE {where}", *args)  # noqa: S608
    return total


async def _where(
    conn: Conn, project_id: int, node: FilterNode, scope_ids: Sequence[int] | None = None
) -> tuple[str, list[object]]:
    """Return the condition over `memories m` for a tree, with its arguments: project, scopes, then the tree's."""
    if scope_ids is None:
        scope_ids = await scopes.matching(conn, project_id, node)
    condition = filters.compile_memories(node, first=3)
    where = f"m.project_id = $1 AND m.scope_id = ANY($2::bigint[]) AND ({condition.sql})"
    return where, [project_id, scope_ids, *condition.args]


# Adding


async def insert_many(conn: Conn, project_id: int, memories: Sequence[NewMemory], *, model: str) -> list[Memory]:
    """Add memories in the caller's transaction; return those really added, in the given order.

    A text that its scope has already is passed over. `model` made the embeddings and must be registered.
    Raises: NotFound when a scope is not of this project.
    """
    if not memories:
        return []
    await scopes.lock(conn, project_id, {memory.scope_id for memory in memories})
    terms = {memory.id: memory_index.fitting(memory.terms) for memory in memories}
    stored = {memory.id: memory for memory in await memory_rows.insert(conn, project_id, memories, terms)}
    added = [memory for memory in memories if memory.id in stored]
    if not added:
        return []
    vectors = [(memory.scope_id, memory.id, memory.embedding) for memory in added]
    await memory_index.insert_vectors(conn, project_id, vectors, model=model)
    await memory_index.insert_terms(conn, project_id, [(m.scope_id, m.id, terms[m.id]) for m in added])
    await entities.link(conn, project_id, [(m.scope_id, m.id, m.entities) for m in added])
    await memory_index.insert_sources(conn, project_id, added)
    await history.record_added(conn, project_id, stored.values(), {m.id: m.input for m in added})
    await scopes.count(conn, project_id, _growth(added, terms))
    await owners.restore(conn, project_id, {memory.scope_id for memory in added})
    return [stored[memory.id] for memory in added]


def _growth(added: Sequence[NewMemory], terms: dict[UUID, dict[str, int]]) -> dict[int, tuple[int, int]]:
    """Return by scope how many memories and how many terms it gained."""
    lengths: dict[int, list[int]] = defaultdict(list)
    for memory in added:
        lengths[memory.scope_id].append(sum(terms[memory.id].values()))
    return {scope_id: (len(each), sum(each)) for scope_id, each in lengths.items()}


# Changing


async def update(conn: Conn, project_id: int, memory_id: UUID, edit: MemoryEdit) -> Memory:
    """Change one memory in the caller's transaction and return it as it is now. As `update_many`."""
    return (await update_many(conn, project_id, {memory_id: edit}))[0]


async def update_many(conn: Conn, project_id: int, edits: Mapping[UUID, MemoryEdit]) -> list[Memory]:
    """Change memories in the caller's transaction and return them as they are now, in the order of `edits`.

    A change of text or metadata is a row of a memory's history.
    Raises: MemoryNotFound; Conflict when a memory of the scope has a new text already.
    """
    await scopes.lock(conn, project_id, await memory_rows.scopes_of(conn, project_id, edits))
    found = await get_many(conn, project_id, edits)
    if len(found) < len(edits):
        raise errors.MemoryNotFound
    terms = {
        memory_id: {} if edit.terms is UNSET else memory_index.fitting(edit.terms)
        for memory_id, edit in edits.items()
        if edit.text is not UNSET
    }
    await _reword(conn, project_id, [(found[memory_id], edits[memory_id]) for memory_id in terms], terms)
    written = []
    for memory_id, edit in edits.items():
        changes = {name: value for name in _COLUMNS if (value := getattr(edit, name)) is not UNSET}
        new = replace(found[memory_id], **changes)
        written.append(
            await memory_rows.write(
                conn, project_id, new, with_metadata="metadata" in changes, lexemes=terms.get(memory_id)
            )
        )
    changed = [
        (old, edits[old.id].input, edits[old.id].event_id)
        for new in written
        if ((old := found[new.id]).text, old.metadata) != (new.text, new.metadata)
    ]
    await history.record_updated(conn, project_id, changed)
    return written


_COLUMNS = ("text", "hash", "metadata", "categories", "expiration_date", "created_at")

_TERM_COUNTS = "SELECT id, term_count FROM memories WHERE project_id = $1 AND id = ANY($2::uuid[])"


async def _reword(
    conn: Conn, project_id: int, pairs: Sequence[tuple[Memory, MemoryEdit]], terms: Mapping[UUID, dict[str, int]]
) -> None:
    """Replace what finds each memory by what finds its new text; the rows themselves are written afterwards."""
    if not pairs:
        return
    ids = [old.id for old, _ in pairs]
    vectors: dict[str, list[tuple[int, UUID, Vector]]] = defaultdict(list)
    mentions = []
    for old, edit in pairs:
        if edit.hash is UNSET or edit.embedding is UNSET or edit.model is UNSET or edit.entities is UNSET:
            raise ValueError("a new text needs its hash, embedding, model, terms and entities")
        vectors[edit.model].append((old.scope_id, old.id, edit.embedding))
        mentions.append((old.scope_id, old.id, edit.entities))
    await _refuse_known(conn, project_id, pairs)
    await memory_index.delete_vectors(conn, project_id, ids)
    for model, rows in vectors.items():
        await memory_index.insert_vectors(conn, project_id, rows, model=model)
    before = {row["id"]: row["term_count"] for row in await conn.fetch(_TERM_COUNTS, project_id, ids)}
    await memory_index.delete_terms(conn, project_id, ids)
    await memory_index.insert_terms(conn, project_id, [(old.scope_id, old.id, terms[old.id]) for old, _ in pairs])
    growth: dict[int, int] = defaultdict(int)
    for old, _ in pairs:
        growth[old.scope_id] += sum(terms[old.id].values()) - before[old.id]
    await scopes.count(conn, project_id, {scope_id: (0, by) for scope_id, by in growth.items()})
    mentioned = await entities.linked_to(conn, project_id, ids)
    await entities.unlink(conn, project_id, ids)
    await entities.link(conn, project_id, mentions)
    await entities.delete_unmentioned(conn, project_id, mentioned)


async def _refuse_known(conn: Conn, project_id: int, pairs: Sequence[tuple[Memory, MemoryEdit]]) -> None:
    """Raise Conflict when a new text is one that its scope has, or that two memories of a scope would have."""
    new = [(old.scope_id, str(edit.hash)) for old, edit in pairs if edit.hash != old.hash]
    if len(set(new)) < len(new) or await known_hashes(conn, project_id, new):
        raise errors.Conflict("Another memory of the same owners has this text already.")


# Deleting


async def delete(conn: Conn, project_id: int, ids: Collection[UUID], *, event_id: UUID | None = None) -> list[UUID]:
    """Delete memories in the caller's transaction; return the ids of those that existed. Their history stays.

    `event_id`: the request, for the history.
    """
    await scopes.lock(conn, project_id, await memory_rows.scopes_of(conn, project_id, ids))
    return await _remove(conn, project_id, ids, event_id)


async def delete_where(conn: Conn, project_id: int, node: FilterNode, *, event_id: UUID | None = None) -> int:
    """Delete every memory that matches, in the caller's transaction; return how many. `event_id`: as for `delete`.

    Exports that were made from memories of the same scopes go too: they would show for days what is meant to be gone.
    """
    scope_ids = await scopes.matching(conn, project_id, node)
    await scopes.lock(conn, project_id, scope_ids)
    where, args = await _where(conn, project_id, node, scope_ids)
    # After the lock: an add that held a scope is complete now, and its memories are seen.
    rows = await conn.fetch(f"SELECT m.id FROM memories m WHERE {where} ORDER BY m.id", *args)  # noqa: S608
    ids = iter([row["id"] for row in rows])
    deleted = 0
    while batch := list(islice(ids, _BATCH)):
        deleted += len(await _remove(conn, project_id, batch, event_id))
    if deleted:
        await exports.delete_of(conn, project_id, scope_ids)
    return deleted


async def _remove(conn: Conn, project_id: int, ids: Collection[UUID], event_id: UUID | None) -> list[UUID]:
    """Delete memories whose scopes are held."""
    await history.record_deleted(conn, project_id, ids, event_id)
    await memory_index.delete_terms(conn, project_id, ids)
    mentioned = await entities.linked_to(conn, project_id, ids)
    deleted, deltas = await memory_rows.delete(conn, project_id, ids)
    await entities.delete_unmentioned(conn, project_id, mentioned)
    await scopes.count(conn, project_id, deltas)
    return deleted
