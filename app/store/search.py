"""The arms of a search, one statement each, and what the ranking needs to know of the memories that they found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector import HalfVector

from app.model import FilterNode, Vector
from app.store import filters
from app.store.db import Conn

#: The best rows of an arm are taken without the filter, this many times as many as are wanted, and filtered then: most
#: filters keep nearly all rows of their scopes, and so the table of texts is touched for a few hundred rows only. Where a
#: filter leaves too few, the arm runs once more over everything; the answer is exact either way.
WIDE = 3

#: Stands in the statements where the compiled filter goes, so that they prepare as they are.
_ANY = "TRUE /* filter */"

_SHOWN_CHARS = 2000  # of a text, for the ranking's own reading
_SAMPLE = 32  # vectors, about, that a mean is made of: adding them up is slow, and more changed no recall


def filtered(statement: str, node: FilterNode, *, first: int) -> tuple[str, list[object]]:
    """Return the statement with the filter in its place, whose arguments are numbered from `first`, and these."""
    compiled = filters.compile_memories(node, first=first)
    return statement.replace(_ANY, compiled.sql), compiled.args


# Before the question is embedded


_FREQUENCIES = """
SELECT s.n::bigint AS n, f.term, f.df
FROM (SELECT coalesce(sum(memory_count), 0) AS n FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])) s
LEFT JOIN (
    SELECT term, count(*) AS df FROM terms                      -- primary key of terms, index-only
    WHERE project_id = $1 AND scope_id = ANY($2::bigint[]) AND term = ANY($3::text[])
    GROUP BY term
) f ON true
"""


async def frequencies(
    conn: Conn, project_id: int, scope_ids: Sequence[int], terms: Collection[str]
) -> tuple[int, dict[str, int]]:
    """Return how many memories the scopes have, and in how many of them each of `terms` is; absent ones are left out."""
    rows = await conn.fetch(_FREQUENCIES, project_id, list(scope_ids), list(terms))
    return rows[0]["n"], {row["term"]: row["df"] for row in rows if row["term"] is not None}


# The arms


_SEMANTIC = """
WITH near AS (                                                  -- exact: every vector of the scopes is compared
    SELECT v.memory_id, v.embedding <=> $4::halfvec AS distance -- primary key of memory_vectors up to the model
    FROM memory_vectors v
    WHERE v.project_id = $1 AND v.scope_id = ANY($2::bigint[]) AND v.model = $3
    ORDER BY distance, v.memory_id
    LIMIT $5                                                    -- NULL: all
)
SELECT n.memory_id, 1 - n.distance AS score, (SELECT count(*) FROM near) AS looked_at
FROM near n JOIN memories m ON m.project_id = $1 AND m.id = n.memory_id
WHERE TRUE /* filter */
ORDER BY n.distance, n.memory_id
LIMIT $6
"""


async def semantic(
    conn: Conn,
    project_id: int,
    scope_ids: Sequence[int],
    node: FilterNode,
    embedding: Vector,
    *,
    model: str,
    limit: int,
) -> list[tuple[UUID, float]]:
    """Return the memories nearest to `embedding` with their cosine similarity, -1..1, nearest first.

    Only vectors of `model` are compared. `node`: which memories of the scopes count.
    """
    statement, args = filtered(_SEMANTIC, node, first=7)
    fixed = (project_id, list(scope_ids), model, HalfVector(embedding))
    rows = await conn.fetch(statement, *fixed, WIDE * limit, limit, *args)
    if cut_short(rows, limit):
        rows = await conn.fetch(statement, *fixed, None, limit, *args)
    return [(row["memory_id"], row["score"]) for row in rows]


# k1 and b: Robertson & Zaragoza, The Probabilistic Relevance Framework, 2009; the idf that is never negative is Lucene's.
_LEXICAL = """
WITH postings AS (                                              -- primary key of terms, index-only
    SELECT t.memory_id, t.tf, t.dl, count(*) OVER (PARTITION BY t.term) AS df
    FROM terms t
    WHERE t.project_id = $1 AND t.scope_id = ANY($2::bigint[]) AND t.term = ANY($3::text[])
), corpus AS (
    SELECT sum(memory_count)::float8 AS n, sum(term_total)::float8 / nullif(sum(memory_count), 0)::float8 AS avgdl
    FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])
), scored AS MATERIALIZED (
    SELECT p.memory_id, sum(ln(1 + (c.n - p.df + 0.5) / (p.df + 0.5))
                            * p.tf * 2.2 / (p.tf + 1.2 * (0.25 + 0.75 * p.dl / c.avgdl))) AS score -- k1 1.2, b 0.75
    FROM postings p CROSS JOIN corpus c
    GROUP BY p.memory_id
), best AS (
    SELECT memory_id, score FROM scored ORDER BY score DESC, memory_id LIMIT $4      -- NULL: all
), wanted AS (
    SELECT memory_id, score, true AS best FROM best
    UNION ALL
    SELECT memory_id, score, false FROM scored
    WHERE memory_id = ANY($6::uuid[]) AND memory_id NOT IN (SELECT memory_id FROM best)
), fitting AS (
    SELECT w.memory_id, w.score, row_number() OVER (ORDER BY w.best DESC, w.score DESC, w.memory_id) AS place
    FROM wanted w JOIN memories m ON m.project_id = $1 AND m.id = w.memory_id
    WHERE TRUE /* filter */
)
SELECT memory_id, score, (SELECT count(*) FROM best) AS looked_at
FROM fitting
WHERE place <= $5 OR memory_id = ANY($6::uuid[])
ORDER BY score DESC, memory_id
"""


async def lexical(
    conn: Conn,
    project_id: int,
    scope_ids: Sequence[int],
    node: FilterNode,
    terms: Sequence[str],
    *,
    limit: int,
    also: Collection[UUID] = (),
) -> list[tuple[UUID, float]]:
    """Return the memories that hold any of `terms` with their BM25, above 0, best first.

    Document frequencies and lengths are those of the scopes, whatever the filter. `also`: memories whose score is wanted
    even if `limit` others are better; those without any of the terms are left out all the same.
    """
    if not terms:
        return []
    statement, args = filtered(_LEXICAL, node, first=7)
    fixed = (project_id, list(scope_ids), list(dict.fromkeys(terms)))
    rows = await conn.fetch(statement, *fixed, WIDE * limit, limit, list(also), *args)
    if cut_short(rows, limit):
        rows = await conn.fetch(statement, *fixed, None, limit, list(also), *args)
    return [(row["memory_id"], row["score"]) for row in rows]


_BY_ENTITY = """
WITH named AS (                                                 -- unique key of entities
    SELECT id, norm FROM entities
    WHERE project_id = $1 AND scope_id = ANY($2::bigint[]) AND norm = ANY($3::text[])
), linked AS (                                                  -- primary key of memory_entities
    SELECT l.memory_id, n.norm, count(*) OVER (PARTITION BY n.norm) AS links
    FROM named n JOIN memory_entities l ON l.project_id = $1 AND l.entity_id = n.id
)
SELECT l.memory_id, count(DISTINCT l.norm)::float8 / cardinality($3::text[]) AS score, min(l.links) AS rarest
FROM linked l JOIN memories m ON m.project_id = $1 AND m.id = l.memory_id
WHERE TRUE /* filter */
GROUP BY l.memory_id
ORDER BY score DESC, rarest, l.memory_id
LIMIT $4
"""


async def by_entity(
    conn: Conn,
    project_id: int,
    scope_ids: Sequence[int],
    node: FilterNode,
    norms: Collection[str],
    *,
    limit: int,
) -> list[tuple[UUID, float, int]]:
    """Return the memories that are linked to entities called `norms`, most of them first, then the rarest.

    Each with the share of the names that it is linked to, above 0 up to 1, and with how many memories of the scopes the
    rarest of these names is linked to.
    """
    distinct = list(dict.fromkeys(norms))
    if not distinct:
        return []
    statement, args = filtered(_BY_ENTITY, node, first=5)
    rows = await conn.fetch(statement, project_id, list(scope_ids), distinct, limit, *args)
    return [(row["memory_id"], row["score"], row["rarest"]) for row in rows]


def cut_short(rows: Sequence[Any], limit: int) -> bool:
    """Whether the filter left fewer rows than are wanted while there may be more to look at."""
    return len(rows) < limit and (not rows or rows[0]["looked_at"] == WIDE * limit)


# What the ranking reads


@dataclass(frozen=True, slots=True)
class Found:
    """What the ranking needs of a memory that an arm has found."""

    id: UUID
    scope_id: int
    text: str  # its beginning
    role: str | None
    actor: str | None
    created_at: datetime
    happened_from: datetime | None
    happened_to: datetime | None
    cosine: float | None  # similarity to the question; None without a vector of the model
    typical: float | None  # inner product of its vector and the mean of a sample of those found; None as above
    follows: UUID | None  # the memory just before it in its scope


_FOUND = """
WITH mean AS MATERIALIZED (
    SELECT avg(v.embedding ORDER BY v.memory_id) AS embedding   -- in order: the same sum every time
    FROM memories m JOIN memory_vectors v                       -- primary keys
         ON v.project_id = $1 AND v.scope_id = m.scope_id AND v.model = $3 AND v.memory_id = m.id
    WHERE m.project_id = $1 AND m.id = ANY($6::uuid[])
)
SELECT m.id, m.scope_id, left(m.text, $5) AS text, m.role, m.actor, m.created_at, m.happened_from, m.happened_to,
       1 - (v.embedding <=> $4::halfvec) AS cosine, -(v.embedding <#> mean.embedding) AS typical, before.id AS follows
FROM memories m
CROSS JOIN mean
LEFT JOIN memory_vectors v                                      -- its primary key
       ON v.project_id = $1 AND v.scope_id = m.scope_id AND v.model = $3 AND v.memory_id = m.id
LEFT JOIN LATERAL (                                             -- index memories_newest
    SELECT b.id FROM memories b
    WHERE b.project_id = $1 AND b.scope_id = m.scope_id AND (b.created_at, b.id) < (m.created_at, m.id)
    ORDER BY b.created_at DESC, b.id DESC LIMIT 1
) before ON true
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
"""


async def found(conn: Conn, project_id: int, ids: Collection[UUID], embedding: Vector, *, model: str) -> list[Found]:
    """Return what the ranking needs of these memories, in no order; those that are gone meanwhile are left out."""
    sample = sorted(ids)[:: max(1, len(ids) // _SAMPLE)]
    rows = await conn.fetch(_FOUND, project_id, list(ids), model, HalfVector(embedding), _SHOWN_CHARS, sample)
    return [Found(**row) for row in rows]
