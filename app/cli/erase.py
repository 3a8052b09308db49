"""`memoryd erase`: everything of one user, agent, application or run, with a receipt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer

from app import errors
from app.cli import chosen, tables
from app.domain import erase
from app.model import OwnerKind, Project
from app.runtime import Runtime
from app.store import vacuum


@dataclass(frozen=True, slots=True)
class Order:
    """What the operator asks for."""

    kind: OwnerKind
    name: str
    project: str | None  # id or name; None: the default one
    yes: bool
    dry_run: bool
    vacuum: bool
    as_json: bool


def owner_of(named: Mapping[OwnerKind, str | None]) -> tuple[OwnerKind, str]:
    """Return the one owner that is named. Raises: InvalidRequest."""
    given = [(kind, name.strip()) for kind, name in named.items() if name is not None]
    if len(given) != 1 or not given[0][1]:
        raise errors.InvalidRequest("name one owner: --user, --agent, --app or --run, with its id")
    return given[0]


def run(order: Order) -> None:
    """Count, ask, erase, and print the receipt. Raises: NotFound; typer.Abort when the answer is no."""
    counts, project = chosen.run(lambda rt: _counted(rt, order))
    if order.dry_run:
        _show_counts(order, counts, heading="WOULD GO")
        return
    if not order.yes:
        _show_counts(order, counts, heading="WILL GO", to_people=True)
        typer.confirm(
            f"Erase the {order.kind} {order.name!r} of {project.name}? Nothing brings it back", abort=True, err=True
        )
    receipt = chosen.run(lambda rt: _erased(rt, order, project))
    if order.as_json:
        print(json.dumps(receipt))
    else:
        _show(receipt)
    if not receipt["verified"]:
        raise typer.Exit(1)


async def _counted(rt: Runtime, order: Order) -> tuple[dict[str, int], Project]:
    project = await chosen.project(rt, order.project)
    try:
        return await erase.counted(rt, project, order.kind, order.name), project
    except errors.NotFound as error:
        raise errors.NotFound(f"{project.name} has no {order.kind} {order.name!r}; nothing was erased") from error


async def _erased(rt: Runtime, order: Order, project: Project) -> dict[str, Any]:
    done = await erase.of_project(rt, project, order.kind, order.name)
    receipt = dict(done.receipt)
    if order.vacuum:
        receipt["vacuumed"] = await vacuum.tables(rt.db, receipt["erased"])
    return receipt


def _show_counts(order: Order, counts: Mapping[str, int], *, heading: str, to_people: bool = False) -> None:
    if order.as_json:
        if not to_people:
            print(json.dumps({"would_erase": counts}))
        return
    tables.show(("TABLE", heading), counts.items())


def _show(receipt: Mapping[str, Any]) -> None:
    remaining = receipt["remaining"]
    names = dict.fromkeys([*receipt["erased"], *remaining])
    tables.show(
        ("TABLE", "ERASED", "REMAINING"),
        ((name, receipt["erased"].get(name, 0), remaining.get(name, 0)) for name in names),
    )
    tables.facts(
        (
            ("receipt", receipt["id"]),
            ("erased at", receipt["erased_at"]),
            ("verified", receipt["verified"]),
            *([("vacuumed", receipt["vacuumed"])] if "vacuumed" in receipt else []),
        )
    )
    print("Not covered:")
    for text in receipt["not_covered"]:
        print(f"- {text}")
