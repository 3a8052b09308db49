"""What of a query's words and names is in the index of each memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from app.store.db import Conn

_MATCHES = """
SELECT m.id,
       ARRAY(SELECT t FROM unnest($3::text[]) AS t WHERE t = ANY(m.lexemes)) AS terms,
       ARRAY(SELECT n FROM unnest($4::text[]) AS n
             WHERE EXISTS (SELECT FROM memory_entities l        -- index memory_entities_memory
                           JOIN entities e ON e.project_id = $1 AND e.id = l.entity_id
                           WHERE l.project_id = $1 AND l.memory_id = m.id AND e.norm = n COLLATE "C")) AS norms
FROM memories m
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
"""


async def matches(
    conn: Conn, project_id: int, ids: Collection[UUID], terms: Sequence[str], norms: Sequence[str]
) -> dict[UUID, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return which of `terms` each memory is indexed under, and which entities of `norms` it is linked to, in their order."""
    rows = await conn.fetch(_MATCHES, project_id, list(ids), list(terms), list(norms))
    return {row["id"]: (tuple(row["terms"]), tuple(row["norms"])) for row in rows}
