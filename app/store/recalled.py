"""Which texts are memories already, of whoever is spoken with: what was recalled for a conversation may come back in it."""

from __future__ import annotations

from collections.abc import Collection

from app.model import Owners
from app.store.db import Conn

SCOPES = 200  #: newest scopes of a user that are looked through: one with thousands of runs has them nearly for itself

_KNOWN = """
WITH near AS (
    SELECT s.id FROM scopes s
    WHERE s.project_id = $1
      AND CASE WHEN $2::text IS NOT NULL THEN s.user_id = $2
               WHEN $3::text IS NOT NULL THEN s.user_id IS NULL AND s.agent_id = $3
               ELSE s.user_id IS NULL AND s.agent_id IS NULL AND (s.run_id = $4 OR s.app_id = $5) END
    ORDER BY s.id DESC
    LIMIT $7
)
SELECT DISTINCT m.hash
FROM near n JOIN memories m ON m.project_id = $1 AND m.scope_id = n.id AND m.hash = ANY($6::text[])   -- its unique key
"""


async def known(conn: Conn, project_id: int, owners: Owners, hashes: Collection[str]) -> set[str]:
    """Return those MD5s that are of memories of the same user in any scope; without a user, of the agent, else the run."""
    named = (owners.user_id, owners.agent_id, owners.run_id, owners.app_id)
    return {row["hash"] for row in await conn.fetch(_KNOWN, project_id, *named, list(hashes), SCOPES)}
