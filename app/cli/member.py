"""`memoryd member`: members of projects and organizations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from app.model import Member, MemberRole
    from app.runtime import Runtime

T = TypeVar("T")

cli = typer.Typer(
    help="Members of a project, or with --org of an organization: create, list, show, set, delete. "
    "An address is enough. What a request may do, its key decides.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Email = Annotated[str, typer.Argument(help="The member's address.")]
InProject = Annotated[
    str | None, typer.Option("--project", help="Id or name; the default project if absent.", show_default=False)
]
InOrg = Annotated[
    str | None,
    typer.Option("--org", help="Id or name of an organization, to act on its members instead.", show_default=False),
]


@cli.command("create")
def create(
    email: Email,
    role: Annotated[Literal["READER", "OWNER"], typer.Option(help="What the member is.")] = "READER",
    project: InProject = None,
    org: InOrg = None,
) -> None:
    """Make an address a member."""
    _run(project, org, lambda place: place.add(email, role))
    print(f"{email} is a member now: {role}.")


@cli.command("list")
def list_all(project: InProject = None, org: InOrg = None) -> None:
    """List the members."""
    _show(_run(project, org, lambda place: place.members()))


@cli.command("show")
def show(email: Email, project: InProject = None, org: InOrg = None) -> None:
    """Show one member."""
    from app import errors

    found = [one for one in _run(project, org, lambda place: place.members()) if one.email.lower() == email.lower()]
    if not found:
        raise errors.NotFound(f"{email} is no member; `memoryd member list` shows them")
    _show(found)


@cli.command("set")
def change(
    email: Email,
    role: Annotated[Literal["READER", "OWNER"], typer.Argument(help="What the member becomes.")],
    project: InProject = None,
    org: InOrg = None,
) -> None:
    """Give a member another role: `memoryd member set bob@example.com OWNER`."""
    _run(project, org, lambda place: place.set(email, role))
    print(f"{email} is {role} now.")


@cli.command("delete")
def delete(email: Email, project: InProject = None, org: InOrg = None) -> None:
    """Remove a member."""
    _run(project, org, lambda place: place.remove(email))
    print(f"{email} is no member any more.")


def _show(found: list[Member]) -> None:
    from app.cli import tables

    tables.show(("EMAIL", "ROLE"), ((one.email, one.role) for one in found))


class _Place:
    """The project whose members are meant, or without one the organization."""

    def __init__(self, rt: Runtime, org_id: str, project_id: str | None = None) -> None:
        self._rt = rt
        self._org = org_id
        self._project = project_id

    async def members(self) -> list[Member]:
        from app.domain import membership

        if self._project is None:
            return await membership.of_organization(self._rt, None, self._org)
        return await membership.of_project(self._rt, None, self._org, self._project)

    async def add(self, email: str, role: MemberRole) -> None:
        from app.domain import membership

        if self._project is None:
            await membership.add_to_organization(self._rt, None, self._org, email, role)
        else:
            await membership.add_to_project(self._rt, None, self._org, self._project, email, role)

    async def set(self, email: str, role: MemberRole) -> None:
        from app.domain import membership

        if self._project is None:
            await membership.set_in_organization(self._rt, None, self._org, email, role)
        else:
            await membership.set_in_project(self._rt, None, self._org, self._project, email, role)

    async def remove(self, email: str) -> None:
        from app.domain import membership

        if self._project is None:
            await membership.remove_from_organization(self._rt, None, self._org, email)
        else:
            await membership.remove_from_project(self._rt, None, self._org, self._project, email)


def _run(project: str | None, org: str | None, verb: Callable[[_Place], Awaitable[T]]) -> T:
    from app import errors
    from app.cli import chosen

    if project is not None and org is not None:
        raise errors.InvalidRequest("give --project or --org, not both")

    async def act(rt: Runtime) -> T:
        if org is not None:
            return await verb(_Place(rt, (await chosen.organization(rt, org)).public_id))
        found = await chosen.project(rt, project)
        return await verb(_Place(rt, found.organization_public_id, found.public_id))

    return chosen.run(act)
