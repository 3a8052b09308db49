"""`memoryd org`, `project`, `member` and `keys`, against a database of their own."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from app import config
from app.api import create_app
from app.cli import commands
from app.runtime import Runtime
from tests import fakes
from tests.cli.conftest import Shell


async def api(fresh_db: Any, secret: str) -> httpx.AsyncClient:
    rt = Runtime(config.load(), fresh_db.db, fakes.RecordingQueue(), None, fakes.FakeEmbedder())
    transport = httpx.ASGITransport(app=create_app(rt))
    headers = {"Authorization": f"Token {secret}"}
    return httpx.AsyncClient(transport=transport, base_url="http://memoryd.test", headers=headers)


async def test_an_operator_makes_an_organization_a_project_and_its_keys(shell: Shell, fresh_db: Any) -> None:
    assert "memoryd keys create" in await shell.run("project", "show", code=1)
    first = await shell.run("keys", "create")
    org = await shell.run("org", "create", "Acme")
    project = await shell.run("project", "create", "travel", "--org", "Acme", "--description", "trips")
    plain = await shell.run("keys", "create", "--project", "travel", "--role", "member", "--name", "bot")
    listed = await shell.run("keys", "list", "--project", project)
    assert "bot  member" in listed
    assert plain not in listed
    assert org in await shell.run("org", "list")
    assert f"travel ({project})" in await shell.run("org", "show", org)
    lines = (await shell.run("project", "list")).splitlines()
    assert [line.split()[1] for line in lines] == ["NAME", "default-project", "travel"]
    async with await api(fresh_db, plain) as client:
        pong = (await client.get("/v1/ping/")).json()
        assert (pong["org_id"], pong["project_id"]) == (org, project)
        made = await client.post(f"/api/v1/orgs/organizations/{org}/projects/", json={"name": "x"})
        assert made.status_code == 403
        assert (await client.post("/v1/ping/", headers={"Authorization": f"Token {first}"})).status_code == 405
    await shell.run("org", "set", "name", "Acme Ltd", "--org", org)
    await shell.run("org", "delete", "Acme Ltd", "--yes")
    assert "travel" not in await shell.run("project", "list")
    assert "cannot be deleted" in await shell.run("project", "delete", "default-project", "--yes", code=1)


async def test_an_operator_changes_settings_by_name(shell: Shell, fresh_db: Any) -> None:
    secret = await shell.run("keys", "create")
    for name, value in (
        ("compatibility", "hosted"),
        ("raw_roles", '["assistant"]'),
        ("custom_instructions", "Keep plans."),
        ("default_top_k", "30"),
    ):
        assert name in await shell.run("project", "set", name, value)
    shown = await shell.run("project", "show")
    assert [line.split(maxsplit=1)[1] for line in shown.splitlines() if line.startswith(("compat", "custom_i"))] == [
        "Keep plans.",
        "hosted",
    ]
    async with await api(fresh_db, secret) as client:
        pong = (await client.get("/v1/ping/")).json()
        url = f"/api/v1/orgs/organizations/{pong['org_id']}/projects/{pong['project_id']}/"
        seen = (await client.get(url)).json()
    assert (seen["compatibility"], seen["raw_roles"], seen["default_top_k"]) == ("hosted", ["assistant"], 30)
    assert "architecture or hosted" in await shell.run("project", "set", "compatibility", "other", code=1)
    assert "no setting colour" in await shell.run("project", "set", "colour", "red", code=1)
    assert "project list" in await shell.run("project", "set", "decay", "true", "--project", "nowhere", code=1)


async def test_an_operator_keeps_members(shell: Shell) -> None:
    await shell.run("keys", "create")
    await shell.run("member", "create", "bob@example.com")
    await shell.run("member", "set", "Bob@example.com", "OWNER")
    assert (await shell.run("member", "show", "bob@example.com")).splitlines()[1].split() == [
        "bob@example.com",
        "OWNER",
    ]
    await shell.run("member", "create", "eve@example.com", "--org", "default-org", "--role", "OWNER")
    listed = await shell.run("member", "list", "--org", "default-org")
    assert [line.split()[0] for line in listed.splitlines()] == ["EMAIL", "admin@localhost", "eve@example.com"]
    await shell.run("member", "delete", "bob@example.com")
    assert "no member" in await shell.run("member", "show", "bob@example.com", code=1)
    assert "not both" in await shell.run("member", "list", "--org", "x", "--project", "y", code=1)


@pytest.mark.parametrize("group", ["org", "project", "member"])
def test_every_group_explains_itself(group: str) -> None:
    shown = CliRunner().invoke(commands.cli, [group, "--help"]).output
    for command in ("create", "list", "show", "set", "delete"):
        assert f"  {command} " in shown


def test_help_shows_how_a_setting_is_written() -> None:
    shown = CliRunner().invoke(commands.cli, ["project", "set", "--help"]).output
    assert "memoryd project set compatibility hosted" in shown
    assert '["user", "assistant"]' in shown


async def test_an_operator_looks_at_a_key_and_changes_what_it_may_do(shell: Shell, fresh_db: Any) -> None:
    await shell.run("keys", "create", "--name", "keeper")
    secret = await shell.run("keys", "create", "--name", "bot")
    key_id = next(line.split()[0] for line in (await shell.run("keys", "list")).splitlines() if "bot" in line)
    await shell.run("keys", "set", key_id, "name", "reader")
    await shell.run("keys", "set", key_id, "scopes", "memories:read")
    await shell.run("keys", "set", key_id, "expires", "30d")
    shown = await shell.run("keys", "show", key_id)
    assert "reader" in shown
    assert "memories:read" in shown
    assert "expires" in shown
    assert secret not in shown
    async with await api(fresh_db, secret) as client:
        body = {"messages": "I like tea.", "user_id": "u1", "infer": False}
        assert (await client.post("/v3/memories/add/", json=body)).status_code == 403
        assert (await client.post("/v3/memories/", json={"filters": {"user_id": "u1"}})).status_code == 200
    await shell.run("keys", "set", key_id, "pins", "user_id=alice,user_id=team-*")
    assert "team-*" in await shell.run("keys", "show", key_id)
    await shell.run("keys", "set", key_id, "pins", "none")
    await shell.run("keys", "set", key_id, "expires", "never")
    shown = await shell.run("keys", "show", key_id)
    assert "team-*" not in shown
    assert "expires" not in shown


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [("scopes", "memories:fly", "memories:fly"), ("name", "  ", "name"), ("expires", "1999-01-01", "future"),
     ("role", "king", "king"), ("colour", "red", "colour"), ("pins", "alice", "alice")],
)  # fmt: skip
async def test_a_change_of_a_key_that_makes_no_sense_is_refused(
    shell: Shell, field: str, value: str, named: str
) -> None:
    await shell.run("keys", "create", "--name", "bot")
    before = await shell.run("keys", "list")
    key_id = before.split()[0]
    assert named in await shell.run("keys", "set", key_id, field, value, code=1)
    assert await shell.run("keys", "list") == before
