"""`memoryd erase`, against a database of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from app import config
from app.cli import commands
from app.domain import access, add
from app.model import Caller, Message, Owners
from app.runtime import Runtime
from tests import fakes
from tests.cli.conftest import Shell


@pytest.fixture
async def told(shell: Shell, fresh_db: Any) -> Runtime:
    """Store memories of two users in the default project."""
    await shell.run("keys", "create")
    rt = Runtime(config.load(), fresh_db.db, fakes.RecordingQueue(), None, fakes.FakeEmbedder())
    project = await access.default_project(rt)
    for name in ("alice", "alice", "bob"):
        said = (Message("user", f"{name} was here with {len(rt.queue.rung)} others"),)
        caller = Caller(project, project.public_id, "test@example.com")  # type: ignore[arg-type]
        await add.accept(rt, caller, add.Request(messages=said, owners=Owners(user_id=name), infer=False))
    return rt


async def left(rt: Runtime) -> list[str]:
    async with rt.db.acquire(None) as conn:
        return [row["name"] for row in await conn.fetch("SELECT name FROM owners ORDER BY name")]


async def test_counting_changes_nothing(shell: Shell, told: Runtime) -> None:
    counts = json.loads(await shell.run("erase", "--user", "alice", "--dry-run", "--json"))["would_erase"]
    assert (counts["memories"], counts["owners"], counts["scopes"]) == (2, 1, 1)
    assert "memories" in await shell.run("erase", "--user", "alice", "--dry-run")
    assert await left(told) == ["alice", "bob"]


async def test_what_was_counted_is_what_goes(shell: Shell, told: Runtime) -> None:
    counts = json.loads(await shell.run("erase", "--user", "alice", "--dry-run", "--json"))["would_erase"]
    receipt = json.loads(await shell.run("erase", "--user", "alice", "--yes", "--json"))
    assert receipt["erased"] == counts
    assert (receipt["remaining"], receipt["verified"]) == ({}, True)
    assert await left(told) == ["bob"]
    assert "no user 'alice'; nothing was erased" in await shell.run("erase", "--user", "alice", "--yes", code=1)


async def test_table_shows_what_went_and_what_is_not_covered(shell: Shell, told: Runtime) -> None:
    shown = await shell.run("erase", "--user", "alice", "--yes", "--vacuum")
    assert "memories" in shown
    assert "verified" in shown
    assert "vacuumed" in shown
    assert "backups" in shown


async def test_no_is_an_answer(shell: Shell, told: Runtime) -> None:
    done = await asyncio.to_thread(
        CliRunner().invoke,
        commands.cli,
        ["erase", "--user", "alice"],
        env={"DATABASE_URL": shell._env["DATABASE_URL"]},
        input="n\n",
    )
    assert done.exit_code == 1
    assert "Erase the user 'alice'" in done.output
    assert await left(told) == ["alice", "bob"]


@pytest.mark.parametrize("arguments", [(), ("--user", "a", "--run", "b"), ("--user", " ")])
async def test_exactly_one_owner_is_named(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert "name one owner" in await shell.run("erase", "--yes", *arguments, code=1)
