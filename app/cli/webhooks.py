"""`memoryd webhooks`: endpoints of a project, what was delivered to them, and sending again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from app.model import Endpoint
    from app.runtime import Runtime
    from app.store.deliveries import Delivery

cli = typer.Typer(
    help="Webhooks of a project: list, deliveries, replay, rotate. They are made over HTTP.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The id that `memoryd webhooks list` shows.")]
InProject = Annotated[
    str | None, typer.Option("--project", help="Id or name; the default project if absent.", show_default=False)
]


@cli.command("list")
def list_all(project: InProject = None) -> None:
    """List the endpoints, oldest first."""
    from app.cli import chosen, tables
    from app.store import webhooks

    async def read(rt: Runtime) -> list[Endpoint]:
        found = await chosen.project(rt, project)
        async with rt.db.acquire(found.id) as conn:
            return await webhooks.list_for(conn, found.id)

    rows = (
        (one.id, one.name, one.url, one.event_types, one.is_active, one.disabled_reason) for one in chosen.run(read)
    )
    tables.show(("ID", "NAME", "URL", "EVENTS", "ACTIVE", "DISABLED BECAUSE"), rows)


@cli.command("deliveries")
def deliveries(
    webhook: WebhookId,
    status: Annotated[
        Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED"] | None,
        typer.Option(help="Only those in this state.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 50,
    project: InProject = None,
) -> None:
    """Show what was or will be delivered to an endpoint, with the latest attempt of each."""
    from app.cli import chosen, tables
    from app.model import Status
    from app.store import deliveries as log
    from app.store import webhooks

    async def read(rt: Runtime) -> list[Delivery]:
        found = await chosen.project(rt, project)
        async with rt.db.acquire(found.id) as conn:
            await webhooks.get(conn, found.id, webhook)
            wanted = Status(status) if status else None
            return (await log.list_page(conn, found.id, webhook, status=wanted, limit=limit, offset=0))[1]

    columns = ("MESSAGE", "EVENT", "MADE", "STATUS", "ATTEMPTS", "NEXT", "ANSWER", "MS", "WHY")
    tables.show(columns, _rows(chosen.run(read)))


def _rows(found: Iterable[Delivery]) -> Iterable[tuple[object, ...]]:
    for one in found:
        last = one.log[0] if one.log else None
        answer = (last.status_code, last.latency_ms, last.error or last.response) if last else (None, None, None)
        coming = one.next_at if one.status == "PENDING" else None
        yield (one.id, one.event_type, one.created_at, one.status, one.attempts, coming, *answer)


@cli.command("replay")
def replay(
    webhook: WebhookId,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The id of a delivery.", show_default=False)
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Send every one again that failed.")] = False,
    project: InProject = None,
) -> None:
    """Send a delivery again, or with --failed all that failed. They keep their ids."""
    from uuid import UUID

    from app import errors
    from app.cli import chosen
    from app.domain import endpoints

    if failed == (message is not None):
        raise errors.InvalidRequest("give the id of a delivery, or --failed")
    try:
        delivery_id = None if message is None else UUID(message)
    except ValueError as error:
        raise errors.InvalidRequest(
            "this is not the id of a delivery; `memoryd webhooks deliveries` shows them"
        ) from error

    async def again(rt: Runtime) -> int:
        return await endpoints.replay(rt, await chosen.project(rt, project), webhook, delivery_id)

    count = chosen.run(again)
    print(f"{count} {'delivery is' if count == 1 else 'deliveries are'} due again.")


@cli.command("rotate")
def rotate(webhook: WebhookId, project: InProject = None) -> None:
    """Make a new secret and print it, this once. The former one signs too for MEMORYD_WEBHOOK_OVERLAP_S."""
    from datetime import datetime

    from app.cli import chosen
    from app.domain import endpoints

    async def change(rt: Runtime) -> tuple[str, datetime]:
        return await endpoints.rotate(rt, await chosen.project(rt, project), webhook)

    print(chosen.run(change)[0])
