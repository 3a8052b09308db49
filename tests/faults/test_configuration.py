"""Processes that are set up wrong: each ends at once with one line that says what to change, and breaks nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.brain import embeddings
from tests.faults.history import History
from tests.faults.world import ROOT, World
from tests.model_stub import Reply

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

#: What is set, and what the line has to say.
WRONG = (
    ("serve", {"MEMORYD_PORT": "99999"}, "MEMORYD_PORT"),
    ("worker", {"MEMORYD_LEASE_S": "-1"}, "MEMORYD_LEASE_S"),
    ("worker", {"DATABASE_URL": "mysql://u:swordfish@127.0.0.1/x"}, "DATABASE_URL"),
    ("serve", {"DATABASE_URL": "", "MEMORYD_DATA": "/nowhere"}, "DATABASE_URL"),  # else it finds the one of the folder
    ("serve", {}, "MEMORYD_PORT"),  # where another one listens
    ("serve", {"REDIS_URL": "http://:swordfish@127.0.0.1"}, "REDIS_URL"),
    ("worker", {"MEMORYD_LLM_MODEL": ""}, "MEMORYD_LLM_MODEL"),
    ("serve", {"MEMORYD_EMBEDDER_MODEL": ""}, "MEMORYD_EMBEDDER_MODEL"),
    ("worker", {"MEMORYD_EMBEDDER_MODEL": "another"}, "brain-32"),
)


def ended(env: dict[str, str], command: str) -> tuple[int, str]:
    """Run a command to its end; return its code and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "app", command],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_each_wrong_setting_is_one_line_at_the_start(world: World, history: History) -> None:
    history.adds(range(4))
    history.settle()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: ended(world.workers[0].env | case[1], case[0]), WRONG))
    for (command, change, words), (code, said) in zip(WRONG, found, strict=True):
        shown = f"{command} {change}: {said}"
        assert code == 1, shown
        lines = said.strip().splitlines()
        assert lines[-1].startswith("memoryd: "), shown
        assert words in lines[-1], shown
        assert "Traceback" not in said, shown
        assert "swordfish" not in said, shown
    history.check()


def test_wrong_password_and_absent_database_are_told_apart(world: World) -> None:
    dsn = world.workers[0].env["DATABASE_URL"]
    password = dsn.split(":")[2].split("@")[0]
    for wrong, words in (
        (dsn.replace(password, "swordfish"), "password authentication failed"),
        (dsn.rsplit("/", 1)[0] + "/nowhere", '"nowhere" does not exist'),
    ):
        code, said = ended(world.workers[0].env | {"DATABASE_URL": wrong}, "serve")
        assert code == 1
        assert words in said.strip().splitlines()[-1]
        assert "swordfish" not in said


def test_embedder_of_other_dimensions_is_refused_with_both_numbers(world: World, history: History) -> None:
    history.adds(range(2))
    history.check()
    world.brain.embed = lambda asked: Reply(body=embeddings(asked["input"], dims=16))
    code, said = ended(world.workers[0].env, "serve")
    assert code == 1
    assert all(number in said.strip().splitlines()[-1] for number in ("16", "32"))


def test_user_that_may_not_make_the_extension_is_told_so_in_one_line(world: World) -> None:
    world.rows("CREATE DATABASE bare")
    world.rows("CREATE ROLE plain LOGIN PASSWORD 'swordfish'")
    host = world.workers[0].env["DATABASE_URL"].rsplit("@", 1)[1].rsplit("/", 1)[0]
    env = world.workers[0].env | {"DATABASE_URL": f"postgresql://plain:swordfish@{host}/bare"}
    code, said = ended(env, "migrate")
    world.rows("DROP DATABASE bare WITH (FORCE)")
    world.rows("DROP ROLE plain")
    assert code == 1
    assert "permission denied" in said
    assert said.strip().count("\n") == 0
    assert "swordfish" not in said


def test_data_folder_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("MEMORYD_", "DATABASE_", "REDIS_"))
    }
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/memoryd")):
        code, said = ended(env | {"MEMORYD_DATA": str(place), "MEMORYD_PORT": "1"}, "up")
        assert code == 1
        assert "MEMORYD_DATA" in said
        assert "Traceback" not in said


def test_misspelt_setting_is_said_and_breaks_nothing(world: World) -> None:
    code, said = ended(world.workers[0].env | {"MEMORYD_LEASE": "5", "MEMORYD_LEASE_S": "nan"}, "worker")
    assert code == 1
    code, said = ended(world.workers[0].env | {"MEMORYD_LEASE": "5"}, "migrate")
    assert code == 0
    assert "setting.unknown" in said
    assert "MEMORYD_LEASE_S" in said
