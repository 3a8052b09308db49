"""Webhook endpoints of a project. Reads leave the secret out; whoever signs asks for it."""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from typing import Any

from app import errors
from app.model import Endpoint, WebhookEvent
from app.store.db import Conn

_ALPHABET = string.ascii_letters + string.digits
_ID_LENGTH = 20

_INSERT = """
INSERT INTO webhooks (project_id, id, name, url, event_types, is_active, owner, secret)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING project_id, id, name, url, event_types, is_active, owner, created_at, updated_at
"""


async def insert(
    conn: Conn,
    project_id: int,
    *,
    name: str,
    url: str,
    event_types: Sequence[WebhookEvent],
    is_active: bool,
    owner: str,
    secret: str,
) -> Endpoint:
    """Insert an endpoint under a new id."""
    id = "wh_" + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    values = (project_id, id, name, url, list(event_types), is_active, owner, secret)
    return _endpoint(await conn.fetchrow(_INSERT, *values))


_LIST = """
SELECT project_id, id, name, url, event_types, is_active, owner, created_at, updated_at
FROM webhooks
WHERE project_id = $1
ORDER BY created_at, id
"""


async def list_for(conn: Conn, project_id: int) -> list[Endpoint]:
    """Return the project's endpoints, oldest first."""
    return [_endpoint(row) for row in await conn.fetch(_LIST, project_id)]


_UPDATE = """
UPDATE webhooks SET
    name = coalesce($3, name),
    url = coalesce($4, url),
    event_types = coalesce($5, event_types),
    is_active = coalesce($6, is_active),
    updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
RETURNING project_id, id, name, url, event_types, is_active, owner, created_at, updated_at
"""


async def update(
    conn: Conn,
    project_id: int,
    id: str,
    *,
    name: str | None = None,
    url: str | None = None,
    event_types: Sequence[WebhookEvent] | None = None,
    is_active: bool | None = None,
) -> Endpoint:
    """Change what is not None. Raises: WebhookNotFound."""
    kinds = None if event_types is None else list(event_types)
    row = await conn.fetchrow(_UPDATE, project_id, id, name, url, kinds, is_active)
    if row is None:
        raise errors.WebhookNotFound
    return _endpoint(row)


_DELETE = "DELETE FROM webhooks WHERE project_id = $1 AND id = $2 RETURNING id"


async def delete(conn: Conn, project_id: int, id: str) -> None:
    """Delete an endpoint and its secret. Raises: WebhookNotFound."""
    if await conn.fetchval(_DELETE, project_id, id) is None:
        raise errors.WebhookNotFound


_SECRET = "SELECT secret FROM webhooks WHERE project_id = $1 AND id = $2"


async def secret_of(conn: Conn, project_id: int, id: str) -> str:
    """Return what signs the endpoint's deliveries: `whsec_` and base64. Raises: WebhookNotFound."""
    secret: str | None = await conn.fetchval(_SECRET, project_id, id)
    if secret is None:
        raise errors.WebhookNotFound
    return secret


def _endpoint(row: Any) -> Endpoint:
    return Endpoint(**{**row, "event_types": tuple(map(WebhookEvent, row["event_types"]))})
