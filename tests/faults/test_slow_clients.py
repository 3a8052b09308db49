"""Clients that take their time, say nothing, or leave: nobody else waits for them."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.history import History
from tests.faults.world import World, eventually
from tests.model_stub import Reply

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

IDLE, DRIPPING, LEAVING = 500, 40, 60
BODY_S = 3.0
MORE_S = 0.25  #: promised: nobody is delayed by more
BUSY = 3  # a machine on which others compute


@pytest.fixture(scope="module")
def door(server_folder: Path) -> Iterator[World]:
    """A world that waits for a body for a short time; its files suffice for the idle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with World(server_folder / "door", workers=1, MEMORYD_BODY_TIMEOUT_S=f"{BODY_S:g}") as world:
        yield world
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def request(world: World, path: str, body: bytes, *, length: int | None = None) -> bytes:
    secret = next(iter(world.projects.values()))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token {secret}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


def connect(world: World) -> socket.socket:
    return socket.create_connection(("127.0.0.1", world.port), timeout=10)


def latencies(world: World, count: int = 30) -> list[float]:
    """Return how long lists and pings took, each of which has to succeed."""
    found = []
    with world.client() as client:
        for number in range(count):
            began = time.monotonic()
            if number % 2:
                answer = client.get("/v1/ping/")
            else:
                answer = client.post("/v3/memories/", json={"filters": {"user_id": "*"}})
            assert answer.status_code == 200
            found.append(time.monotonic() - began)
    return found


def test_idle_and_dripping_connections_delay_nobody(door: World) -> None:
    history = History(door)
    history.adds(range(4))
    before = statistics.median(latencies(door))
    add = request(door, "/v3/memories/add/", b'{"messages": "x"', length=5000)
    stop = threading.Event()
    with contextlib.ExitStack() as ending:
        idle = [ending.enter_context(connect(door)) for _ in range(IDLE)]
        heads = [ending.enter_context(connect(door)) for _ in range(DRIPPING)]
        bodies = [ending.enter_context(connect(door)) for _ in range(DRIPPING)]
        for one in bodies:
            one.sendall(add)

        def drip() -> None:
            while not stop.wait(0.1):
                for one in heads:
                    with contextlib.suppress(OSError):
                        one.sendall(b"X")
                for one in bodies:
                    with contextlib.suppress(OSError):
                        one.sendall(b" ")

        dripping = threading.Thread(target=drip)
        dripping.start()
        during = latencies(door)
        history.adds(range(4, 16))
        said = [one.recv(200) for one in bodies]
        stop.set()
        dripping.join()
        assert {part.split(b" ")[1] for part in said} == {b"408"}
        assert statistics.median(during) < before + MORE_S
        assert max(during) < BUSY * (max(before, 0.1) + MORE_S)
        assert len(idle) == IDLE
    history.check()
    assert not history.refused
    eventually(lambda: files(door) < 100, what=f"{files(door)} files")


def files(world: World) -> int:
    return len(list(Path(f"/proc/{world.api.child.pid}/fd").iterdir()))


def test_clients_that_leave_in_the_middle_of_a_search_hold_nothing(door: World) -> None:
    history = History(door)
    history.adds(range(4))
    history.check()
    asked = threading.Semaphore(0)
    go = threading.Event()

    def hang(_asked: object) -> None:
        asked.release()
        go.wait(20)

    door.brain.embed = hang
    body = json.dumps({"query": "anything at all", "filters": {"user_id": "*"}}).encode()
    for number in range(LEAVING):
        with connect(door) as one:
            one.sendall(request(door, "/v3/memories/search/", body.replace(b"anything", b"thing %d" % number)))
            if number == 0:
                assert asked.acquire(timeout=20)
    during = latencies(door, 10)
    assert statistics.median(during) < BUSY * (0.1 + MORE_S)
    door.brain.embed = lambda _asked: None
    go.set()
    with door.client() as client:
        assert client.post("/v3/memories/search/", json=json.loads(body)).status_code == 200
    eventually(lambda: files(door) < 60)
    idle = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memoryd' AND state <> 'idle' AND pid <> pg_backend_pid()"
    eventually(lambda: door.value(idle) == 0)
    more = History(door)
    more.adds(range(8))
    more.check()


def test_client_that_reads_nothing_costs_the_others_nothing(door: World) -> None:
    with door.client() as client:
        body = {
            "messages": [{"role": "user", "content": "x" * 20_000 + str(n)} for n in range(50)],
            "infer": False,
            "user_id": "big",
        }
        assert client.post("/v3/memories/add/", json=body).status_code == 200
    page = json.dumps({"filters": {"user_id": "big"}, "page_size": 100}).encode()
    with contextlib.ExitStack() as ending:
        for _ in range(20):
            one = ending.enter_context(connect(door))
            one.sendall(request(door, "/v3/memories/", page) * 3)  # answers of a megabyte that nobody takes
        assert statistics.median(latencies(door)) < BUSY * (0.1 + MORE_S)
    eventually(lambda: files(door) < 60)


def test_embedder_that_errs_in_a_search_is_a_refusal_that_says_when(door: World) -> None:
    door.brain.embed = lambda _asked: Reply(status=500)
    with door.client() as client:
        answer = client.post("/v3/memories/search/", json={"query": "new words", "filters": {"user_id": "*"}})
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    door.heal()
