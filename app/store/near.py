"""The semantic arm at any size: small selections are compared whole, large ones go through an approximate index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pgvector import HalfVector

from app.model import FilterNode, Vector
from app.store import scopes, search, vector_indexes
from app.store.db import Conn

EXACT = 20_000  #: memories of a selection whose vectors are all compared: a few milliseconds, and nothing is missed
_BROAD = 4  # a selection of many small scopes uses the index of its project if it is at least 1/4 of it: most of what
# the graph brings has to be of use. Narrower ones are compared whole.
_EF_SEARCH = 800  # candidates of a walk through the graph: pgvector's default of 40 misses memories that stand apart

_TUNE = "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', $1, true)"

_DIMS = "(384)"  # stands in the statements where the model's dimensions go, so that they prepare as they are

_NEAR_IN_SCOPE = """
WITH near AS MATERIALIZED (                                     -- the partial index of the scope
    SELECT v.memory_id, v.embedding::halfvec(384) <=> $4::halfvec(384) AS distance
    FROM memory_vectors v
    WHERE v.project_id = $1 AND v.scope_id = $2::bigint AND v.model = $3
    ORDER BY v.embedding::halfvec(384) <=> $4::halfvec(384)
    LIMIT $5
)
SELECT n.memory_id, 1 - n.distance AS score, (SELECT count(*) FROM near) AS looked_at
FROM near n JOIN memories m ON m.project_id = $1 AND m.id = n.memory_id
WHERE TRUE /* filter */
ORDER BY n.distance, n.memory_id
LIMIT $6
"""
_NEAR_IN_PROJECT = """
WITH near AS MATERIALIZED (                                     -- the partial index of the project
    SELECT v.memory_id, v.embedding::halfvec(384) <=> $4::halfvec(384) AS distance
    FROM memory_vectors v
    WHERE v.project_id = $1 AND v.scope_id = ANY($2::bigint[]) AND v.model = $3
    ORDER BY v.embedding::halfvec(384) <=> $4::halfvec(384)
    LIMIT $5
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
    count: int,
) -> list[tuple[UUID, float]]:
    """Return the memories nearest to `embedding` as `search.semantic` does. `count`: how many memories the scopes have.

    Beyond `EXACT` of them they come through an approximate index. One that is missing is wished for, and until a worker has
    built it, all vectors are compared.
    """
    where = (conn, project_id, node, embedding)
    plan = await _plan(conn, project_id, scope_ids, model=model, count=count) if count > EXACT else _Plan(scope_ids, ())
    found: list[tuple[UUID, float]] = []
    for scope in plan.indexed:
        found += await _near(*where, scope, scope_ids, model=model, limit=limit)
    if plan.compared:
        found += await search.semantic(conn, project_id, plan.compared, node, embedding, model=model, limit=limit)
    return sorted(found, key=lambda row: (-row[1], row[0]))[:limit]


@dataclass(frozen=True, slots=True)
class _Plan:
    compared: Sequence[int]  # scopes whose vectors are all compared
    indexed: Sequence[int]  # scopes that are searched through their index; WHOLE: the project's, and then no others


async def _plan(conn: Conn, project_id: int, scope_ids: Sequence[int], *, model: str, count: int) -> _Plan:
    """Choose the indexes to search through, and wish for those that would help."""
    broad = await scopes.total(conn, project_id) <= _BROAD * count
    found = await vector_indexes.large(conn, project_id, scope_ids, model=model, above=EXACT, whole=broad)
    large = {item.scope_id: item for item in found if item.size is not None}
    whole = next((item for item in found if item.size is None), None)
    rest = count - sum(item.size or 0 for item in large.values())
    useful = [whole] if whole is not None and rest > EXACT else list(large.values())
    if missing := [item.scope_id for item in useful if not item.wanted]:
        await vector_indexes.want(conn, project_id, missing, model=model)
    if whole in useful and whole is not None and whole.built:
        return _Plan((), (vector_indexes.WHOLE,))
    ready = [scope_id for scope_id, item in large.items() if item.built]
    return _Plan([scope_id for scope_id in scope_ids if scope_id not in ready], ready)


async def _near(
    conn: Conn,
    project_id: int,
    node: FilterNode,
    embedding: Vector,
    scope: int,
    scope_ids: Sequence[int],
    *,
    model: str,
    limit: int,
) -> list[tuple[UUID, float]]:
    """Search through one index. A filter that leaves too little of what it brings is answered by comparing all."""
    statement, selected = (
        (_NEAR_IN_PROJECT, list(scope_ids)) if scope == vector_indexes.WHOLE else (_NEAR_IN_SCOPE, scope)
    )
    statement, args = search.filtered(statement.replace(_DIMS, f"({len(embedding)})"), node, first=7)
    async with conn.transaction():
        await conn.execute(_TUNE, str(_EF_SEARCH))
        rows = await conn.fetch(
            statement, project_id, selected, model, HalfVector(embedding), search.WIDE * limit, limit, *args
        )
    if search.cut_short(rows, limit):
        compared = scope_ids if scope == vector_indexes.WHOLE else [scope]
        return await search.semantic(conn, project_id, compared, node, embedding, model=model, limit=limit)
    return [(row["memory_id"], row["score"]) for row in rows]
