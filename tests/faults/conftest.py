"""A world that breaks, one for all tests that leave it whole; dice whose seed is shown and can be chosen."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.history import History
from tests.faults.world import World

SEED = int(os.environ.get("MEMORYD_SEED") or secrets.randbelow(10**6))


def pytest_report_header() -> str:
    """Show the seed; in the environment it replays the run's choices."""
    return f"faults: MEMORYD_SEED={SEED}"


@pytest.fixture(scope="session")
def whole_world(server_folder: Path) -> Iterator[World]:
    """Run the service, with two workers."""
    with World(server_folder / "world") as world:
        yield world


@pytest.fixture
def world(whole_world: World) -> Iterator[World]:
    """Lend the world, and put it back in order."""
    yield whole_world
    whole_world.heal()


@pytest.fixture
def history(world: World) -> History:
    """Begin a history."""
    return History(world)


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Return the dice of one test, from the run's seed and the test's name."""
    return random.Random(f"{SEED} {request.node.name}")
