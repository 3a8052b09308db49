"""`memoryd audit`, at a shell."""

from __future__ import annotations

import json

from tests.cli.conftest import Shell


async def test_an_operator_reads_who_did_what(shell: Shell) -> None:
    await shell.run("keys", "create")
    await shell.run("project", "create", "second")
    await shell.run("project", "set", "adds_per_minute", "5", "--project", "second")
    listed = (await shell.run("audit", "list")).splitlines()
    assert listed[0].split() == [
        "WHEN",
        "ACTION",
        "OUTCOME",
        "ACTOR",
        "ORGANIZATION",
        "PROJECT",
        "OBJECTS",
        "FROM",
        "REQUEST",
    ]
    assert [line.split()[3:6] for line in listed[1:]] == [
        ["project.limits", "ok", "cli"],
        ["project.create", "ok", "cli"],
        ["key.create", "ok", "cli"],
    ]
    found = [
        json.loads(line) for line in (await shell.run("audit", "list", "--json", "--project", "second")).splitlines()
    ]
    assert [one["action"] for one in found] == ["project.limits", "project.create"]
    assert found[0]["at"].endswith("Z")
    only = await shell.run("audit", "list", "--json", "--action", "key.create", "--since", "1h", "--actor", "cli")
    assert [json.loads(line)["action"] for line in only.splitlines()] == ["key.create"]
    assert await shell.run("audit", "list", "--json", "--since", "2099-01-01") == ""
    assert "key.create" in await shell.run("audit", "list", "--action", "key.eat", code=1)
    assert "write 30d" in await shell.run("audit", "list", "--since", "soon", code=1)


async def test_a_retry_of_what_failed_leaves_a_line(shell: Shell) -> None:
    await shell.run("keys", "create")
    await shell.run("events", "retry", "--all-failed")
    last = (await shell.run("audit", "list", "--json")).splitlines()[0]
    assert (json.loads(last)["action"], json.loads(last)["objects"]) == ("event.retry", ["*"])
