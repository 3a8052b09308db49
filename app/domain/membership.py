"""Members of organizations and projects. An address is enough: nobody needs an account.

Members are kept and shown; what a request may do is decided by its key. Callers are those of `tenancy`.
"""

from __future__ import annotations

import re

from app import errors
from app.domain import audit, tenancy
from app.model import Caller, Member, MemberRole, Organization
from app.runtime import Runtime
from app.store import members
from app.store.db import Conn

EMAIL_CHARS = 254  #: RFC 5321
_EMAIL = re.compile(r"[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+")


async def of_organization(rt: Runtime, caller: Caller | None, org_id: str) -> list[Member]:
    """Return the members of an organization, oldest first. Raises: NotFound."""
    return (await tenancy.organization(rt, caller, org_id)).members


async def add_to_organization(rt: Runtime, caller: Caller | None, org_id: str, email: object, role: object) -> None:
    """Make an address a member; it needs no account. Raises: NotFound, NotAllowed, InvalidRequest."""
    member = checked_member(email, role)
    async with rt.db.transaction(None) as conn:
        found = await _own_organization(conn, caller, org_id)
        if not await members.add_to_organization(conn, found.id, member):
            raise errors.InvalidRequest("The user is a member of the organization already.", field="email")
        await audit.note(
            conn, "member.add", organization=found.public_id, objects=[audit.member_mark(found, member.email)]
        )


async def set_in_organization(rt: Runtime, caller: Caller | None, org_id: str, email: object, role: object) -> None:
    """Give a member another role. Raises: NotFound, NotAllowed, InvalidRequest."""
    member = checked_member(email, role)
    async with rt.db.transaction(None) as conn:
        found = await _own_organization(conn, caller, org_id)
        if not await members.set_in_organization(conn, found.id, member.email, member.role):
            raise errors.NotFound("User not found in the organization.")
        await audit.note(
            conn, "member.update", organization=found.public_id, objects=[audit.member_mark(found, member.email)]
        )


async def remove_from_organization(rt: Runtime, caller: Caller | None, org_id: str, email: object) -> None:
    """Remove a member. Raises: NotFound, NotAllowed, InvalidRequest."""
    address = checked_email(email)
    async with rt.db.transaction(None) as conn:
        found = await _own_organization(conn, caller, org_id)
        if not await members.remove_from_organization(conn, found.id, address):
            raise errors.NotFound("User not found in the organization.")
        await audit.note(
            conn, "member.remove", organization=found.public_id, objects=[audit.member_mark(found, address)]
        )


async def _own_organization(conn: Conn, caller: Caller | None, org_id: str) -> Organization:
    found = await tenancy.reached_organization(conn, caller, org_id)
    tenancy.require_owner(caller, "Unauthorized")
    return found


async def of_project(rt: Runtime, caller: Caller | None, org_id: str, project_id: str) -> list[Member]:
    """Return the members of a project, oldest first. Raises: NotFound."""
    return (await tenancy.project(rt, caller, org_id, project_id)).members


async def add_to_project(
    rt: Runtime, caller: Caller | None, org_id: str, project_id: str, email: object, role: object
) -> None:
    """Make an address a member; it needs no account. Raises: NotFound, InvalidRequest."""
    member = checked_member(email, role)
    async with rt.db.transaction(None) as conn:
        found = await tenancy.reached_project(conn, caller, org_id, project_id)
        if not await members.add_to_project(conn, found.id, member):
            raise errors.InvalidRequest("The user is a member of the project already.", field="email")
        await audit.note(conn, "member.add", project=found, objects=[audit.member_mark(found, member.email)])


async def set_in_project(
    rt: Runtime, caller: Caller | None, org_id: str, project_id: str, email: object, role: object
) -> None:
    """Give a member another role. Raises: NotFound, InvalidRequest."""
    member = checked_member(email, role)
    async with rt.db.transaction(None) as conn:
        found = await tenancy.reached_project(conn, caller, org_id, project_id)
        if not await members.set_in_project(conn, found.id, member.email, member.role):
            raise errors.NotFound("User not found in the project.")
        await audit.note(conn, "member.update", project=found, objects=[audit.member_mark(found, member.email)])


async def remove_from_project(rt: Runtime, caller: Caller | None, org_id: str, project_id: str, email: object) -> None:
    """Remove a member. Raises: NotFound, InvalidRequest."""
    address = checked_email(email)
    async with rt.db.transaction(None) as conn:
        found = await tenancy.reached_project(conn, caller, org_id, project_id)
        if not await members.remove_from_project(conn, found.id, address):
            raise errors.NotFound("User not found in the project.")
        await audit.note(conn, "member.remove", project=found, objects=[audit.member_mark(found, address)])


def checked_member(email: object, role: object) -> Member:
    """Return who becomes a member. Raises: InvalidRequest, which names the field."""
    roles: dict[object, MemberRole] = {"READER": "READER", "OWNER": "OWNER"}
    known = roles.get(role if isinstance(role, str) else None)
    address = checked_email(email)
    if known is None:
        raise errors.InvalidRequest("role must be READER or OWNER.", field="role")
    return Member(address, known)


def checked_email(email: object) -> str:
    """Return an address, trimmed. Raises: InvalidRequest, which names the field."""
    text = email.strip() if isinstance(email, str) else ""
    if len(text) > EMAIL_CHARS or not _EMAIL.fullmatch(text):
        raise errors.InvalidRequest("email must be an address such as alice@example.com.", field="email")
    return text
