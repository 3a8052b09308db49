"""Counts everything that is kept in step with memories, the slow way."""

from __future__ import annotations

from app.store.db import Conn

_CHECKS = {
    "counters of scopes": """
        SELECT s.id, s.memory_count, s.term_total, count(m.id), coalesce(sum(m.term_count), 0)
        FROM scopes s LEFT JOIN memories m ON m.project_id = s.project_id AND m.scope_id = s.id
        GROUP BY s.project_id, s.id
        HAVING (s.memory_count, s.term_total) <> (count(m.id), coalesce(sum(m.term_count), 0))
    """,
    "terms and the lexemes of memories": """
        SELECT * FROM (SELECT project_id, scope_id, id AS memory_id, unnest(lexemes) COLLATE "C" AS term FROM memories) m
        FULL JOIN terms t USING (project_id, scope_id, memory_id, term)
        WHERE m.* IS NULL OR t.* IS NULL
    """,
    "lengths of documents": """
        SELECT m.id, m.term_count, sum(t.tf), min(t.dl), max(t.dl)
        FROM memories m JOIN terms t ON t.project_id = m.project_id AND t.memory_id = m.id
        GROUP BY m.project_id, m.id
        HAVING (sum(t.tf), min(t.dl), max(t.dl)) <> (m.term_count, m.term_count, m.term_count)
    """,
    "vectors, one a memory": """
        SELECT m.id, count(v.memory_id) FROM memories m
        LEFT JOIN memory_vectors v ON (v.project_id, v.memory_id, v.scope_id) = (m.project_id, m.id, m.scope_id)
        GROUP BY m.project_id, m.id HAVING count(v.memory_id) <> 1
    """,
    "entities that nobody mentions": """
        SELECT e.norm FROM entities e
        WHERE NOT EXISTS (SELECT FROM memory_entities l WHERE (l.project_id, l.entity_id) = (e.project_id, e.id))
    """,
    "mentions across scopes": """
        SELECT l.* FROM memory_entities l JOIN entities e ON (e.project_id, e.id) = (l.project_id, l.entity_id)
        JOIN memories m ON (m.project_id, m.id) = (l.project_id, l.memory_id)
        WHERE m.scope_id <> e.scope_id
    """,
}


async def assert_in_step(conn: Conn) -> None:
    """Fail when anything of any project is out of step."""
    for what, statement in _CHECKS.items():
        wrong = await conn.fetch(statement)
        assert not wrong, f"{what}: {[tuple(row) for row in wrong[:3]]}"
