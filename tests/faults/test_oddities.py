"""What nobody thinks of: several of everything, a frozen postmaster, a full disk under Redis, rows spoilt by hand."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.servers import process
from tests.faults.history import History
from tests.faults.world import ROOT, START_S, World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

FROZEN_S = 20
CHANGES = {
    "a request of another form": ("payload", '{"version": 99}', "FAILED"),
    "a request that is a text": ("payload", '"nonsense"', "FAILED"),
    "messages that are numbers": ("payload", '{"messages": [1, 2], "owners": {}, "infer": true}', "FAILED"),
    "an answer that nobody can read": ("checkpoint", '[{"texts": 7, "extracted": true}]', "SUCCEEDED"),
    "an answer of another kind": ("checkpoint", '["x", 5, null]', "SUCCEEDED"),
    "a kind of later": ("kind", "SUMMARIZE", "FAILED"),
}


@pytest.fixture
def crowd(server_folder: Path) -> Iterator[World]:
    """Two APIs and three workers."""
    with World(server_folder / "crowd", workers=3, apis=2) as world:
        yield world


def test_two_apis_and_three_workers_that_die_by_turns_lose_and_double_nothing(
    crowd: World, dice: random.Random
) -> None:
    history = History(crowd)
    stop = threading.Event()

    def load(api: int, first: int) -> None:
        project = sorted(crowd.projects)[first % 2]
        with crowd.client(project, api=api) as client:
            for number in range(first, first + 30, 2):
                assert history.add(number, client=client) is not None

    threads = [threading.Thread(target=load, args=(api, first)) for api, first in ((0, 0), (1, 1), (0, 100), (1, 101))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not stop.wait(dice.uniform(0.2, 0.8)):
        victim = dice.choice(crowd.programs)
        victim.kill()
        victim.start()
    for thread in threads:
        thread.join()
    assert len(history.acks) == 60
    crowd.heal()
    history.check()


def test_postmaster_that_is_frozen_stops_nobody_who_is_connected(world: World, history: History) -> None:
    """Its children go on; whoever needs a new connection waits, and is refused in time."""
    history.adds(range(6))
    with world.frozen(world.postgres):
        ends = time.monotonic() + FROZEN_S
        number = 6
        while time.monotonic() < ends:
            history.adds(range(number, number + 4), patience_s=0.0)
            number += 4
            with world.client() as client:
                assert client.get("/healthz").status_code == 200
    history.adds(range(number, number + 6))
    history.check()
    assert all(program.child.alive() for program in world.programs)


@pytest.fixture
def small_redis(server_folder: Path) -> Iterator[World]:
    """A world whose Redis has a disk of four MiB."""
    folder = server_folder / "brim" / "valkey"
    folder.mkdir(parents=True, mode=0o711)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m,mode=711", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        with World(server_folder / "brim", workers=1) as world:
            yield world
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk_under_redis_slows_nobody_down(small_redis: World) -> None:
    world, history = small_redis, History(small_redis)
    history.adds(range(4))
    ballast = world.folder / "valkey" / "ballast"
    with ballast.open("wb") as file:
        try:
            while True:
                os.write(file.fileno(), b"\0" * 2**14)
        except OSError:
            pass
    history.adds(range(4, 30))
    history.check()
    assert not history.refused
    assert world.workers[0].child.alive()
    ballast.unlink()
    if not world.valkey.child.alive():
        world.revive_redis()
    history.adds(range(30, 36))
    history.check()
    eventually(lambda: world.ready()["status"] == "ok", within_s=60)


@pytest.mark.parametrize("change", CHANGES)
def test_event_that_was_spoilt_by_hand_ends_and_stops_no_other(world: World, history: History, change: str) -> None:
    column, value, status = CHANGES[change]
    for worker in world.workers:
        worker.kill()
    history.adds(range(6))
    spoilt = next(ack for ack in history.acks if ack.mark.endswith("-0"))
    cast = "text" if column == "kind" else "text::jsonb"
    world.rows(f"UPDATE events SET {column} = $2::{cast} WHERE id = $1::text::uuid", spoilt.event_id, value)
    for worker in world.workers:
        worker.spawn()
    if column == "kind":  # no add any more
        world.heal()
        history.settle()
        row = world.rows("SELECT status, error FROM events WHERE id = $1::text::uuid", spoilt.event_id)[0]
        assert row["status"] == "FAILED"
        assert "SUMMARIZE" in row["error"]
        history.acks.remove(spoilt)
        history.check()
        return
    history.check(failed=frozenset({spoilt.mark} if status == "FAILED" else set()))
    row = world.rows("SELECT error_code FROM events WHERE id = $1::text::uuid", spoilt.event_id)[0]
    assert row["error_code"] == ("invalid_request" if status == "FAILED" else None)


class Whole:
    """`memoryd up`, with all its children, from outside."""

    def __init__(self, data: Path) -> None:
        self.data, self.port = data, process.free_port()
        ours = ("MEMORYD_", "DATABASE_URL", "REDIS_URL")
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self._env |= {
            "MEMORYD_DATA": str(data),
            "MEMORYD_PORT": str(self.port),
            "MEMORYD_LEASE_S": "5",
            "OMP_NUM_THREADS": "1",
        }
        self.child = process.Child("up", data.with_suffix(".log"), death_signal=signal.SIGTERM)

    def start(self) -> dict[str, Any]:
        place = self.data / "connection.json"
        place.unlink(missing_ok=True)  # of one that was killed; this start writes it when all is ready
        self.child.spawn([sys.executable, "-m", "app", "up"], env=self._env, cwd=str(ROOT))
        eventually(lambda: place.exists() or not self.child.alive(), within_s=START_S)
        assert self.child.alive(), self.child.log.read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
        return found


def test_supervisor_that_is_killed_at_work_takes_all_down_and_the_next_goes_on(server_folder: Path) -> None:
    whole = Whole(server_folder / "whole")
    try:
        place = whole.start()
        headers = {"Authorization": f"Token {place['api_key']}"}
        with httpx.Client(base_url=place["base_url"], headers=headers, timeout=30, trust_env=False) as client:
            events = []
            for number in range(20):
                body = {
                    "messages": [{"role": "user", "content": f"I moved to town number {number}."}],
                    "user_id": f"u{number % 5}",
                }
                events.append(client.post("/v3/memories/add/", json=body).json()["event_id"])
        whole.child.end(signal.SIGKILL, timeout_s=10)
        eventually(lambda: not answers(place["base_url"]), within_s=30)
        whole.start()
        with httpx.Client(base_url=place["base_url"], headers=headers, timeout=30, trust_env=False) as client:

            def ended() -> bool:
                return {client.get(f"/v1/event/{one}/").json()["status"] for one in events} == {"SUCCEEDED"}

            eventually(ended, within_s=90)
            listed = client.post("/v3/memories/", json={"filters": {"user_id": "*"}}).json()["results"]
            assert len({one["memory"] for one in listed}) == len(listed)
    finally:
        whole.child.end(signal.SIGTERM, timeout_s=60)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
