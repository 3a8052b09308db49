"""A disk that is full: nothing that was accepted is lost once there is room again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.history import History
from tests.faults.world import World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

SIZE_MIB = 160


@pytest.fixture
def small_disk(server_folder: Path) -> Iterator[Path]:
    """Mount a disk of `SIZE_MIB`; only root can."""
    folder = server_folder / "small"
    folder.mkdir(mode=0o711)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    folder.chmod(0o711)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_refuses_adds_and_loses_none(small_disk: Path, server_folder: Path) -> None:
    with World(server_folder / "full", workers=1, postgres_folder=small_disk / "postgres") as world:
        history = History(world)
        history.adds(range(8))
        ballast = small_disk / "ballast"
        fill(ballast)
        number = 8
        while not history.refused["503"]:
            history.add(number, patience_s=0.0)
            number += 1
            assert number < 5000
        with world.client() as client:
            assert client.get("/healthz").status_code == 200
        ballast.unlink()
        if not eventually_up(world):
            world.revive_postgres()  # as a supervisor does
        history.adds(range(number, number + 8))
        history.check(within_s=90)


def fill(ballast: Path) -> None:
    """Write until there is no room."""
    with ballast.open("wb") as file:
        try:
            while True:
                os.write(file.fileno(), b"\0" * 2**16)
        except OSError:
            return


def eventually_up(world: World) -> bool:
    """Return whether PostgreSQL outlived the full disk."""
    return (
        eventually(lambda: "no" if not world.postgres.child.alive() else "yes" if world.postgres.ready() else "")
        == "yes"
    )
