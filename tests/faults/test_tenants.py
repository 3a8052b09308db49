"""Keys and projects that end while their work is under way, neighbours with a flood, and hints that come many times."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app import queue
from tests.faults.history import History
from tests.faults.world import World, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

REVOKED_S = 5.0  #: promised, on every process
FLOOD = 2000
THINKS_S = 0.05  # the model, about each add


@pytest.fixture(scope="module")
def pair(server_folder: Path) -> Iterator[World]:
    """A world with two APIs and one worker."""
    with World(server_folder / "pair", workers=1, apis=2) as world:
        yield world


@pytest.fixture
def two(pair: World) -> Iterator[World]:
    yield pair
    pair.heal()


def path_of(world: World, project: str) -> str:
    with world.client(project) as client:
        ping = client.get("/v1/ping/").json()
    return f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{project}/"


def refused_within(client: httpx.Client, since: float, statuses: set[int]) -> float:
    """Return how long a key went on working, in seconds."""
    while time.monotonic() - since < 3 * REVOKED_S:
        answer = client.post("/v3/memories/", json={"filters": {"user_id": "*"}})
        if answer.status_code in statuses:
            return time.monotonic() - since
        assert answer.status_code == 200, answer.text
        time.sleep(0.05)
    raise AssertionError("the key still works")


def hold(world: World) -> tuple[threading.Event, threading.Event]:
    """Let the model think until the second event is set; the first says that it does."""
    thinking, go = threading.Event(), threading.Event()

    def slow(_asked: object) -> None:
        thinking.set()
        go.wait(60)

    world.brain.chat = slow
    return thinking, go


@pytest.mark.parametrize("from_api", [0, 1])
def test_revoked_key_ends_on_every_process_in_time_and_what_was_accepted_is_done(two: World, from_api: int) -> None:
    project = sorted(two.projects)[0]
    with two.client(project) as client:
        made = client.post("/api/v1/keys/", json={"name": "short"}).json()
    secret = made.get("key") or made.get("api_key") or made.get("secret")
    assert secret, made
    thinking, go = hold(two)
    history = History(two)
    with two.client(secret=secret, api=0) as first, two.client(secret=secret, api=1) as second:
        for number in range(0, 6, 2):
            assert history.add(number, client=first if number % 4 else second) is not None
        assert thinking.wait(30)
        with two.client(project, api=from_api) as owner:
            assert owner.delete(f"/api/v1/keys/{made['id']}/").status_code in (200, 204)
        since = time.monotonic()
        waits = [refused_within(client, since, {401}) for client in (first, second)]
        assert max(waits) <= REVOKED_S + 0.5
        add = {"messages": [{"role": "user", "content": "late"}], "user_id": "late"}
        for client in (first, second):
            assert client.post("/v3/memories/add/", json=add).status_code == 401
    two.brain.behave()
    go.set()
    history.check()


def test_project_that_is_deleted_while_it_works_is_gone_everywhere_and_harms_no_other(two: World) -> None:
    first = sorted(two.projects)[0]
    org = path_of(two, first).rsplit("projects/", 1)[0]
    with two.client(first) as client:
        made = client.post(f"{org}projects/", json={"name": f"short-{uuid4().hex[:6]}"}).json()
    project = made.get("project_id") or made["id"]
    secret = new_key(two, project)
    thinking, go = hold(two)
    history = History(two)
    canary = f"canary-{uuid4().hex}"
    with two.client(secret=secret, api=0) as one, two.client(secret=secret, api=1) as other:
        for number in range(6):
            body = {"messages": [{"role": "user", "content": f"Remember {canary} {number}."}], "user_id": f"u{number}"}
            assert one.post("/v3/memories/add/", json=body).status_code == 200
        assert thinking.wait(30)
        history.adds(range(8))
        with two.client(first) as owner:
            assert owner.delete(f"{org}projects/{project}/").status_code in (200, 204)
        since = time.monotonic()
        assert max(refused_within(client, since, {401, 404}) for client in (one, other)) <= REVOKED_S + 0.5
    two.brain.behave()
    go.set()
    history.check()
    assert two.value("SELECT count(*) FROM projects WHERE public_id = $1", project) == 0
    for table in ("events", "messages", "memories", "history"):
        assert two.value(f"SELECT count(*) FROM {table} t WHERE t::text LIKE $1", f"%{canary}%") == 0, table
    log = "\n".join(two.workers[0].history)
    assert "event.crashed" not in log
    assert "worker.look_failed" not in log


def new_key(world: World, project: str) -> str:
    """Make a key of a project as an operator does."""
    import subprocess
    import sys

    env = world.workers[0].env
    done = subprocess.run(
        [sys.executable, "-m", "app", "keys", "create", "--project", project, "--name", "x"],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return next(word for word in done.stdout.split() if word.startswith("m0-"))


def test_flood_of_one_project_delays_another_by_a_slot_only(two: World) -> None:
    first, second = sorted(two.projects)

    def think(_asked: dict[str, Any]) -> None:
        time.sleep(THINKS_S)

    two.brain.chat = think
    idle = min(latency(two, second) for _ in range(5))
    two.workers[0].end()
    with two.client(first) as client:
        for number in range(FLOOD):
            body = {"messages": [{"role": "user", "content": "Remember nothing."}], "user_id": f"flood-{number % 200}"}
            assert client.post("/v3/memories/add/", json=body).status_code == 200
    two.workers[0].start()
    eventually(
        lambda: (
            two.value("SELECT count(*) FROM events WHERE status = 'SUCCEEDED' AND payload::text LIKE '%flood-%'") > 20
        )
    )
    behind = sorted(latency(two, second) for _ in range(5))
    left = two.value("SELECT count(*) FROM events WHERE status = 'PENDING' AND payload::text LIKE '%flood-%'")
    assert left > FLOOD / 4, "the flood was over too soon"
    assert behind[2] < 3 * idle + 1.0, (idle, behind)  # the second is for a machine on which the flood also computes
    two.rows("DELETE FROM events WHERE payload::text LIKE '%flood-%' AND status = 'PENDING'")
    eventually(
        lambda: two.value("SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING')") == 0, within_s=60
    )


def latency(world: World, project: str) -> float:
    """Return the seconds from an add to its end."""
    user = f"calm-{uuid4().hex[:6]}"
    with world.client(project) as client:
        began = time.monotonic()
        body = {"messages": [{"role": "user", "content": "Remember tea."}], "user_id": user}
        event_id = client.post("/v3/memories/add/", json=body).json()["event_id"]

        def done() -> bool:
            return client.get(f"/v1/event/{event_id}/").json()["status"] in ("SUCCEEDED", "FAILED")

        eventually(done, within_s=60)
        return time.monotonic() - began


def test_same_hint_fifty_times_over_is_one_effect(two: World) -> None:
    thinking, go = hold(two)
    history = History(two)
    history.adds(range(4))

    async def ring() -> None:
        bell = queue.connect(two.valkey.url, timeout_s=5.0)
        for ack in history.acks:
            for number in range(50):  # under ids of their own, and under the same
                for job_id in (f"{ack.event_id}:{number}", ack.event_id):
                    await bell.enqueue_job(queue.RING, ack.event_id, _job_id=job_id)
        await queue.close(bell)

    two.run(ring())
    assert thinking.wait(30)
    two.run(ring())
    two.brain.behave()
    go.set()
    history.check()
    two.run(ring())  # and of events that are long done
    eventually(lambda: int(two.redis_says("ZCARD", queue.QUEUE_NAME)) == 0)
    history.check()
    assert {two.brain.asked[ack.mark] for ack in history.acks} == {1}
