"""Organizations and projects: the directory of tenants."""

from __future__ import annotations

import secrets
import string
from dataclasses import asdict, fields
from datetime import date
from typing import Any

from app import errors
from app.model import Organization, Project, ProjectSettings
from app.store.db import Conn

_ALPHABET = string.ascii_letters + string.digits
_ID_LENGTH = 20  # 119 bits of randomness: no clash is expected

_LOCK_DIRECTORY = "SELECT pg_advisory_xact_lock(hashtextextended('memoryd.directory', 0))"


async def lock_directory(conn: Conn) -> None:
    """Wait until no other transaction holds this, and hold it to the end: only one process makes the first project."""
    await conn.execute(_LOCK_DIRECTORY)


_INSERT_ORGANIZATION = """
INSERT INTO organizations (public_id, name) VALUES ($1, $2)
RETURNING id, public_id, name, created_at, updated_at
"""


async def insert_organization(conn: Conn, *, name: str) -> Organization:
    """Insert an organization under a new public id."""
    return _organization(await conn.fetchrow(_INSERT_ORGANIZATION, _public_id("org_"), name))


_GET_ORGANIZATION = """
SELECT id, public_id, name, created_at, updated_at FROM organizations WHERE public_id = $1
"""


async def get_organization(conn: Conn, public_id: str) -> Organization:
    """Return the organization with this public id. Raises: NotFound."""
    row = await conn.fetchrow(_GET_ORGANIZATION, public_id)
    if row is None:
        raise errors.NotFound("Organization not found.")
    return _organization(row)


_LIST_ORGANIZATIONS = "SELECT id, public_id, name, created_at, updated_at FROM organizations ORDER BY id"


async def list_organizations(conn: Conn) -> list[Organization]:
    """Return all organizations, oldest first."""
    return [_organization(row) for row in await conn.fetch(_LIST_ORGANIZATIONS)]


_INSERT_PROJECT = """
WITH inserted AS (
    INSERT INTO projects (public_id, organization_id, name, description, settings) VALUES ($1, $2, $3, $4, $5)
    RETURNING *
)
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM inserted p JOIN organizations o ON o.id = p.organization_id
"""


async def insert_project(
    conn: Conn, organization_id: int, *, name: str, description: str | None = None, settings: ProjectSettings
) -> Project:
    """Insert a project of an organization under a new public id."""
    values = (_public_id("proj_"), organization_id, name, description, settings_to_json(settings))
    return _project(await conn.fetchrow(_INSERT_PROJECT, *values))


_GET_PROJECT = """
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE p.id = $1
"""


async def get_project(conn: Conn, project_id: int) -> Project:
    """Return the project. Raises: NotFound."""
    row = await conn.fetchrow(_GET_PROJECT, project_id)
    if row is None:
        raise errors.NotFound("Project not found.")
    return _project(row)


_FIND_PROJECT = """
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE p.public_id = $1
"""


async def find_project(conn: Conn, public_id: str) -> Project | None:
    """Return the project with this public id."""
    row = await conn.fetchrow(_FIND_PROJECT, public_id)
    return None if row is None else _project(row)


_LIST_PROJECTS = """
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE $1::bigint IS NULL OR p.organization_id = $1              -- index projects_organization
ORDER BY p.id
"""


async def list_projects(conn: Conn, organization_id: int | None = None) -> list[Project]:
    """Return the projects of an organization, or all; oldest first."""
    return [_project(row) for row in await conn.fetch(_LIST_PROJECTS, organization_id)]


_SAVE_SETTINGS = """
WITH saved AS (
    UPDATE projects SET settings = $2, updated_at = clock_timestamp() WHERE id = $1 RETURNING *
)
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM saved p JOIN organizations o ON o.id = p.organization_id
"""


async def save_settings(conn: Conn, project_id: int, settings: ProjectSettings) -> Project:
    """Replace the project's settings. Raises: NotFound."""
    row = await conn.fetchrow(_SAVE_SETTINGS, project_id, settings_to_json(settings))
    if row is None:
        raise errors.NotFound("Project not found.")
    return _project(row)


def settings_to_json(settings: ProjectSettings) -> dict[str, Any]:
    """Return what is stored: settings that are None are left out, so that a later default reaches them."""
    stored = {name: value for name, value in asdict(settings).items() if value is not None}
    if settings.expiration_date is not None:
        stored["expiration_date"] = settings.expiration_date.isoformat()
    return stored


def settings_from_json(stored: dict[str, Any]) -> ProjectSettings:
    """Return the settings; absent keys have their defaults, keys of a newer memoryd are passed over."""
    known = {field.name: stored[field.name] for field in fields(ProjectSettings) if field.name in stored}
    if "raw_roles" in known:
        known["raw_roles"] = tuple(known["raw_roles"])
    if "expiration_date" in known:
        known["expiration_date"] = date.fromisoformat(known["expiration_date"])
    return ProjectSettings(**known)


def _organization(row: Any) -> Organization:
    return Organization(**row)


def _project(row: Any) -> Project:
    return Project(**{**row, "settings": settings_from_json(row["settings"])})


def _public_id(prefix: str) -> str:
    return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
