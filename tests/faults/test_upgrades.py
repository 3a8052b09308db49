"""Migrations that are killed in the middle, by their client or with their server: the next run completes them."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

import app
from tests.faults.history import History
from tests.faults.proxy import Proxy
from tests.faults.world import ROOT, World, _at

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

FILES = sorted(path.name for path in (Path(app.__file__).parents[1] / "migrations").glob("*.sql"))
SHAPE = """
SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
    SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type || ' ' || c.is_nullable || ' '
        || coalesce(c.column_default, '') AS line
    FROM information_schema.columns c WHERE c.table_schema = 'public'
    UNION ALL
    SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT tablename || ' ' || policyname || ' ' || coalesce(qual, '') FROM pg_policies
    UNION ALL
    SELECT 'invalid ' || indexrelid::regclass FROM pg_index WHERE NOT indisvalid
) lines
"""


class Upgrade:
    """An empty database behind a proxy of its own, and the command that fills it."""

    def __init__(self, world: World, proxy: Proxy) -> None:
        self.world, self.proxy = world, proxy
        self.name = f"upgrade_{uuid4().hex[:8]}"
        world.rows(f"CREATE DATABASE {self.name}")
        self.dsn = world.postgres.dsn.rsplit("/", 1)[0] + "/" + self.name
        self._env = {**world.workers[0].env, "DATABASE_URL": _at(self.dsn, proxy.port)}

    def spawn(self, command: str = "migrate") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "app", command], env=self._env, cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def finish(self) -> str:
        """Run the command to its end; return what it says."""
        child = self.spawn()
        said, _ = child.communicate(timeout=120)
        assert child.returncode == 0, said
        return said

    def shape(self) -> str:
        """Return the schema as text."""
        child = self.world.rows_of(self.dsn, SHAPE)
        return str(child[0]["string_agg"])


@pytest.fixture
def upgrade(world: World) -> Iterator[Upgrade]:
    with Proxy(urlsplit(world.postgres.dsn).port or 0) as proxy:
        made = Upgrade(world, proxy)
        yield made
    world.rows(f"DROP DATABASE {made.name} WITH (FORCE)")


@pytest.fixture(scope="module")
def wanted(whole_world: World) -> str:
    """The schema as an undisturbed run makes it."""
    return str(whole_world.rows_of(whole_world.postgres.dsn, SHAPE)[0]["string_agg"])


def test_run_that_is_killed_in_every_file_is_completed_by_the_next(upgrade: Upgrade, wanted: str) -> None:
    """Before a file's commit nothing of it is there, after it all of it is; each run gets one file further."""
    for number, name in enumerate(FILES):
        for committed in (False, True) if number < 2 else (number % 2 == 0,):
            trap = upgrade.proxy.lay(name, "COMMIT", forward=committed)
            child = upgrade.spawn()
            try:
                assert trap.sprung.wait(60), child.poll()
            finally:
                child.kill()
                child.communicate()
            upgrade.proxy.trap = None
    upgrade.finish()
    assert upgrade.shape() == wanted
    assert upgrade.finish() == "The schema is up to date.\n"


def test_runs_that_are_killed_at_any_moment_are_completed_by_the_next(
    upgrade: Upgrade, wanted: str, dice: random.Random
) -> None:
    for _ in range(4):
        child = upgrade.spawn()
        time.sleep(dice.uniform(0.6, 3.0))  # the moment is what the dice choose
        child.kill()
        child.communicate()
    upgrade.finish()
    assert upgrade.shape() == wanted


def test_server_that_dies_in_the_middle_of_a_run_is_waited_for_by_the_next(
    world: World, upgrade: Upgrade, wanted: str
) -> None:
    history = History(world)
    history.adds(range(4))
    trap = upgrade.proxy.lay(FILES[1], "COMMIT", forward=False)
    child = upgrade.spawn()
    assert trap.sprung.wait(60)
    world.kill_postgres()
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 1
    assert said.startswith("memoryd: The database")
    assert said.count("\n") == 1
    upgrade.proxy.trap = None
    world.revive_postgres()
    upgrade.finish()
    assert upgrade.shape() == wanted
    history.check()


def test_service_refuses_half_a_schema_by_name(upgrade: Upgrade) -> None:
    trap = upgrade.proxy.lay(FILES[0], "COMMIT", forward=True)
    child = upgrade.spawn()
    assert trap.sprung.wait(60)
    child.kill()
    child.communicate()
    upgrade.proxy.trap = None
    for command in ("serve", "worker"):
        refused = upgrade.spawn(command)
        said, _ = refused.communicate(timeout=60)
        assert refused.returncode == 1
        assert "run `memoryd migrate`" in said.splitlines()[-1]
