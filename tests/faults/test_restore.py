"""A base backup and the log of changes, restored to a point in time: what was accepted until then ends by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest

from app.servers import binaries, process
from tests.faults.history import History
from tests.faults.world import World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


@pytest.fixture
def archive() -> Iterator[Path]:
    """Make a folder that the server's user can write to by its name."""
    folder = Path(f"/tmp/memoryd-archive-{uuid4().hex[:8]}")  # short, and open to an unprivileged user
    folder.mkdir(mode=0o700)
    if (who := process.account("nobody")) is not None:
        os.chown(folder, who.uid, who.gid)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def archived(server_folder: Path, archive: Path) -> Iterator[World]:
    settings = {
        "wal_level": "replica",
        "archive_mode": "on",
        "archive_command": f"cp %p {archive}/%f",
        "max_wal_senders": "4",
    }
    with World(server_folder / "archived", workers=1, postgres=settings) as world:
        yield world


def back_up(world: World, folder: Path) -> None:
    """Copy the running server's files, as operators do."""
    tool = binaries.postgres(process.account("nobody")) / "pg_basebackup"
    command = [str(tool), "-d", world.postgres.dsn, "-D", str(folder), "-X", "none", "-c", "fast", "--no-manifest"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def restore(world: World, folder: Path, archive: Path, until: datetime) -> None:
    """Put the copy in the place of the server's files and let it read the archive up to that moment."""
    data = world.postgres.data
    mode, owner = data.stat().st_mode, (data.stat().st_uid, data.stat().st_gid)
    shutil.rmtree(data)
    shutil.move(folder, data)
    (data / "recovery.signal").touch()
    with (data / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
        file.write(f"restore_command = 'cp {archive}/%f %p'\n")
        file.write(f"recovery_target_time = '{until.isoformat()}'\nrecovery_target_action = 'promote'\n")
    for path in (data, *data.rglob("*")):
        os.chown(path, *owner)
    data.chmod(mode & 0o777)


def test_what_was_accepted_before_the_moment_ends_once_and_what_came_later_is_gone(
    archived: World, archive: Path, tmp_path: Path
) -> None:
    world = archived
    early, open_then, late = (History(world) for _ in range(3))
    early.adds(range(8))
    early.settle()
    back_up(world, tmp_path / "copy")
    early.adds(range(8, 16))
    early.settle()
    world.workers[0].end()
    open_then.adds(range(8))  # accepted, and nobody works
    until = world.value("SELECT clock_timestamp()")
    world.workers[0].start()
    late.adds(range(8))
    late.settle()
    open_then.check()
    world.rows("SELECT pg_switch_wal()")
    segment = world.value("SELECT last_archived_wal FROM pg_stat_archiver")
    eventually(lambda: world.value("SELECT last_archived_wal FROM pg_stat_archiver") >= segment and archived_all(world))
    for program in world.programs:
        program.kill()
    world.postgres.stop()
    restore(world, tmp_path / "copy", archive, until)
    world.revive_postgres()
    assert (
        world.value(
            "SELECT count(*) FROM events WHERE status = 'PENDING' AND payload::text LIKE $1", f"%{open_then.name}%"
        )
        == 8
    )
    for ack in late.acks:  # Redis still has hints of events that never were
        world.redis_says("ZADD", "memoryd:bell", "0", ack.event_id)
    world.heal()
    early.check()
    open_then.check(restored=True)
    assert world.value("SELECT count(*) FROM events WHERE payload::text LIKE $1", f"%{late.name}%") == 0
    again = History(world)
    again.adds(range(8))
    again.check()


def archived_all(world: World) -> bool:
    ready = world.postgres.data / "pg_wal" / "archive_status"
    return not list(ready.glob("*.ready"))
