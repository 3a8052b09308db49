"""An erase is killed at any moment and run again; then no row, no key of Redis and no log line holds what is erased."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from tests.api.canary import Canary, found_in
from tests.faults.world import ROOT, World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

ROUNDS = 6


@pytest.fixture(scope="module")
def house(server_folder: Path) -> Iterator[World]:
    with World(server_folder / "house", workers=1) as world:
        yield world


def erase(world: World, project: str, user: str, *, kill_after_s: float | None = None) -> int | None:
    """Run the command; return its exit code, None: it was killed."""
    command = [sys.executable, "-m", "app", "erase", "--user", user, "--project", project, "--yes", "--json"]
    child = subprocess.Popen(command, cwd=ROOT, env=world.api.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        child.communicate(timeout=kill_after_s or 60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return None
    return child.returncode


def live(world: World, project: str, canary: Canary) -> None:
    """Use the service as the user of this canary, and wait until all is done."""
    with world.client(project) as client:
        ids = []
        for number in range(6):
            body = {
                "messages": [{"role": "user", "content": f"I live in {canary(f'city{number}')} and like tea."}],
                "user_id": canary("user"),
                "run_id": canary(f"run{number % 2}"),
                "metadata": {canary("key"): canary("value")},
                "infer": number % 2 == 0,
            }
            headers = {"Idempotency-Key": canary(f"add{number}")}
            ids.append(
                client.post("/v3/memories/add/", json=body, headers=headers).raise_for_status().json()["event_id"]
            )
        ended = ("SUCCEEDED", "FAILED")
        eventually(lambda: all(client.get(f"/v1/event/{one}/").json()["status"] in ended for one in ids), within_s=60)
        search = {"query": canary("city0"), "filters": {"OR": [{"user_id": canary("user")}]}}
        assert client.post("/v3/memories/search/", json=search).status_code == 200


def tables(world: World, canary: Canary) -> dict[str, list[str]]:
    """Return the rows that hold the canary."""
    from app.store import db as databases

    async def look() -> dict[str, list[str]]:
        conn = await databases.connect(world.postgres.dsn)
        try:
            return await found_in(conn, canary)
        finally:
            await conn.close()

    return world.run(look())


def redis_text(world: World) -> str:
    """Return every key and value of Redis, as they are kept."""
    address = urlsplit(world.valkey.url)
    with redis.Redis(host=address.hostname or "", port=address.port or 0, password=address.password) as client:
        keys = list(client.scan_iter())
        values = [client.dump(key) or b"" for key in keys]
    return b"\n".join([*keys, *values]).decode("latin-1")


def test_an_erase_that_was_killed_is_completed_by_the_next(house: World, dice: random.Random) -> None:
    project = next(iter(house.projects))
    canaries = []
    killed = 0
    for _ in range(ROUNDS):
        canary = Canary()
        canaries.append(canary)
        live(house, project, canary)
        assert len(tables(house, canary)) > 5
        code = erase(house, project, canary("user"), kill_after_s=dice.uniform(0.5, 4.0))
        killed += code is None
        if code is None:
            assert erase(house, project, canary("user")) in (0, 1)  # 1: the killed one had done it all
        assert tables(house, canary) == {}
    assert killed, "no erase was killed; give it less time"
    kept = redis_text(house)
    said = "\n".join(line for program in house.programs for line in program.history)
    for canary in canaries:
        assert not canary.is_in(kept)
        assert not canary.is_in(said)
