"""The command line clients, each command a process: the one in Python whole, the one in JavaScript in outline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import driving
import pytest
from conftest import node
from expect import UNKNOWN
from running import Service, wait_for

COMMAND_S = 60


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.out)


Cli = Callable[..., Ran]


def _cli(command: list[str], folder: Path, service: Service) -> Cli:
    environment = driving.clean_environment(folder) | {"MEM0_BASE_URL": service.url, "MEM0_API_KEY": service.key}

    def run(*arguments: str, given: str | None = None, **variables: str) -> Ran:
        done = subprocess.run(
            [*command, *arguments],
            env=environment | {"COLUMNS": "200", "NO_COLOR": "1"} | variables,
            cwd=folder,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="module")
def cli(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command `mem0` of the Python package, told the address and the key by the environment."""
    folder = tmp_path_factory.mktemp("cli")
    yield _cli([str(driving.python_of("cli").with_name("mem0"))], folder, service)
    assert driving.strangers(folder) == []


@pytest.fixture
def unset_cli(service: Service, tmp_path: Path) -> Cli:
    """Return the same command in a home of its own, for what is saved there."""
    return _cli([str(driving.python_of("cli").with_name("mem0"))], tmp_path, service)


@pytest.fixture(scope="module")
def node_cli(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command `mem0` of the npm package."""
    folder = tmp_path_factory.mktemp("node-cli")
    yield _cli([node(), str(driving.MODULES / ".bin" / "mem0")], folder, service)
    assert driving.strangers(folder) == []


@pytest.fixture
def stored(cli: Cli, name: str) -> str:
    """Store a memory of this owner word for word; return its id."""
    ran = cli("--json", "add", "I play the cello in a string quartet.", "--user-id", name, "--no-infer")
    return str(ran.data["data"][0]["id"])


# Connection


def test_status_says_connected(cli: Cli, service: Service) -> None:
    data = cli("status", "-o", "json").data["data"]
    assert data == {"connected": True, "backend": "platform", "base_url": service.url}
    assert "Connected" in cli("status").out


def test_wrong_key_is_told_as_such(cli: Cli, service: Service) -> None:
    for command in (["list", "-u", "u"], ["get", UNKNOWN], ["status"]):
        ran = cli(*command, "--api-key", "m0-wrong")
        assert ran.code != 0
        assert "nvalid or expired" in ran.out + ran.err


def test_init_saves_what_later_commands_need(unset_cli: Cli, service: Service) -> None:
    ran = unset_cli("init", "--api-key", service.key, "--user-id", "alice", "--force", MEM0_API_KEY="")
    assert ran.code == 0, ran.out + ran.err
    assert unset_cli("config", "set", "platform.base_url", service.url).code == 0
    listed = unset_cli("--json", "list", MEM0_API_KEY="", MEM0_BASE_URL="")
    assert listed.code == 0, listed.out + listed.err
    assert listed.data["scope"] == {"user_id": "alice"}


# Add


def test_added_text_becomes_a_memory(cli: Cli, service: Service, name: str) -> None:
    ran = cli("--json", "add", "I keep two rabbits named Fig and Plum.", "--user-id", name)
    assert ran.code == 0, ran.err
    (accepted,) = ran.data["data"]
    assert accepted["status"] == "PENDING"
    service.finished(accepted["event_id"])
    listed = cli("list", "--user-id", name, "-o", "json").data["data"]
    assert any("Fig" in memory["memory"] for memory in listed)


def test_queued_add_says_so(cli: Cli, name: str) -> None:
    assert "1 event pending" in cli("add", "I keep two rabbits.", "-u", name).out


def test_add_takes_every_option(cli: Cli, name: str) -> None:
    ran = cli(
        "add", "--messages", '[{"role": "user", "content": "Tea without sugar."}]', "--user-id", name, "--app-id", "kitchen",
        "--run-id", "r-1", "--metadata", '{"Kind": {"deep": [1]}}', "--immutable", "--no-infer", "--expires", "2099-01-31",
        "--custom-instructions", "Keep drinks.", "--agent-custom-instructions", "Keep promises.",
        "--custom-categories", '[{"drinks": "what people drink"}]', "--structured-data-schema", '{"type": "object"}',
        "--timestamp", "1721577600", "-o", "json",
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    memory = cli("get", ran.data["results"][0]["id"], "-o", "json").data
    assert memory["memory"] == "Tea without sugar."
    assert memory["metadata"] == {"Kind": {"deep": [1]}}
    assert memory["expiration_date"] == "2099-01-31"
    assert (memory["app_id"], memory["run_id"]) == ("kitchen", "r-1")
    assert memory["created_at"].startswith("2024-07-21T16:00:00")


def test_text_may_be_piped_or_read_from_a_file(cli: Cli, name: str, tmp_path: Path) -> None:
    assert cli("add", "--user-id", name, "--no-infer", given="Piped in.").code == 0
    file = tmp_path / "messages.json"
    file.write_text('[{"role": "user", "content": "From a file."}]')
    assert cli("add", "--file", str(file), "--user-id", name, "--no-infer").code == 0
    listed = cli("list", "-u", name, "-o", "json").data["data"]
    assert {memory["memory"] for memory in listed} == {"Piped in.", "From a file."}


def test_refused_add_ends_with_one(cli: Cli) -> None:
    ran = cli("add", "I sing.")
    assert ran.code == 1
    assert "Bad request" in ran.out + ran.err


# Search and list


def test_search_finds_the_memory_that_is_meant(cli: Cli, stored: str, name: str) -> None:
    found = cli("search", "Which instrument do I play?", "-u", name, "-o", "json").data
    assert found["data"][0]["id"] == stored if isinstance(found, dict) else found[0]["id"] == stored
    text = cli("search", "Which instrument do I play?", "-u", name).out
    assert "cello" in text
    assert "Score" in text
    assert "cello" in cli("search", "cello", "-u", name, "-o", "table").out


def test_search_takes_every_option(cli: Cli, stored: str, name: str) -> None:
    ran = cli(
        "--json", "search", "cello", "--user-id", name, "--top-k", "5", "--threshold", "0", "--rerank", "--keyword",
        "--filter", json.dumps({"AND": [{"user_id": name}]}), "--fields", "memory,score", "--show-expired",
        "--reference-date", "2026-03-01", "--latest-only",
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    assert "cello" in ran.data["data"][0]["memory"]


def test_search_without_an_owner_is_a_bad_request(cli: Cli) -> None:
    ran = cli("search", "cello")
    assert ran.code == 1
    assert "Bad request" in ran.out + ran.err


def test_list_takes_every_option(cli: Cli, stored: str, name: str) -> None:
    assert "cello" in cli("list", "-u", name).out
    page = cli("--json", "list", "-u", name, "--page", "1", "--page-size", "1", "--show-expired", "--latest-only")
    assert page.data["count"] == 1
    dated = cli("--json", "list", "-u", name, "--after", "2020-01-01", "--before", "2020-12-31", "--category", "music")
    assert dated.data["count"] == 0
    since = cli("--json", "list", "-u", name, "--after", "2020-01-01")
    assert since.data["count"] == 1


# Read, change, delete


def test_memory_is_read_changed_and_deleted(cli: Cli, stored: str) -> None:
    assert "cello" in cli("get", stored).out
    changed = cli(
        "update", stored, "I play the viola.", "--metadata", '{"a": 1}', "--expires", "2099-12-31", "--timestamp",
        "1721577600", "-o", "json",
    )  # fmt: skip
    assert changed.code == 0, changed.out + changed.err
    memory = cli("get", stored, "-o", "json").data
    assert (memory["memory"], memory["metadata"], memory["expiration_date"]) == (
        "I play the viola.",
        {"a": 1},
        "2099-12-31",
    )
    assert cli("delete", stored, "--dry-run").code == 0
    assert cli("delete", stored, "--delete-linked", "--force").code == 0
    gone = cli("get", stored)
    assert gone.code == 1
    assert "not found" in gone.out + gone.err


def test_malformed_id_is_a_bad_request(cli: Cli) -> None:
    ran = cli("get", "no-uuid")
    assert ran.code == 1
    assert "memory_id should be a valid UUID" in ran.out + ran.err


def test_delete_all_takes_what_its_owner_has_and_nothing_else(cli: Cli, stored: str, name: str) -> None:
    kept = cli("--json", "add", "Not mine.", "--user-id", f"{name} two", "--no-infer").data["data"][0]["id"]
    assert "Would delete 1 memory" in cli("delete", "--all", "-u", name, "--dry-run").out
    assert "Deletion started" in cli("delete", "--all", "-u", name, "--force").out
    assert cli("get", stored).code == 1
    assert cli("get", kept).code == 0
    assert cli("delete", "--all", "--force").code != 0
    assert cli("get", kept).code == 0


# Owners, events, import


def test_owners_are_listed_and_deleted(cli: Cli, stored: str, name: str) -> None:
    listed = cli("entity", "list", "users", "-o", "json").data
    found = listed["data"] if isinstance(listed, dict) else listed
    assert name in [owner["name"] for owner in found]
    assert cli("entity", "list", "agents").code == 0
    assert cli("entity", "delete", "--user-id", name, "--dry-run").code == 0
    assert cli("entity", "delete", "--user-id", name, "--force").code == 0
    assert wait_for(lambda: cli("get", stored).code == 1, within_s=30, what="the memory is gone")


def test_owner_is_deleted_by_the_shorter_way_too(cli: Cli, stored: str, name: str) -> None:
    assert cli("delete", "--entity", "--user-id", name, "--force").code == 0
    assert wait_for(lambda: cli("get", stored).code == 1, within_s=30, what="the memory is gone")


def test_events_are_listed_and_inspected(cli: Cli, service: Service, name: str) -> None:
    accepted = cli("--json", "add", "I keep two rabbits named Fig and Plum.", "--user-id", name).data["data"][0]
    service.finished(accepted["event_id"])
    listed = cli("--json", "event", "list").data["data"]
    assert accepted["event_id"] in [event["id"] for event in listed]
    assert "SUCCEEDED" in cli("event", "list").out
    event = cli("event", "status", accepted["event_id"], "-o", "json").data
    assert event["status"] == "SUCCEEDED"
    assert isinstance(event["latency"], (int, float))
    shown = cli("event", "status", accepted["event_id"]).out
    assert "ADD" in shown
    assert "Fig" in shown
    assert cli("event", "status", UNKNOWN).code == 1


def test_file_of_memories_is_imported(cli: Cli, name: str, tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    memories = [
        {"memory": "I keep two rabbits named Fig and Plum.", "user_id": name, "metadata": {"from": "file"}},
        {"text": "I play the cello in a string quartet.", "user_id": name},
        {"nothing": True},
    ]
    file.write_text(json.dumps(memories))
    assert cli("import", str(file), "-o", "json").data["data"] == {"added": 2, "failed": 1}


# The one in JavaScript: every command of it waits five seconds before it ends, so one of each kind


def test_node_cli_adds_finds_and_deletes(node_cli: Cli, service: Service, name: str) -> None:
    added = node_cli("--json", "add", "I play the cello in a string quartet.", "--user-id", name, "--no-infer")
    assert added.code == 0, added.out + added.err
    memory_id = added.data["data"][0]["id"]
    found = node_cli("--json", "search", "Which instrument do I play?", "--user-id", name)
    assert found.data["data"][0]["id"] == memory_id
    assert node_cli("--json", "delete", memory_id, "--force").code == 0
    assert service.get(f"/v1/memories/{memory_id}/") is None


def test_node_cli_lists_memories_owners_and_events(node_cli: Cli, stored: str, name: str) -> None:
    commands = [("list", "--user-id", name), ("entity", "list", "users"), ("event", "list"), ("status",)]
    with ThreadPoolExecutor() as pool:
        listed, owners, events, status = pool.map(lambda command: node_cli("--json", *command), commands)
    assert listed.data["data"][0]["id"] == stored
    assert owners.data["count"] >= 1
    assert "count" in events.data
    assert status.data["data"]["connected"] is True


def test_node_cli_tells_a_wrong_key(node_cli: Cli) -> None:
    ran = node_cli("list", "--user-id", "u", MEM0_API_KEY="m0-wrong")
    assert ran.code != 0
    assert "nvalid or expired" in ran.out + ran.err
