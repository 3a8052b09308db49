"""One memory against conditions: which of them it meets."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.model import FilterNode
from app.store import filters
from app.store.db import Conn


async def meets(conn: Conn, project_id: int, memory_id: UUID, nodes: Sequence[FilterNode]) -> list[bool]:
    """Return of each tree whether it lets the memory through, as lists and searches would; none when it is gone."""
    conditions: list[str] = []
    args: list[object] = []
    for node in nodes:
        compiled = filters.compile_memories(node, first=3 + len(args))
        conditions.append(f"({compiled.sql})")
        args += compiled.args
    listed = f"ARRAY[{', '.join(conditions)}]::boolean[]"
    sql = f"SELECT {listed} AS met FROM memories m WHERE m.project_id = $1 AND m.id = $2"  # noqa: S608
    row = await conn.fetchrow(sql, project_id, memory_id, *args)
    return [] if row is None else list(row["met"])
