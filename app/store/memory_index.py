"""What finds a memory beside its text: its vector and its terms; and where it came from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from pgvector import HalfVector

from app.model import NewMemory, Vector
from app.store import event_rows
from app.store.db import Conn

_MAX_TF = 32_767  # of the column's type
_MAX_TERM_BYTES = 1_000  # an entry of a B-tree has 2,704 bytes at most


def fitting(terms: dict[str, int]) -> dict[str, int]:
    """Return the terms as they are stored: how often is cut at 32,767, and terms over 1,000 bytes are left out."""
    return {term: min(tf, _MAX_TF) for term, tf in terms.items() if len(term.encode()) <= _MAX_TERM_BYTES}


_INSERT_VECTORS = """
INSERT INTO memory_vectors (project_id, scope_id, memory_id, model, embedding)
SELECT $1, v.scope_id, v.memory_id, $2, v.embedding
FROM unnest($3::bigint[], $4::uuid[], $5::halfvec[]) AS v (scope_id, memory_id, embedding)
"""


async def insert_vectors(
    conn: Conn, project_id: int, vectors: Sequence[tuple[int, UUID, Vector]], *, model: str
) -> None:
    """Store (scope id, memory id, unit vector) of memories that have none of this model."""
    scopes = [scope_id for scope_id, _, _ in vectors]
    ids = [memory_id for _, memory_id, _ in vectors]
    # Wrapped here, because the driver takes a bare array inside a list for a second dimension.
    embeddings = [HalfVector(vector) for _, _, vector in vectors]
    await conn.execute(_INSERT_VECTORS, project_id, model, scopes, ids, embeddings)


_DELETE_VECTORS = """
DELETE FROM memory_vectors WHERE project_id = $1 AND memory_id = ANY($2::uuid[])        -- index memory_vectors_memory
"""


async def delete_vectors(conn: Conn, project_id: int, memory_ids: Collection[UUID]) -> None:
    """Delete the vectors of memories, of every model."""
    await conn.execute(_DELETE_VECTORS, project_id, list(memory_ids))


_INSERT_TERMS = """
INSERT INTO terms (project_id, scope_id, term, memory_id, tf, dl)
SELECT $1, t.scope_id, t.term, t.memory_id, t.tf, t.dl
FROM unnest($2::bigint[], $3::text[], $4::uuid[], $5::smallint[], $6::integer[]) AS t (scope_id, term, memory_id, tf, dl)
"""


async def insert_terms(conn: Conn, project_id: int, documents: Iterable[tuple[int, UUID, dict[str, int]]]) -> None:
    """Store (scope id, memory id, fitting terms) of memories that have none."""
    postings = [
        (scope_id, term, memory_id, tf, sum(terms.values()))
        for scope_id, memory_id, terms in documents
        for term, tf in terms.items()
    ]
    if postings:
        await conn.execute(_INSERT_TERMS, project_id, *map(list, zip(*postings, strict=True)))


_DELETE_TERMS = """
WITH doomed AS MATERIALIZED (       -- before the join: else the planner may read all terms of the scope for each memory
    SELECT m.scope_id, m.id, lexeme
    FROM memories m, unnest(m.lexemes) AS lexeme
    WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
)
DELETE FROM terms t USING doomed d                              -- the whole primary key of terms
WHERE t.project_id = $1 AND t.scope_id = d.scope_id AND t.term = d.lexeme COLLATE "C" AND t.memory_id = d.id
"""


async def delete_terms(conn: Conn, project_id: int, ids: Iterable[UUID]) -> int:
    """Delete the terms of memories, while their rows still say which those are; return how many."""
    return event_rows.count(await conn.execute(_DELETE_TERMS, project_id, list(ids)))


_INSERT_SOURCES = """
INSERT INTO memory_sources (project_id, memory_id, message_id, span_start, span_end)
SELECT $1, s.memory_id, s.message_id, s.span_start, s.span_end
FROM unnest($2::uuid[], $3::uuid[], $4::integer[], $5::integer[]) AS s (memory_id, message_id, span_start, span_end)
ON CONFLICT DO NOTHING
"""


async def insert_sources(conn: Conn, project_id: int, memories: Iterable[NewMemory]) -> None:
    """Note which part of which stored message each memory was made from."""
    sources = [
        (memory.id, message_id, start, end)
        for memory in memories
        for message_id, (start, end) in zip(memory.message_ids, memory.spans, strict=True)
    ]
    if sources:
        await conn.execute(_INSERT_SOURCES, project_id, *map(list, zip(*sources, strict=True)))
