"""`memoryd org`: organizations."""

from __future__ import annotations

from typing import Annotated

import typer

cli = typer.Typer(
    help="Organizations: create, list, show, set, delete. Each holds projects, and members that may see them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Org = Annotated[
    str | None,
    typer.Argument(metavar="[ORG]", help="Id or name; the first organization if absent.", show_default=False),
]


@cli.command("create")
def create(name: Annotated[str, typer.Argument(help="What people call it.")]) -> None:
    """Make an organization and print its id."""
    from app.cli import chosen
    from app.domain import tenancy

    print(chosen.run(lambda rt: tenancy.create_organization(rt, None, name)).public_id)


@cli.command("list")
def list_all() -> None:
    """List all organizations."""
    from app.cli import chosen, tables
    from app.domain import tenancy

    views = chosen.run(lambda rt: tenancy.organizations(rt, None))
    tables.show(
        ("ID", "NAME", "MEMBERS", "DEFAULT", "MADE"),
        (
            (
                one.organization.public_id,
                one.organization.name,
                len(one.members),
                one.is_default,
                one.organization.created_at,
            )
            for one in views
        ),
    )


@cli.command("show")
def show(which: Org = None) -> None:
    """Show one organization with its projects and members."""
    from app.cli import chosen, tables
    from app.domain import tenancy
    from app.runtime import Runtime

    async def read(rt: Runtime) -> tuple[tenancy.OrganizationView, list[tenancy.ProjectView]]:
        org_id = (await chosen.organization(rt, which)).public_id
        return await tenancy.organization(rt, None, org_id), await tenancy.projects(rt, None, org_id)

    view, projects = chosen.run(read)
    tables.facts([
        ("id", view.organization.public_id),
        ("name", view.organization.name),
        ("made", view.organization.created_at),
        ("projects", [f"{one.project.name} ({one.project.public_id})" for one in projects]),
        ("members", [f"{member.email} ({member.role})" for member in view.members]),
    ])  # fmt: skip


@cli.command("set")
def change(
    setting: Annotated[str, typer.Argument(metavar="name", help="What to set; an organization has only a name.")],
    value: Annotated[str, typer.Argument(help="The new value.")],
    which: Annotated[
        str | None, typer.Option("--org", help="Id or name; the first organization if absent.", show_default=False)
    ] = None,
) -> None:
    """Change an organization: `memoryd org set name Acme`."""
    from app import errors
    from app.cli import chosen
    from app.domain import tenancy
    from app.model import Organization
    from app.runtime import Runtime

    if setting != "name":
        raise errors.InvalidRequest(f"an organization has no setting {setting!r}; there is: name")

    async def rename(rt: Runtime) -> Organization:
        return await tenancy.rename_organization(rt, None, (await chosen.organization(rt, which)).public_id, value)

    renamed = chosen.run(rename)
    print(f"{renamed.public_id} is called {renamed.name} now.")


@cli.command("delete")
def delete(
    which: Annotated[str, typer.Argument(metavar="ORG", help="Id or name.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete an organization with all its projects, memories and keys. Not the first one."""
    from app.cli import chosen
    from app.domain import tenancy
    from app.runtime import Runtime

    if not yes:
        typer.confirm(f"Delete {which} with everything in it?", abort=True)

    async def remove(rt: Runtime) -> str:
        found = await chosen.organization(rt, which)
        await tenancy.delete_organization(rt, None, found.public_id)
        return found.name

    print(f"Deleted {chosen.run(remove)}.")
