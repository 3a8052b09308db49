"""Loads memories straight into the tables, past the add: for measurements that need very many of them."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import uuid_utils.compat as uuids
from pgvector import HalfVector

from app.domain import lexemes
from app.model import Owners
from app.store import db as databases
from app.store import memory_index, models, scopes
from bench.ready_made import ReadyMade

_PART = 5_000  # rows a COPY
_MEMORIES = [
    "project_id", "id", "scope_id", "user_id", "text", "hash", "role", "metadata", "lexemes", "term_count", "created_at",
    "updated_at",
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A memory to load."""

    user_id: str
    text: str
    metadata: dict[str, Any]
    said_at: datetime
    question: str | None = None  # whose answer it is
    by_meaning: bool = False  # the question shares no word with it


def read(path: Path) -> Iterator[Row]:
    """Read lines of {"user_id", "text", "metadata", "ts", "needle"}; `needle` is null or {"kind", "question"}."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            needle = raw["needle"] or {}
            yield Row(
                user_id=raw["user_id"],
                text=raw["text"],
                metadata=raw["metadata"],
                said_at=datetime.fromtimestamp(raw["ts"], UTC),
                question=needle.get("question"),
                by_meaning=needle.get("kind") == "meaning",
            )


def _distinct(rows: Iterable[Row]) -> Iterator[Row]:
    for _, of_user in itertools.groupby(rows, key=lambda row: row.user_id):
        seen: set[str] = set()
        for number, row in enumerate(of_user):
            fresh = row if row.text not in seen else replace(row, text=f"{row.text}, note {number}")
            seen.add(fresh.text)
            yield fresh


class _Prepared(NamedTuple):
    row: Row
    vector: bytes
    terms: dict[str, int]


_embedder = ReadyMade()  # of one process


def _prepare(rows: list[Row]) -> list[_Prepared]:
    return [
        _Prepared(
            row,
            HalfVector(_embedder.vector(row.text)).to_binary(),
            memory_index.fitting(lexemes.document(row.text, actor=None, said_at=row.said_at, previous=None)),
        )
        for row in rows
    ]


async def load(conn: databases.Conn, project_id: int, rows: Iterable[Row], *, model: str = ReadyMade.model) -> int:
    """Load rows that come user by user; a text that its user already has gets a number. Return how many were loaded.

    `conn`: of a superuser, for COPY does not go through row-level security. `model`: whose vectors the ready-made ones are
    said to be.
    """
    await models.register(conn, model, ReadyMade.dims)
    loaded = 0
    with ProcessPoolExecutor(2) as pool:
        source = _distinct(rows)
        parts = iter(lambda: list(itertools.islice(source, _PART)), [])
        waiting = [pool.submit(_prepare, part) for part in itertools.islice(parts, 4)]
        while waiting:
            prepared = waiting.pop(0).result()
            waiting.extend(pool.submit(_prepare, part) for part in itertools.islice(parts, 1))
            for user_id, of_user in itertools.groupby(prepared, key=lambda item: item.row.user_id):
                loaded += await _copy(conn, project_id, user_id, list(of_user), model)
    return loaded


async def _copy(conn: databases.Conn, project_id: int, user_id: str, items: list[_Prepared], model: str) -> int:
    memories, vectors, postings, total = [], [], [], 0
    async with conn.transaction():
        scope = await scopes.ensure(conn, project_id, Owners(user_id=user_id))
        for row, vector, terms in items:
            memory_id, length = uuids.uuid7(), sum(terms.values())
            total += length
            digest = hashlib.md5(row.text.encode(), usedforsecurity=False).hexdigest()
            memories.append(
                (project_id, memory_id, scope.id, user_id, row.text, digest, "user", row.metadata, sorted(terms),
                 length, row.said_at, row.said_at)
            )  # fmt: skip
            vectors.append((project_id, scope.id, memory_id, model, HalfVector.from_binary(vector)))
            postings += [(project_id, scope.id, term, memory_id, tf, length) for term, tf in terms.items()]
        await conn.copy_records_to_table("memories", records=memories, columns=_MEMORIES)
        await conn.copy_records_to_table(
            "memory_vectors", records=vectors, columns=["project_id", "scope_id", "memory_id", "model", "embedding"]
        )
        postings.sort(key=lambda posting: (posting[2], posting[3].bytes))
        await conn.copy_records_to_table(
            "terms", records=postings, columns=["project_id", "scope_id", "term", "memory_id", "tf", "dl"]
        )
        await scopes.count(conn, project_id, {scope.id: (len(items), total)})
    return len(items)
