"""Profiles of users and agents, and what a project has set about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any
from uuid import UUID

from app.model import Event, Profile, ProfileKind, ProfileStatus
from app.store.db import Conn

_SETTINGS = "SELECT enabled, entities FROM profile_settings WHERE project_id = $1"


async def settings(conn: Conn, project_id: int) -> tuple[bool, dict[str, Any]]:
    """Return whether profiles are made, and by kind the `schema` and `custom_instructions` that are set."""
    row = await conn.fetchrow(_SETTINGS, project_id)
    return (False, {}) if row is None else (row["enabled"], row["entities"])


_LOCK_SETTINGS = """
INSERT INTO profile_settings (project_id) VALUES ($1)
ON CONFLICT (project_id) DO UPDATE SET project_id = excluded.project_id        -- takes the row's lock
RETURNING enabled, entities
"""


async def lock_settings(conn: Conn, project_id: int) -> tuple[bool, dict[str, Any]]:
    """The same, held until the end of the transaction, so that two partial changes do not undo each other."""
    row = await conn.fetchrow(_LOCK_SETTINGS, project_id)
    return row["enabled"], row["entities"]


_PUT_SETTINGS = """
UPDATE profile_settings SET enabled = $2, entities = $3, updated_at = clock_timestamp() WHERE project_id = $1
"""


async def put_settings(conn: Conn, project_id: int, enabled: bool, entities: dict[str, Any]) -> None:
    """Write settings that `lock_settings` holds."""
    await conn.execute(_PUT_SETTINGS, project_id, enabled, entities)


# A job that never ended well leaves its profiles pending: the end of its event is theirs.
_FIND = """
SELECT p.project_id, p.kind, p.name, p.profile, p.generation_count, p.updated_at,
       CASE WHEN p.status = 'pending' AND (e.id IS NULL OR e.status IN ('FAILED', 'SUCCEEDED')) THEN 'failed'
            ELSE p.status END AS status,
       CASE WHEN p.status = 'pending' THEN e.error ELSE p.error END AS error
FROM profiles p LEFT JOIN events e ON e.project_id = p.project_id AND e.id = p.event_id
WHERE p.project_id = $1 AND p.kind = $2 AND p.name = $3
"""


async def find(conn: Conn, project_id: int, kind: ProfileKind, name: str) -> Profile | None:
    """Return the profile of an owner; None: none was ever asked for."""
    row = await conn.fetchrow(_FIND, project_id, kind, name)
    return None if row is None else Profile(**{field.name: row[field.name] for field in fields(Profile)})


_EXPECT = """
INSERT INTO profiles AS p (project_id, kind, name, event_id, status)
SELECT o.project_id, o.kind, o.name, $4, 'pending'
FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.name = ANY($3::text[])
ORDER BY o.name
FOR KEY SHARE
ON CONFLICT (project_id, kind, name) DO UPDATE
SET status = 'pending', event_id = excluded.event_id, error = NULL, updated_at = clock_timestamp()
WHERE p.status <> 'succeeded'                   -- the former profile is shown until there is a new one
"""


async def expect(conn: Conn, project_id: int, kind: ProfileKind, names: Collection[str], event_id: UUID) -> None:
    """Note that a job will make the profiles of these owners."""
    await conn.execute(_EXPECT, project_id, kind, list(names), event_id)


_PUT = """
INSERT INTO profiles AS p (project_id, kind, name, event_id, status, profile, error, generation_count)
SELECT o.project_id, o.kind, o.name, $4, $5, $6, $7, 1
FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.name = $3
FOR KEY SHARE
ON CONFLICT (project_id, kind, name) DO UPDATE
SET event_id = excluded.event_id, status = excluded.status, profile = excluded.profile, error = excluded.error,
    generation_count = p.generation_count + 1, updated_at = clock_timestamp()
RETURNING true
"""


async def put(
    conn: Conn,
    event: Event,
    kind: ProfileKind,
    name: str,
    status: ProfileStatus,
    *,
    profile: dict[str, Any] | None = None,
    error: str | None = None,
) -> bool:
    """Replace the profile of an owner by what this job made; False: the owner is gone."""
    made = await conn.fetchval(_PUT, event.project_id, kind, name, event.id, status, profile, error)
    return made is not None


_SAMPLE = """
SELECT o.name
FROM owners o LEFT JOIN profiles p ON p.project_id = o.project_id AND p.kind = o.kind AND p.name = o.name
WHERE o.project_id = $1 AND o.kind = $2
  AND CASE o.kind                               -- indexes scopes_user, scopes_agent
      WHEN 'user' THEN EXISTS (
          SELECT FROM scopes s WHERE s.project_id = $1 AND s.user_id = o.name AND s.memory_count > 0)
      ELSE EXISTS (
          SELECT FROM scopes s WHERE s.project_id = $1 AND s.agent_id = o.name AND s.memory_count > 0) END
ORDER BY p.updated_at NULLS FIRST, o.id                         -- those without a profile, then the oldest profiles
LIMIT $3
"""


async def sample(conn: Conn, project_id: int, kind: ProfileKind, *, limit: int) -> list[str]:
    """Return owners that have memories; those whose profile is missing or oldest first, so that samples do not repeat."""
    return [row["name"] for row in await conn.fetch(_SAMPLE, project_id, kind, limit)]
