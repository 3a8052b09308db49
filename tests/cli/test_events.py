"""`memoryd events`: what failed is shown with its reason, and runs again when an operator says so."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from app.domain import access
from app.model import Event, Project, Status
from app.runtime import Runtime
from app.store import claims, events
from tests.cli.conftest import Shell


async def project_of(shell: Shell, fresh_db: Any) -> Project:
    """Make the default project; return it."""
    await shell.run("keys", "create")
    return await access.default_project(Runtime(None, fresh_db.db, None, None, None))  # type: ignore[arg-type]


async def accepted(fresh_db: Any, project: Project, *, kind: str = "ADD") -> Event:
    async with fresh_db.db.transaction(project.id) as conn:
        return await events.insert(conn, project.id, uuid4(), kind, {"messages": ["I like tea"]})


async def failed(fresh_db: Any, project: Project, *, kind: str = "ADD", why: str = "no answer") -> UUID:
    """Make an event that was given up; return its id."""
    event = await accepted(fresh_db, project, kind=kind)
    async with fresh_db.db.transaction(None) as conn:
        claimed = await claims.claim(conn, lease_s=60)
        assert claimed is not None
        assert claimed.id == event.id
        assert await claims.fail(conn, claimed, "model_unavailable", why)
    return event.id


async def status(fresh_db: Any, project: Project, event_id: UUID) -> tuple[Status, int]:
    async with fresh_db.db.acquire(project.id) as conn:
        found = await events.get(conn, project.id, event_id)
    return found.status, found.attempts


async def test_failed_events_are_listed_with_their_reason(shell: Shell, fresh_db: Any) -> None:
    project = await project_of(shell, fresh_db)
    bad = await failed(fresh_db, project, why="x" * 200)
    waiting = (await accepted(fresh_db, project)).id
    both = await shell.run("events", "list")
    assert str(bad) in both
    assert str(waiting) in both
    only = await shell.run("events", "list", "--failed")
    assert "model_unavailable" in only
    assert "x" * 80 not in only
    assert str(waiting) not in only
    assert "1 of 2" in await shell.run("events", "list", "--limit", "1")


async def test_an_event_is_shown_whole(shell: Shell, fresh_db: Any) -> None:
    project = await project_of(shell, fresh_db)
    shown = await shell.run("events", "show", str(await failed(fresh_db, project, why="x" * 200)))
    for part in ("FAILED", "model_unavailable", "x" * 200, "I like tea"):
        assert part in shown
    assert "not found" in (await shell.run("events", "show", str(uuid4()), code=1))
    assert "memoryd events list" in await shell.run("events", "show", "17", code=1)


async def test_a_failed_event_runs_again_with_all_its_attempts(shell: Shell, fresh_db: Any) -> None:
    project = await project_of(shell, fresh_db)
    one, other = await failed(fresh_db, project), await failed(fresh_db, project)
    assert await shell.run("events", "retry", str(one)) == "1 event is due again."
    assert await status(fresh_db, project, one) == (Status.PENDING, 0)
    assert await status(fresh_db, project, other) == (Status.FAILED, 1)


async def test_when_one_of_several_cannot_be_retried_none_is(shell: Shell, fresh_db: Any) -> None:
    project = await project_of(shell, fresh_db)
    bad = await failed(fresh_db, project)
    waiting = (await accepted(fresh_db, project)).id
    assert "PENDING" in await shell.run("events", "retry", str(bad), str(waiting), code=1)
    assert await status(fresh_db, project, bad) == (Status.FAILED, 1)


async def test_all_failed_events_of_a_project_run_again_and_those_of_no_other(shell: Shell, fresh_db: Any) -> None:
    project = await project_of(shell, fresh_db)
    await shell.run("project", "create", "travel")
    rt = Runtime(None, fresh_db.db, None, None, None)  # type: ignore[arg-type]
    from app.domain import tenancy

    other = next(one for one in await tenancy.all_projects(rt) if one.name == "travel")
    mine = [await failed(fresh_db, project) for _ in range(3)]
    foreign = await failed(fresh_db, other)
    assert "ids of failed events, or --all-failed" in await shell.run("events", "retry", code=1)
    assert await shell.run("events", "retry", "--all-failed") == "3 events are due again."
    assert {await status(fresh_db, project, one) for one in mine} == {(Status.PENDING, 0)}
    assert await status(fresh_db, other, foreign) == (Status.FAILED, 1)
    assert str(foreign) in await shell.run("events", "list", "--failed", "--project", "travel")
