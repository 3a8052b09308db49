"""Organizations and projects: who may see and change which.

A key belongs to a project. It reads and changes that project and nothing else; an owner's key also makes, changes and
deletes the projects of its organization, and of the organizations that were made with such a key. What a key does not
reach does not exist for it. Where a caller is None, the operator asks, at a shell, and reaches everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import errors
from app.domain import access, audit, erase, project_settings
from app.model import Caller, Member, Organization, Project, ProjectSettings
from app.runtime import Runtime
from app.store import members, orgs
from app.store.db import Conn


@dataclass(frozen=True, slots=True)
class OrganizationView:
    """An organization as its members see it."""

    organization: Organization
    members: list[Member]
    is_default: bool  # the first of the installation


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project as its members see it."""

    project: Project
    members: list[Member]
    is_default: bool  # the first of its organization


# What a caller reaches


async def reached_organization(conn: Conn, caller: Caller | None, public_id: str) -> Organization:
    """Return an organization. Raises: NotFound when the caller does not reach it."""
    found = await orgs.get_organization(conn, public_id)
    if caller is None or found.id == caller.project.organization_id:
        return found
    if caller.role != "owner" or found.creator_id != caller.project.organization_id:
        raise errors.NotFound("Organization not found")
    return found


async def reached_project(conn: Conn, caller: Caller | None, org_id: str, project_id: str) -> Project:
    """Return a project by the public ids of its organization and itself. Raises: NotFound."""
    try:
        organization = await reached_organization(conn, caller, org_id)
    except errors.NotFound:
        raise _no_project() from None
    found = await orgs.find_project(conn, project_id)
    if found is None or found.organization_id != organization.id:
        raise _no_project()
    if caller is not None and caller.role != "owner" and found.id != caller.project.id:
        raise _no_project()
    return found


def _no_project() -> errors.NotFound:
    return errors.NotFound("Organization or project not found")


def require_owner(caller: Caller | None, refusal: str) -> None:
    """Raise NotAllowed with `refusal` when the key is no owner's."""
    if caller is not None and caller.role != "owner":
        raise errors.NotAllowed(refusal)


# Organizations


async def organizations(rt: Runtime, caller: Caller | None) -> list[OrganizationView]:
    """Return the organizations that the caller reaches, oldest first."""
    async with rt.db.acquire(None) as conn:
        reached_from = None if caller is None else caller.project.organization_id
        found = await orgs.list_organizations(conn, reached_from=reached_from)
        if caller is not None and caller.role != "owner":
            found = [organization for organization in found if organization.id == reached_from]
        return await _organization_views(conn, found)


async def organization(rt: Runtime, caller: Caller | None, org_id: str) -> OrganizationView:
    """Return one organization. Raises: NotFound."""
    async with rt.db.acquire(None) as conn:
        return (await _organization_views(conn, [await reached_organization(conn, caller, org_id)]))[0]


async def _organization_views(conn: Conn, found: Sequence[Organization]) -> list[OrganizationView]:
    first = await orgs.oldest_organization(conn)
    belong = await members.of_organizations(conn, [organization.id for organization in found])
    return [OrganizationView(one, belong[one.id], one.id == first) for one in found]


async def create_organization(rt: Runtime, caller: Caller | None, name: object) -> Organization:
    """Make an organization that the caller owns. Raises: NotAllowed, InvalidRequest."""
    require_owner(caller, "Unauthorized to create organizations.")
    named = project_settings.read(rt.settings, "name", name)
    async with rt.db.transaction(None) as conn:
        creator_id = None if caller is None else caller.project.organization_id
        made = await orgs.insert_organization(conn, name=named, creator_id=creator_id)
        await members.add_to_organization(conn, made.id, _first_member(caller))
        await audit.note(conn, "organization.create", organization=made.public_id)
        return made


async def rename_organization(rt: Runtime, caller: Caller | None, org_id: str, name: object) -> Organization:
    """Give an organization another name. Raises: NotAllowed, NotFound, InvalidRequest."""
    named = project_settings.read(rt.settings, "name", name)
    async with rt.db.transaction(None) as conn:
        found = await reached_organization(conn, caller, org_id)
        require_owner(caller, "Unauthorized")
        await audit.note(conn, "organization.rename", organization=found.public_id)
        return await orgs.rename_organization(conn, found.id, named)


async def delete_organization(rt: Runtime, caller: Caller | None, org_id: str) -> erase.Receipt:
    """Delete an organization with its projects and everything in them. Keys of these stop working. Return the receipt.

    Safe to break off and to repeat. Raises: NotAllowed, NotFound; Conflict for the installation's own organization.
    """
    async with rt.db.transaction(None) as conn:
        doomed = await _doomed_organization(conn, caller, org_id)
        project_ids = [project.id for project in await orgs.list_projects(conn, doomed.id)]
    await erase.stop_sending(rt, project_ids)
    async with rt.db.transaction(None) as conn:
        await orgs.lock_directory(conn)
        doomed = await _doomed_organization(conn, caller, org_id)
        within = await orgs.list_projects(conn, doomed.id)
        project_ids = [project.id for project in within]
        receipt = await erase.projects(conn, project_ids)
        await orgs.delete_organization(conn, doomed.id)
        gone = [project.public_id for project in within]
        await audit.note(conn, "organization.delete", organization=doomed.public_id, objects=gone)
    access.forget()
    return await erase.confirmed(rt, receipt, project_ids)


async def _doomed_organization(conn: Conn, caller: Caller | None, org_id: str) -> Organization:
    found = await reached_organization(conn, caller, org_id)
    require_owner(caller, "Unauthorized")
    if found.id == await orgs.oldest_organization(conn):
        raise errors.Conflict("The first organization is the installation's own, and cannot be deleted.")
    return found


# Projects


async def projects(rt: Runtime, caller: Caller | None, org_id: str) -> list[ProjectView]:
    """Return the projects of an organization that the caller reaches, oldest first. Raises: NotFound."""
    async with rt.db.acquire(None) as conn:
        organization = await reached_organization(conn, caller, org_id)
        views = await _project_views(conn, organization.id)
    if caller is None or caller.role == "owner":
        return views
    return [view for view in views if view.project.id == caller.project.id]


async def all_projects(rt: Runtime) -> list[Project]:
    """Return the projects of all organizations, oldest first; for the operator alone."""
    async with rt.db.acquire(None) as conn:
        return await orgs.list_projects(conn)


async def project(rt: Runtime, caller: Caller | None, org_id: str, project_id: str) -> ProjectView:
    """Return one project. Raises: NotFound."""
    async with rt.db.acquire(None) as conn:
        found = await reached_project(conn, caller, org_id, project_id)
        siblings = await orgs.list_projects(conn, found.organization_id)
        belong = await members.of_projects(conn, [found.id])
    return ProjectView(found, belong[found.id], found.id == siblings[0].id)


async def _project_views(conn: Conn, organization_id: int) -> list[ProjectView]:
    found = await orgs.list_projects(conn, organization_id)
    belong = await members.of_projects(conn, [project.id for project in found])
    return [ProjectView(one, belong[one.id], position == 0) for position, one in enumerate(found)]


async def create_project(
    rt: Runtime, caller: Caller | None, org_id: str, *, name: object, description: object = None
) -> Project:
    """Make a project with the default settings. Raises: NotFound, NotAllowed, InvalidRequest."""
    named = project_settings.read(rt.settings, "name", name)
    text = project_settings.read(rt.settings, "description", description)
    empty = ProjectSettings(compatibility=rt.settings.compatibility)
    async with rt.db.transaction(None) as conn:
        organization = await reached_organization(conn, caller, org_id)
        require_owner(caller, "Unauthorized to create projects in this organization.")
        made = await orgs.insert_project(conn, organization.id, name=named, description=text, settings=empty)
        await members.add_to_project(conn, made.id, _first_member(caller))
        await audit.note(conn, "project.create", project=made)
        return made


async def change_project(
    rt: Runtime, caller: Caller | None, org_id: str, project_id: str, changes: Mapping[str, Any]
) -> Project:
    """Change a project: what `changes` names, by the wire's names. Every process follows within seconds.

    Raises: NotFound, InvalidRequest; NotAllowed when a plain key changes a limit.
    """
    if set(changes) & set(project_settings.LIMITS):
        require_owner(caller, "Only an owner's key may change the limits of a project.")
    async with rt.db.transaction(None) as conn:
        found = await reached_project(conn, caller, org_id, project_id)
        found = await orgs.lock_project(conn, found.id)  # two changes at once both count
        becomes = project_settings.changed(rt.settings, found, changes)
        saved = await orgs.save_project(
            conn, found.id, name=becomes.name, description=becomes.description, settings=becomes.settings
        )
        of_limits = set(changes) & set(project_settings.LIMITS)
        await audit.note(conn, "project.limits" if of_limits else "project.update", project=found)
    access.forget()
    return saved


async def delete_project(rt: Runtime, caller: Caller | None, org_id: str, project_id: str) -> erase.Receipt:
    """Delete a project and everything in it. Its keys stop working, also the caller's own. Return the receipt.

    Accepted events end with it. What is just being sent to an endpoint is waited for; afterwards nothing is sent. Safe to
    break off and to repeat: until everything goes at once, nothing does.
    Raises: NotFound, NotAllowed; Conflict for the last project of the installation's own organization.
    """
    async with rt.db.transaction(None) as conn:
        doomed = await _doomed_project(conn, caller, org_id, project_id)
    await erase.stop_sending(rt, [doomed.id])
    async with rt.db.transaction(None) as conn:
        await orgs.lock_directory(conn)  # of two that delete the last two, one must see the other
        doomed = await _doomed_project(conn, caller, org_id, project_id)
        receipt = await erase.projects(conn, [doomed.id])
        await audit.note(conn, "project.delete", project=doomed)
    access.forget()
    return await erase.confirmed(rt, receipt, [doomed.id])


async def _doomed_project(conn: Conn, caller: Caller | None, org_id: str, project_id: str) -> Project:
    found = await reached_project(conn, caller, org_id, project_id)
    require_owner(caller, "Unauthorized to modify this project.")
    siblings = await orgs.list_projects(conn, found.organization_id)
    if len(siblings) == 1 and found.organization_id == await orgs.oldest_organization(conn):
        raise errors.Conflict("The last project of the first organization cannot be deleted; make another first.")
    return found


def _first_member(caller: Caller | None) -> Member:
    return Member(access.ADMIN_EMAIL if caller is None else caller.email, "OWNER")
