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
INSERT INTO organizations (public_id, name, creator_id) VALUES ($1, $2, $3)
RETURNING id, public_id, name, created_at, updated_at, creator_id
"""


async def insert_organization(conn: Conn, *, name: str, creator_id: int | None = None) -> Organization:
    """Insert an organization under a new public id. `creator_id`: the organization whose key makes it."""
    return _organization(await conn.fetchrow(_INSERT_ORGANIZATION, _public_id("org_"), name, creator_id))


_GET_ORGANIZATION = """
SELECT id, public_id, name, created_at, updated_at, creator_id FROM organizations WHERE public_id = $1
"""


async def get_organization(conn: Conn, public_id: str) -> Organization:
    """Return the organization with this public id. Raises: NotFound."""
    row = await conn.fetchrow(_GET_ORGANIZATION, public_id)
    if row is None:
        raise errors.NotFound("Organization not found")
    return _organization(row)


_LIST_ORGANIZATIONS = """
SELECT id, public_id, name, created_at, updated_at, creator_id
FROM organizations
WHERE $1::bigint IS NULL OR id = $1 OR creator_id = $1          -- primary key, index organizations_creator
ORDER BY id
"""


async def list_organizations(conn: Conn, *, reached_from: int | None = None) -> list[Organization]:
    """Return all organizations, or one and those that its keys made; oldest first."""
    return [_organization(row) for row in await conn.fetch(_LIST_ORGANIZATIONS, reached_from)]


_RENAME_ORGANIZATION = """
UPDATE organizations SET name = $2, updated_at = clock_timestamp() WHERE id = $1
RETURNING id, public_id, name, created_at, updated_at, creator_id
"""


async def rename_organization(conn: Conn, organization_id: int, name: str) -> Organization:
    """Give an organization another name. Raises: NotFound."""
    row = await conn.fetchrow(_RENAME_ORGANIZATION, organization_id, name)
    if row is None:
        raise errors.NotFound("Organization not found")
    return _organization(row)


_DELETE_ORGANIZATION = "DELETE FROM organizations WHERE id = $1"


async def delete_organization(conn: Conn, organization_id: int) -> None:
    """Delete an organization and its members. Its projects are deleted before, with `erase.project`."""
    await conn.execute(_DELETE_ORGANIZATION, organization_id)


_OLDEST_ORGANIZATION = "SELECT min(id) FROM organizations"


async def oldest_organization(conn: Conn) -> int | None:
    """Return the id of the first organization: the installation's own."""
    found: int | None = await conn.fetchval(_OLDEST_ORGANIZATION)
    return found


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


_LOCK_PROJECT = """
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE p.id = $1
FOR NO KEY UPDATE OF p                                          -- adds, which refer to the row, go on meanwhile
"""


async def lock_project(conn: Conn, project_id: int) -> Project:
    """Return the project, which nobody else changes until the transaction ends. Raises: NotFound."""
    row = await conn.fetchrow(_LOCK_PROJECT, project_id)
    if row is None:
        raise errors.NotFound("Project not found.")
    return _project(row)


_SAVE_PROJECT = """
WITH saved AS (
    UPDATE projects SET name = $2, description = $3, settings = $4, updated_at = clock_timestamp() WHERE id = $1
    RETURNING *
)
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM saved p JOIN organizations o ON o.id = p.organization_id
"""


async def save_project(
    conn: Conn, project_id: int, *, name: str, description: str | None, settings: ProjectSettings
) -> Project:
    """Replace what a project can change of itself. Raises: NotFound."""
    row = await conn.fetchrow(_SAVE_PROJECT, project_id, name, description, settings_to_json(settings))
    if row is None:
        raise errors.NotFound("Project not found.")
    return _project(row)


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
