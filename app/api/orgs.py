"""Organizations and their members."""

from __future__ import annotations

from app.api import answers, directory, docs, receipts
from app.api.auth import Caller, RuntimeDep
from app.api.directory import OrgId
from app.api.wire import Reply, Shape, router
from app.domain import membership, tenancy

routes = router(Shape.ERRORS, tag="organizations")


@routes.get(
    "/api/v1/orgs/organizations/",
    response_model=list[directory.OrganizationOut],
    responses=docs.statuses(shape=Shape.ERRORS),
)
async def list_organizations(caller: Caller, rt: RuntimeDep) -> Reply:
    """List the key's organization, and those that were made with an owner's key of it."""
    return Reply([directory.organization(view, caller) for view in await tenancy.organizations(rt, caller)])


@routes.post(
    "/api/v1/orgs/organizations/",
    status_code=201,
    response_model=directory.OrganizationCreated,
    responses=docs.statuses(403, shape=Shape.ERRORS, body=True),
)
async def create_organization(body: directory.NewOrganization, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make an organization. Needs an owner's key."""
    made = await tenancy.create_organization(rt, caller, body.name)
    return Reply({"message": "Organization created successfully.", "org_id": made.public_id}, status_code=201)


@routes.get(
    "/api/v1/orgs/organizations/{org_id}/",
    response_model=directory.OrganizationOut,
    responses=docs.statuses(404, shape=Shape.ERRORS),
)
async def get_organization(org_id: OrgId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Return one organization."""
    return Reply(directory.organization(await tenancy.organization(rt, caller, org_id), caller))


@routes.delete(
    "/api/v1/orgs/organizations/{org_id}/",
    response_model=receipts.ProjectErased,
    responses=docs.statuses(403, 404, 409, shape=Shape.ERRORS),
)
async def delete_organization(org_id: OrgId, caller: Caller, rt: RuntimeDep) -> Reply:
    """Delete an organization with all its projects and memories. Not the first one. Needs an owner's key."""
    receipt = await tenancy.delete_organization(rt, caller, org_id)
    return Reply({"message": "Organization deleted successfully!", "receipt": receipt.shown()})


@routes.get(
    "/api/v1/orgs/organizations/{org_id}/members/",
    response_model=directory.OrganizationMembers,
    responses=docs.statuses(404, shape=Shape.ERRORS),
)
async def list_organization_members(org_id: OrgId, caller: Caller, rt: RuntimeDep) -> Reply:
    """List the members of an organization."""
    found = await membership.of_organization(rt, caller, org_id)
    return Reply({"members": [{"user_id": one.email, **directory.member(one)} for one in found]})


@routes.post(
    "/api/v1/orgs/organizations/{org_id}/members/",
    status_code=201,
    response_model=answers.Done,
    responses=docs.statuses(403, 404, shape=Shape.ERRORS, body=True),
)
async def add_organization_member(org_id: OrgId, body: directory.NewMember, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make an address a member, at once: it needs no account. Needs an owner's key."""
    await membership.add_to_organization(rt, caller, org_id, body.email, body.role)
    return Reply({"message": "User added to the organization."}, status_code=201)


@routes.put(
    "/api/v1/orgs/organizations/{org_id}/members/",
    response_model=answers.Done,
    responses=docs.statuses(403, 404, shape=Shape.ERRORS, body=True),
)
async def update_organization_member(org_id: OrgId, body: directory.NewMember, caller: Caller, rt: RuntimeDep) -> Reply:
    """Give a member another role. Needs an owner's key."""
    await membership.set_in_organization(rt, caller, org_id, body.email, body.role)
    return Reply({"message": "User role updated successfully"})


@routes.delete(
    "/api/v1/orgs/organizations/{org_id}/members/",
    response_model=answers.Done,
    responses=docs.statuses(403, 404, shape=Shape.ERRORS, body=True),
)
async def remove_organization_member(
    org_id: OrgId, body: directory.FormerMember, caller: Caller, rt: RuntimeDep
) -> Reply:
    """Remove a member. Needs an owner's key."""
    await membership.remove_from_organization(rt, caller, org_id, body.email)
    return Reply({"message": "User removed from organization."})
