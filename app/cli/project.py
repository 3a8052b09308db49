"""`memoryd project`: projects and their settings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

cli = typer.Typer(
    help="Projects: create, list, show, set, delete. Memories, keys and webhooks belong to one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Which = Annotated[
    str | None,
    typer.Argument(metavar="[PROJECT]", help="Id or name; the default project if absent.", show_default=False),
]
InOrg = Annotated[
    str | None,
    typer.Option("--org", help="Id or name of the organization; the first one if absent.", show_default=False),
]


@cli.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    org: InOrg = None,
    description: Annotated[str | None, typer.Option(help="What it is for.", show_default=False)] = None,
) -> None:
    """Make a project and print its id. `memoryd keys create --project ID` makes a key of it."""
    from app.cli import chosen
    from app.domain import tenancy
    from app.model import Project
    from app.runtime import Runtime

    async def make(rt: Runtime) -> Project:
        org_id = (await chosen.organization(rt, org)).public_id
        return await tenancy.create_project(rt, None, org_id, name=name, description=description)

    print(chosen.run(make).public_id)


@cli.command("list")
def list_all(
    org: Annotated[str | None, typer.Option("--org", help="Only of this one.", show_default=False)] = None,
) -> None:
    """List the projects of all organizations, or of one."""
    from app.cli import chosen, tables
    from app.domain import tenancy
    from app.model import Project
    from app.runtime import Runtime

    async def read(rt: Runtime) -> list[Project]:
        found = await tenancy.all_projects(rt)
        if org is None:
            return found
        wanted = (await chosen.organization(rt, org)).id
        return [one for one in found if one.organization_id == wanted]

    tables.show(
        ("ID", "NAME", "ORGANIZATION", "COMPATIBILITY", "MADE"),
        (
            (one.public_id, one.name, one.organization_public_id, one.settings.compatibility, one.created_at)
            for one in chosen.run(read)
        ),
    )


@cli.command("show")
def show(which: Which = None) -> None:
    """Show one project with all its settings, as they are in force."""
    from app.api import directory
    from app.cli import chosen, tables
    from app.domain import tenancy
    from app.runtime import Runtime

    async def read(rt: Runtime) -> dict[str, Any]:
        found = await chosen.project(rt, which)
        view = await tenancy.project(rt, None, found.organization_public_id, found.public_id)
        shown = directory.project(view)
        shown["members"] = [f"{member.email} ({member.role})" for member in view.members]
        del shown["user_role"]
        return {"project_id": shown.pop("project_id"), "org_id": found.organization_public_id, **shown}

    tables.facts(chosen.run(read).items())


@cli.command("set")
def change(
    setting: Annotated[str, typer.Argument(help="Its name, as `memoryd project show` prints it.")],
    value: Annotated[
        str, typer.Argument(help="The new value; lists and objects as JSON; `null` goes back to the default.")
    ],
    which: Annotated[
        str | None, typer.Option("--project", help="Id or name; the default project if absent.", show_default=False)
    ] = None,
) -> None:
    """Change a setting of a project. Every process follows within seconds.

    memoryd project set compatibility hosted

    memoryd project set default_top_k 30 --project support

    memoryd project set raw_roles '["user", "assistant"]'

    memoryd project set custom_instructions "Keep what helps to plan trips."
    """
    from app.cli import chosen
    from app.domain import project_settings, tenancy
    from app.model import Project
    from app.runtime import Runtime

    async def save(rt: Runtime) -> Project:
        found = await chosen.project(rt, which)
        changes = {setting: project_settings.from_text(setting, value)}
        return await tenancy.change_project(rt, None, found.organization_public_id, found.public_id, changes)

    print(f"{setting} of {chosen.run(save).name} is set.")


@cli.command("delete")
def delete(
    which: Annotated[str, typer.Argument(metavar="PROJECT", help="Id or name.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a project with all its memories and keys. Not the last one of the first organization."""
    from app.cli import chosen
    from app.domain import erase, tenancy
    from app.runtime import Runtime

    if not yes:
        typer.confirm(f"Delete {which} with all its memories and keys?", abort=True)

    async def remove(rt: Runtime) -> tuple[str, erase.Receipt]:
        found = await chosen.project(rt, which)
        return found.name, await tenancy.delete_project(rt, None, found.organization_public_id, found.public_id)

    name, receipt = chosen.run(remove)
    print(f"Deleted {name}: {sum(receipt.erased.values())} rows, {sum(receipt.remaining.values())} left.")
