"""API keys. Only the digest of a key is stored; the key itself is shown once, when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.model import KEY_SCOPES, ApiKey, KeyRole, KeyScope, Pins
from app.store.db import Conn

_COLUMNS = "project_id, id, name, prefix, created_at, last_used_at, revoked_at, role, scopes, expires_at, pins"

_INSERT = f"""
INSERT INTO api_keys (project_id, id, name, prefix, digest, role, scopes, expires_at, pins)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING {_COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def insert(
    conn: Conn,
    project_id: int,
    *,
    id: UUID,
    name: str,
    prefix: str,
    digest: bytes,
    role: KeyRole = "owner",
    scopes: Sequence[KeyScope] = KEY_SCOPES,
    expires_at: datetime | None = None,
    pins: Pins | None = None,
) -> ApiKey:
    """Insert a key. `digest`: SHA-256 of the whole key, 32 bytes."""
    return _key(
        await conn.fetchrow(
            _INSERT, project_id, id, name, prefix, digest, role, list(scopes), expires_at, dict(pins or {})
        )
    )


_FIND = f"""
SELECT {_COLUMNS}
FROM api_keys
WHERE digest = $1 AND revoked_at IS NULL                        -- index api_keys_digest; says which project asks
  AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""  # noqa: S608 - the columns are a constant


async def find_by_digest(conn: Conn, digest: bytes) -> ApiKey | None:
    """Return the valid key that has this SHA-256 digest: not revoked, not expired. It names the project."""
    row = await conn.fetchrow(_FIND, digest)
    return None if row is None else _key(row)


_LIST = f"""
SELECT {_COLUMNS}
FROM api_keys
WHERE project_id = $1
ORDER BY created_at, id
"""  # noqa: S608 - the columns are a constant


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


_GET = f"SELECT {_COLUMNS} FROM api_keys WHERE project_id = $1 AND id = $2 FOR UPDATE"  # noqa: S608


async def lock(conn: Conn, project_id: int, key_id: UUID) -> ApiKey | None:
    """Return a key of the project and hold it until the end of the transaction. None: the project has no such key."""
    row = await conn.fetchrow(_GET, project_id, key_id)
    return None if row is None else _key(row)


_UPDATE = f"""
UPDATE api_keys SET name = $3, role = $4, scopes = $5, expires_at = $6, pins = $7
WHERE project_id = $1 AND id = $2
RETURNING {_COLUMNS}
"""  # noqa: S608 - the columns are a constant


async def update(
    conn: Conn,
    project_id: int,
    key_id: UUID,
    *,
    name: str,
    role: KeyRole,
    scopes: Sequence[KeyScope],
    expires_at: datetime | None,
    pins: Pins,
) -> ApiKey:
    """Change what a key is called and may do; it stays the same key. The caller has locked it."""
    row = await conn.fetchrow(
        _UPDATE,
        project_id,
        key_id,
        name,
        role,
        list(scopes),
        expires_at,
        {field: list(ids) for field, ids in pins.items()},
    )
    return _key(row)


_EXPIRE = """
UPDATE api_keys SET expires_at = least(expires_at, clock_timestamp() + make_interval(secs => $3))
WHERE project_id = $1 AND id = $2
"""


async def expire_in(conn: Conn, project_id: int, key_id: UUID, seconds: float) -> None:
    """Let a key end in so many seconds, or when it would have ended anyway."""
    await conn.execute(_EXPIRE, project_id, key_id, seconds)


_TOUCH = """
UPDATE api_keys SET last_used_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
  AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')     -- a busy key is not a busy row
"""


async def touch(conn: Conn, project_id: int, key_id: UUID) -> None:
    """Note that the key was used just now, to the minute."""
    await conn.execute(_TOUCH, project_id, key_id)


def _key(row: Any) -> ApiKey:
    values = {**row, "scopes": tuple(row["scopes"])}
    values["pins"] = {name: tuple(patterns) for name, patterns in row["pins"].items()}
    return ApiKey(**values)
