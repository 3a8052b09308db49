"""`memoryd audit`: who did what that administers or destroys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.model import AuditLine
    from app.runtime import Runtime

cli = typer.Typer(help="The audit log: list.", no_args_is_help=True, rich_markup_mode=None)


@cli.callback()
def _root() -> None:
    """Configure nothing: with one command alone, its name would go."""


@cli.command("list")
def list_all(
    since: Annotated[
        str | None,
        typer.Option(help="From then on: 12h, 30d (so long ago), a date or a time.", show_default=False),
    ] = None,
    action: Annotated[str | None, typer.Option(help="Only this one, such as key.create.", show_default=False)] = None,
    actor: Annotated[
        str | None, typer.Option(help="Only this key, by its id; or cli, this command.", show_default=False)
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Id or name; everything if absent.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="A line each as JSON, for programs.")] = False,
) -> None:
    """List who did what, when, and from where, newest first. Never what was in it."""
    import orjson

    from app import errors
    from app.cli import chosen, tables
    from app.domain import audit as words
    from app.store import audit

    if action is not None and action not in words.ACTIONS:
        raise errors.InvalidRequest(f"{action!r} is no action; there are {', '.join(sorted(words.ACTIONS))}")
    instant = None if since is None else _instant(since)

    async def read(rt: Runtime) -> tuple[int, list[AuditLine]]:
        within = None if project is None else (await chosen.project(rt, project)).id
        async with rt.db.acquire(None) as conn:
            return await audit.list_page(conn, within, action=action, actor=actor, since=instant, limit=limit)

    total, found = chosen.run(read)
    if as_json:
        for line in found:
            print(orjson.dumps(words.shown(line), option=orjson.OPT_UTC_Z).decode())
    else:
        tables.show(
            ("WHEN", "ACTION", "OUTCOME", "ACTOR", "ORGANIZATION", "PROJECT", "OBJECTS", "FROM", "REQUEST"),
            (
                (one.at, one.action, one.outcome, one.actor, one.organization, one.project, one.objects, one.address,
                 one.request_id)
                for one in found
            ),
        )  # fmt: skip
    if total > len(found):
        typer.echo(f"{len(found)} of {total}; --limit shows more.", err=True)


def _instant(text: str) -> datetime:
    """Read a time, or how long ago it was. Raises: InvalidRequest."""
    from app.cli import keys

    found = keys.moment(text)
    now = datetime.now(UTC)
    return now - (found - now) if text.strip()[-1:].isalpha() and text.strip()[:-1].isdecimal() else found
