"""API keys. Only the digest of a key is stored; the key itself is shown once, when it is made."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.model import ApiKey, KeyRole
from app.store.db import Conn

_INSERT = """
INSERT INTO api_keys (project_id, id, name, prefix, digest, role) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING project_id, id, name, prefix, created_at, last_used_at, revoked_at, role
"""


async def insert(
    conn: Conn, project_id: int, *, id: UUID, name: str, prefix: str, digest: bytes, role: KeyRole = "owner"
) -> ApiKey:
    """Insert a key. `digest`: SHA-256 of the whole key, 32 bytes."""
    return _key(await conn.fetchrow(_INSERT, project_id, id, name, prefix, digest, role))


_FIND = """
SELECT project_id, id, name, prefix, created_at, last_used_at, revoked_at, role
FROM api_keys
WHERE digest = $1 AND revoked_at IS NULL                        -- index api_keys_digest; says which project asks
"""


async def find_by_digest(conn: Conn, digest: bytes) -> ApiKey | None:
    """Return the key that was not revoked and has this SHA-256 digest; it names the project."""
    row = await conn.fetchrow(_FIND, digest)
    return None if row is None else _key(row)


_LIST = """
SELECT project_id, id, name, prefix, created_at, last_used_at, revoked_at, role
FROM api_keys
WHERE project_id = $1
ORDER BY created_at, id
"""


async def list_for(conn: Conn, project_id: int) -> list[ApiKey]:
    """Return the project's keys, revoked ones too, oldest first."""
    return [_key(row) for row in await conn.fetch(_LIST, project_id)]


_REVOKE = """
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE project_id = $1 AND id = $2
RETURNING id
"""


async def revoke(conn: Conn, project_id: int, key_id: UUID) -> bool:
    """Make a key useless; the first time counts. Safe to repeat. False: the project has no such key."""
    return await conn.fetchval(_REVOKE, project_id, key_id) is not None


_TOUCH = """
UPDATE api_keys SET last_used_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
  AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')     -- a busy key is not a busy row
"""


async def touch(conn: Conn, project_id: int, key_id: UUID) -> None:
    """Note that the key was used just now, to the minute."""
    await conn.execute(_TOUCH, project_id, key_id)


def _key(row: Any) -> ApiKey:
    return ApiKey(**row)
