"""`memoryd events`: what was accepted and what came of it, and another try for what failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

if TYPE_CHECKING:
    from app.model import Event
    from app.runtime import Runtime

SHOWN_CHARS = 80  #: of an error in a list; `show` has all of it

cli = typer.Typer(
    help="Events of a project, the accepted work: list, show, retry.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The id that `memoryd events list` shows.")]
InProject = Annotated[
    str | None, typer.Option("--project", help="Id or name; the default project if absent.", show_default=False)
]


@cli.command("list")
def list_all(
    failed: Annotated[bool, typer.Option("--failed", help="Only those that were given up.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 50,
    project: InProject = None,
) -> None:
    """List events, newest first."""
    from app.cli import chosen, tables
    from app.model import Status
    from app.store import events

    async def read(rt: Runtime) -> tuple[int, list[Event]]:
        found = await chosen.project(rt, project)
        async with rt.db.acquire(found.id) as conn:
            return await events.list_page(conn, found.id, status=Status.FAILED if failed else None, limit=limit)

    total, found = chosen.run(read)
    tables.show(
        ("EVENT", "KIND", "STATUS", "ATTEMPTS", "ACCEPTED", "ENDED", "CODE", "WHY"),
        (
            (one.id, one.kind, one.status, one.attempts, one.created_at, one.completed_at, one.error_code, _short(one))
            for one in found
        ),
    )
    if total > len(found):
        typer.echo(f"{len(found)} of {total}; --limit shows more.", err=True)


def _short(event: Event) -> str | None:
    error = event.error
    return error if error is None or len(error) <= SHOWN_CHARS else error[: SHOWN_CHARS - 1] + "…"


@cli.command("show")
def show(event: EventId, project: InProject = None) -> None:
    """Show one event: its state, why it failed, what was asked for and what came of it."""
    from app.cli import chosen, tables
    from app.store import events

    event_id = _id(event)

    async def read(rt: Runtime) -> Event:
        found = await chosen.project(rt, project)
        async with rt.db.acquire(found.id) as conn:
            return await events.get(conn, found.id, event_id)

    one = chosen.run(read)
    tables.facts(
        (
            ("event", one.id),
            ("kind", one.kind),
            ("status", one.status),
            ("attempts", one.attempts),
            ("accepted", one.created_at),
            ("started", one.started_at),
            ("ended", one.completed_at),
            ("code", one.error_code),
            ("why", one.error),
            ("asked for", json.dumps(one.payload, ensure_ascii=False, default=str)),
            ("results", json.dumps(one.results, ensure_ascii=False, default=str)),
            ("metadata", None if one.metadata is None else json.dumps(one.metadata, ensure_ascii=False, default=str)),
        )
    )


@cli.command("retry")
def retry(
    event: Annotated[
        list[str] | None, typer.Argument(metavar="[EVENT]...", help="Ids of failed events.", show_default=False)
    ] = None,
    all_failed: Annotated[bool, typer.Option("--all-failed", help="Every failed event of the project.")] = False,
    project: InProject = None,
) -> None:
    """Let failed events run again, with all their attempts. What a model has found already is not asked again.

    Several ids are taken together: when one cannot be retried, none is.
    """
    from app import errors
    from app.cli import chosen
    from app.domain import audit
    from app.store import events

    if all_failed == bool(event):
        raise errors.InvalidRequest("give the ids of failed events, or --all-failed")
    ids = [_id(text) for text in dict.fromkeys(event or ())]

    async def again(rt: Runtime) -> int:
        found = await chosen.project(rt, project)
        async with rt.db.transaction(found.id) as conn:
            await audit.note(conn, "event.retry", project=found, objects=ids or ["*"])
            if all_failed:
                return await events.reopen_failed(conn, found.id)
            return len([await events.reopen(conn, found.id, event_id) for event_id in ids])

    count = chosen.run(again)
    print(f"{count} {'event is' if count == 1 else 'events are'} due again.")


def _id(text: str) -> UUID:
    from app import errors

    try:
        return UUID(text)
    except ValueError:
        raise errors.InvalidRequest(f"{text!r} is not the id of an event; `memoryd events list` shows them") from None
