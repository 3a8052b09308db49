"""Numbers about a project."""

from __future__ import annotations

from collections.abc import Mapping

from app.model import Stats
from app.store.db import Conn

# Scopes carry counters, so that no memory has to be read.
_STATS = """
WITH counted AS (                                               -- primary key of scopes
    SELECT sum(memory_count) AS memories,
           sum(memory_count) FILTER (WHERE user_id IS NOT NULL) AS of_users,
           sum(memory_count) FILTER (WHERE agent_id IS NOT NULL) AS of_agents,
           sum(memory_count) FILTER (WHERE run_id IS NOT NULL) AS of_runs,
           count(DISTINCT user_id) FILTER (WHERE memory_count > 0) AS users,
           count(DISTINCT agent_id) FILTER (WHERE memory_count > 0) AS agents,
           count(DISTINCT run_id) FILTER (WHERE memory_count > 0) AS runs
    FROM scopes
    WHERE project_id = $1
)
SELECT coalesce(memories, 0)::bigint AS memories, coalesce(of_users, 0)::bigint AS of_users,
       coalesce(of_agents, 0)::bigint AS of_agents, coalesce(of_runs, 0)::bigint AS of_runs, users, agents, runs,
       (SELECT count(*) FROM events WHERE project_id = $1 AND kind = 'ADD') AS adds,
       (SELECT coalesce(sum(count), 0)::bigint FROM retrievals WHERE project_id = $1) AS retrievals
FROM counted
"""


async def read(conn: Conn, project_id: int) -> Stats:
    """Return the numbers of a project."""
    return Stats(**await conn.fetchrow(_STATS, project_id))


_ADD_RETRIEVALS = """
INSERT INTO retrievals AS r (project_id, kind, count)
SELECT $1, c.kind, c.count FROM unnest($2::text[], $3::bigint[]) AS c (kind, count)
ORDER BY c.kind                                                 -- one order for everybody: no deadlock
ON CONFLICT (project_id, kind) DO UPDATE SET count = r.count + excluded.count
"""


async def add_retrievals(conn: Conn, project_id: int, counts: Mapping[str, int]) -> None:
    """Count reads: how many of each kind (SEARCH, GET_ALL, GET) there were."""
    await conn.execute(_ADD_RETRIEVALS, project_id, list(counts), list(counts.values()))
