"""Projects, their settings and their members."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from app.api import answers, directory, docs, receipts
from app.api.auth import Caller, RuntimeDep
from app.api.directory import OrgId, ProjectId
from app.api.wire import Reply, Shape, router
from app.domain import membership, tenancy

routes = router(Shape.MESSAGE, tag="projects")


@routes.get(
    "/api/v1/orgs/organizations/{org_id}/projects/",
    response_model=list[directory.ProjectOut],
    responses=docs.statuses(404, shape=Shape.MESSAGE),
)
async def list_projects(org_id: OrgId, caller: Caller, rt: RuntimeDep) -> Reply:
    """List the projects of an organization: all with an owner's key, else the key's own."""
    return Reply([directory.project(view) for view in await tenancy.projects(rt, caller, org_id)])


@routes.post(
    "/api/v1/orgs/organizations/{org_id}/projects/",
    response_model=directory.ProjectCreated,
    responses=docs.statuses(403, 404, shape=Shape.MESSAGE, body=True),
)
async def create_project(org_id: OrgId, body: directory.NewProject, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make a project. Needs an owner's key; `memoryd keys create --project` makes keys of the new one."""
    made = await tenancy.create_project(rt, caller, org_id, name=body.name, description=body.description)
    return Reply({"message": "Project created successfully.", "project_id": made.public_id})


@routes.get(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/",
    response_model=directory.ProjectOut,
    responses=docs.statuses(400, 404, shape=Shape.MESSAGE),
)
async def get_project(
    org_id: OrgId,
    project_id: ProjectId,
    caller: Caller,
    rt: RuntimeDep,
    fields: Annotated[
        list[str] | None, Query(description="Only these fields; repeat it. Unknown names are passed over.")
    ] = None,
) -> Reply:
    """Return one project with its settings."""
    shown = directory.project(await tenancy.project(rt, caller, org_id, project_id))
    return Reply(directory.narrowed(shown, fields or []))


@routes.patch(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/",
    response_model=answers.Done,
    responses=docs.statuses(403, 404, shape=Shape.MESSAGE, body=True),
)
async def update_project(
    org_id: OrgId, project_id: ProjectId, body: directory.ProjectPatch, caller: Caller, rt: RuntimeDep
) -> Reply:
    """Change a project's settings: what is sent; the rest stays. Every process follows within seconds."""
    await tenancy.change_project(rt, caller, org_id, project_id, body.changes())
    return Reply({"message": "Project updated successfully"})


@routes.delete(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/",
    response_model=receipts.ProjectErased,
    responses=docs.statuses(403, 404, 409, shape=Shape.MESSAGE),
)
async def delete_project(org_id: OrgId, project_id: ProjectId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Delete a project with all its memories and keys, also the key's own. Needs an owner's key.

    The last project of the first organization stays.
    """
    receipt = await tenancy.delete_project(rt, caller, org_id, project_id)
    return Reply({"message": "Project and related data deleted successfully.", "receipt": receipt.shown()})


@routes.get(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/members/",
    response_model=directory.Members,
    responses=docs.statuses(404, shape=Shape.MESSAGE),
)
async def list_project_members(org_id: OrgId, project_id: ProjectId, caller: Caller, rt: RuntimeDep) -> Reply:
    """List the members of a project."""
    found = await membership.of_project(rt, caller, org_id, project_id)
    return Reply({"members": [directory.member(one) for one in found]})


@routes.post(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/members/",
    response_model=answers.Done,
    responses=docs.statuses(403, 404, shape=Shape.MESSAGE, body=True),
)
async def add_project_member(
    org_id: OrgId, project_id: ProjectId, body: directory.NewMember, caller: Caller, rt: RuntimeDep
) -> Reply:
    """Make an address a member, at once: it needs no account."""
    await membership.add_to_project(rt, caller, org_id, project_id, body.email, body.role)
    return Reply({"message": "User added to the project successfully."})


@routes.put(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/members/",
    response_model=answers.Done,
    responses=docs.statuses(403, 404, shape=Shape.MESSAGE, body=True),
)
async def update_project_member(
    org_id: OrgId, project_id: ProjectId, body: directory.NewMember, caller: Caller, rt: RuntimeDep
) -> Reply:
    """Give a member another role."""
    await membership.set_in_project(rt, caller, org_id, project_id, body.email, body.role)
    return Reply({"message": "User role updated successfully."})


@routes.delete(
    "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/members/",
    response_model=answers.Done,
    responses=docs.statuses(400, 403, 404, shape=Shape.MESSAGE),
)
async def remove_project_member(
    org_id: OrgId,
    project_id: ProjectId,
    caller: Caller,
    rt: RuntimeDep,
    email: Annotated[str | None, Query(description="The member's address.")] = None,
) -> Reply:
    """Remove a member."""
    await membership.remove_from_project(rt, caller, org_id, project_id, email)
    return Reply({"message": "Member removed from the project"})
