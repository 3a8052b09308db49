"""Webhook endpoints of a project. Reads leave the secret out; whoever signs asks for it."""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app import errors
from app.model import Endpoint, WebhookEvent
from app.store.db import Conn

_ALPHABET = string.ascii_letters + string.digits
_ID_LENGTH = 20
FORMER_SECRETS = 5  #: that sign beside the present one, however often it is rotated

_INSERT = """
INSERT INTO webhooks (project_id, id, name, url, event_types, is_active, owner, secret)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at
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
SELECT project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at
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
    disabled_reason = CASE WHEN $6 IS NULL THEN disabled_reason END,
    failing_since = CASE WHEN $4 IS NULL AND $6 IS NOT TRUE THEN failing_since END,     -- it gets a new start
    updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
RETURNING project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at
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


_GET = """
SELECT project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at
FROM webhooks
WHERE project_id = $1 AND id = $2
"""


async def get(conn: Conn, project_id: int, id: str) -> Endpoint:
    """Return one endpoint. Raises: WebhookNotFound."""
    row = await conn.fetchrow(_GET, project_id, id)
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


_ROTATE = f"""
UPDATE webhooks w
SET secret = $3, updated_at = clock_timestamp(), former_secrets = (
    SELECT coalesce(jsonb_agg(former ORDER BY (former ->> 'until')::timestamptz DESC), '[]')
    FROM (
        SELECT former
        FROM jsonb_array_elements(w.former_secrets || jsonb_build_object(
            'secret', w.secret, 'until', clock_timestamp() + make_interval(secs => $4))) AS former
        WHERE (former ->> 'until')::timestamptz > clock_timestamp()
        ORDER BY (former ->> 'until')::timestamptz DESC
        LIMIT {FORMER_SECRETS}
    ) AS kept)
WHERE project_id = $1 AND id = $2
RETURNING clock_timestamp() + make_interval(secs => $4) AS until
"""  # noqa: S608 - a constant


async def rotate(conn: Conn, project_id: int, id: str, secret: str, *, overlap_s: float) -> datetime:
    """Sign with a new secret, and for `overlap_s` more seconds with the old one too; return until when.

    Raises: WebhookNotFound.
    """
    until: datetime | None = await conn.fetchval(_ROTATE, project_id, id, secret, overlap_s)
    if until is None:
        raise errors.WebhookNotFound
    return until


_SUCCEEDED = """
UPDATE webhooks SET failing_since = NULL, failed_at = NULL
WHERE project_id = $1 AND id = $2 AND failing_since IS NOT NULL
"""


async def succeeded(conn: Conn, project_id: int, id: str) -> None:
    """Note that an attempt succeeded; writes nothing unless the last one failed."""
    await conn.execute(_SUCCEEDED, project_id, id)


_FAILED = """
UPDATE webhooks
SET failing_since = CASE WHEN failed_at > clock_timestamp() - make_interval(secs => $3) THEN failing_since
                    ELSE clock_timestamp() END,
    failed_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
RETURNING is_active, extract(epoch FROM clock_timestamp() - coalesce(failing_since, clock_timestamp()))::float8
"""


async def failed(conn: Conn, project_id: int, id: str, *, streak_s: float) -> float | None:
    """Note that an attempt failed; return for how many seconds all have failed. None: it is not active, or gone.

    Failures that are more than `streak_s` apart begin a new row of them.
    """
    row = await conn.fetchrow(_FAILED, project_id, id, streak_s)
    return row[1] if row is not None and row["is_active"] else None


_DISABLE = """
UPDATE webhooks SET is_active = false, disabled_reason = $3, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND is_active
"""


async def disable(conn: Conn, project_id: int, id: str, reason: str) -> None:
    """Deliver nothing more to the endpoint, for a reason that its owner is shown."""
    await conn.execute(_DISABLE, project_id, id, reason)


def _endpoint(row: Any) -> Endpoint:
    return Endpoint(**{**row, "event_types": tuple(map(WebhookEvent, row["event_types"]))})
