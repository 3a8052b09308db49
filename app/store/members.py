"""Members of organizations and projects. An address is one member, however it is capitalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.model import Member, MemberRole
from app.store.db import Conn

_LIST_OF_ORGANIZATIONS = """
SELECT organization_id AS of, email, role
FROM organization_members
WHERE organization_id = ANY($1::bigint[])
ORDER BY created_at, email_folded
"""


async def of_organizations(conn: Conn, organization_ids: Sequence[int]) -> dict[int, list[Member]]:
    """Return the members of each organization, oldest first."""
    return _grouped(organization_ids, await conn.fetch(_LIST_OF_ORGANIZATIONS, list(organization_ids)))


_ADD_TO_ORGANIZATION = """
INSERT INTO organization_members (organization_id, email, role) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING true
"""


async def add_to_organization(conn: Conn, organization_id: int, member: Member) -> bool:
    """Add a member. False: the address is one already, and keeps its role."""
    return await conn.fetchval(_ADD_TO_ORGANIZATION, organization_id, member.email, member.role) is not None


_SET_IN_ORGANIZATION = """
UPDATE organization_members SET role = $3 WHERE organization_id = $1 AND email_folded = lower($2) RETURNING true
"""


async def set_in_organization(conn: Conn, organization_id: int, email: str, role: MemberRole) -> bool:
    """Give a member another role. False: the address is no member."""
    return await conn.fetchval(_SET_IN_ORGANIZATION, organization_id, email, role) is not None


_REMOVE_FROM_ORGANIZATION = """
DELETE FROM organization_members WHERE organization_id = $1 AND email_folded = lower($2) RETURNING true
"""


async def remove_from_organization(conn: Conn, organization_id: int, email: str) -> bool:
    """Remove a member. False: the address is no member."""
    return await conn.fetchval(_REMOVE_FROM_ORGANIZATION, organization_id, email) is not None


_LIST_OF_PROJECTS = """
SELECT project_id AS of, email, role
FROM project_members
WHERE project_id = ANY($1::bigint[])
ORDER BY created_at, email_folded
"""


async def of_projects(conn: Conn, project_ids: Sequence[int]) -> dict[int, list[Member]]:
    """Return the members of each project, oldest first."""
    return _grouped(project_ids, await conn.fetch(_LIST_OF_PROJECTS, list(project_ids)))


_ADD_TO_PROJECT = """
INSERT INTO project_members (project_id, email, role) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING true
"""


async def add_to_project(conn: Conn, project_id: int, member: Member) -> bool:
    """Add a member. False: the address is one already, and keeps its role."""
    return await conn.fetchval(_ADD_TO_PROJECT, project_id, member.email, member.role) is not None


_SET_IN_PROJECT = """
UPDATE project_members SET role = $3 WHERE project_id = $1 AND email_folded = lower($2) RETURNING true
"""


async def set_in_project(conn: Conn, project_id: int, email: str, role: MemberRole) -> bool:
    """Give a member another role. False: the address is no member."""
    return await conn.fetchval(_SET_IN_PROJECT, project_id, email, role) is not None


_REMOVE_FROM_PROJECT = """
DELETE FROM project_members WHERE project_id = $1 AND email_folded = lower($2) RETURNING true
"""


async def remove_from_project(conn: Conn, project_id: int, email: str) -> bool:
    """Remove a member. False: the address is no member."""
    return await conn.fetchval(_REMOVE_FROM_PROJECT, project_id, email) is not None


def _grouped(ids: Sequence[int], rows: Sequence[Any]) -> dict[int, list[Member]]:
    found: dict[int, list[Member]] = {id: [] for id in ids}
    for row in rows:
        found[row["of"]].append(Member(row["email"], row["role"]))
    return found
