"""The keyword arm at any size: in a large selection, words that are everywhere only add to what rarer words have found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from app.model import FilterNode
from app.store import near, search
from app.store.db import Conn

#: Memories that words may bring as candidates in a large selection. Reading so many postings takes some ten milliseconds.
CANDIDATES = 20_000

_LEXICAL_LARGE = """
WITH rare AS (                                                  -- primary key of terms, index-only
    SELECT t.scope_id, t.memory_id, t.term, t.tf, t.dl
    FROM terms t
    WHERE t.project_id = $1 AND t.scope_id = ANY($2::bigint[]) AND t.term = ANY($3::text[])
), candidates AS MATERIALIZED (
    SELECT scope_id, memory_id FROM rare
    UNION
    SELECT m.scope_id, m.id FROM memories m WHERE m.project_id = $1 AND m.id = ANY($6::uuid[])
), postings AS (
    SELECT memory_id, term, tf, dl FROM rare
    UNION ALL
    SELECT t.memory_id, t.term, t.tf, t.dl                      -- the whole primary key of terms
    FROM candidates c
    CROSS JOIN unnest($7::text[]) AS w (term)
    JOIN terms t ON t.project_id = $1 AND t.scope_id = c.scope_id AND t.term = w.term COLLATE "C"
                AND t.memory_id = c.memory_id
), corpus AS (
    SELECT sum(memory_count)::float8 AS n, sum(term_total)::float8 / nullif(sum(memory_count), 0)::float8 AS avgdl
    FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])
), scored AS MATERIALIZED (
    SELECT p.memory_id, sum(ln(1 + (c.n - f.df + 0.5) / (f.df + 0.5))
                            * p.tf * 2.2 / (p.tf + 1.2 * (0.25 + 0.75 * p.dl / c.avgdl))) AS score -- k1 1.2, b 0.75
    FROM postings p
    JOIN unnest($8::text[], $9::bigint[]) AS f (term, df) ON f.term COLLATE "C" = p.term
    CROSS JOIN corpus c
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
    also: Collection[UUID],
    count: int,
    frequencies: Mapping[str, int],
) -> list[tuple[UUID, float]]:
    """Return the memories that hold any of `terms` with their BM25, as `search.lexical` does.

    `count`: how many memories the scopes have; `frequencies`: in how many of them each term is. Beyond `near.EXACT`
    memories, the commonest terms count only for those memories that a rarer one, or another arm, has found; the scores of
    these are exact.
    """
    rare, common = _parted(terms, frequencies)
    if count <= near.EXACT or not common:
        return await search.lexical(conn, project_id, scope_ids, node, terms, limit=limit, also=also)
    statement, args = search.filtered(_LEXICAL_LARGE, node, first=10)
    known = [*rare, *common]
    fixed = (project_id, list(scope_ids), rare)
    words = (list(also), common, known, [frequencies[term] for term in known])
    rows = await conn.fetch(statement, *fixed, search.WIDE * limit, limit, *words, *args)
    if search.cut_short(rows, limit):
        rows = await conn.fetch(statement, *fixed, None, limit, *words, *args)
    return [(row["memory_id"], row["score"]) for row in rows]


def _parted(terms: Sequence[str], frequencies: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Return the terms that are there as rare and common ones: the rarest bring `CANDIDATES` memories, and at least one does."""
    present = sorted({term for term in terms if frequencies.get(term)}, key=lambda term: (frequencies[term], term))
    brought, rare = 0, 0
    for term in present:
        brought += frequencies[term]
        if rare and brought > CANDIDATES:
            break
        rare += 1
    return present[:rare], present[rare:]
