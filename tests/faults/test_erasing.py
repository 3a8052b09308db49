"""An owner is erased while adds run and webhooks are on their way: nothing of what was accepted before is left, anywhere."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from app.servers import binaries, process
from tests.faults.brain import message
from tests.faults.history import History
from tests.faults.world import World, eventually
from tests.receiver import Receiver, Reply

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def office(server_folder: Path) -> Iterator[World]:
    settings = {"MEMORYD_OUTBOUND_ALLOW_NETS": "127.0.0.0/8", "MEMORYD_WEBHOOK_DELAYS_S": ",".join(["0.5"] * 20)}
    with World(server_folder / "office", MEMORYD_WEBHOOK_TIMEOUT_S="2", **settings) as world:
        yield world


def dump(world: World) -> str:
    """Return everything that the database holds, as text."""
    tool = binaries.postgres(process.account("nobody")) / "pg_dump"
    done = subprocess.run([str(tool), "--data-only", "--inserts", world.postgres.dsn], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def test_what_was_accepted_before_is_nowhere_and_what_came_after_is_whole(office: World) -> None:
    project = sorted(office.projects)[0]
    user, name = f"user-{uuid4().hex}", uuid4().hex[:6]
    with (
        Receiver(hook=[Reply(500), Reply(hangs=True), *[Reply(500)] * 500]) as receiver,
        office.client(project) as client,
    ):
        hook = {"name": "one", "url": receiver.url(), "event_types": ["memory_add", "ingest_job_completed"]}
        assert client.post(f"/api/v1/webhooks/projects/{project}/", json=hook).status_code == 201
        others = History(office)
        thinking, go = threading.Event(), threading.Event()

        def add(number: int) -> None:
            body = {"messages": [{"role": "user", "content": message(f"mark-{name}-{number}")}], "user_id": user}
            answer = client.post("/v3/memories/add/", json=body, headers={"Idempotency-Key": f"{name}-{number}"})
            assert answer.status_code == 200, answer.text

        for number in range(6):
            add(number)
        eventually(lambda: receiver.requests)  # deliveries of the first are under way, and fail

        def slow(_asked: object) -> None:
            thinking.set()
            go.wait(10)

        office.brain.chat = slow
        for number in range(6, 14):
            add(number)
        others.adds(range(4))
        assert thinking.wait(20)
        letting = threading.Timer(1.0, go.set)
        letting.start()
        answer = client.delete(f"/v2/entities/user/{user}/", timeout=60)
        assert answer.status_code == 200, answer.text
        sent = len([one for one in receiver.requests if name.encode() in one.body])
        office.brain.behave()
        for number in range(100, 104):
            add(number)
        others.check()
        time.sleep(3)  # what would be sent again in vain would be sent now
        late = [one for one in receiver.requests if name.encode() in one.body][sent:]
        assert [one for one in late if not any(f"mark-{name}-10{n}".encode() in one.body for n in range(4))] == []
        office.rows("DELETE FROM webhooks")
    marks = {text for text in words_of(dump(office)) if text.startswith(f"mark-{name}-")}
    assert {mark.rstrip(".:'\\") for mark in marks} == {f"mark-{name}-10{number}" for number in range(4)}
    kept = office.value("SELECT count(*) FROM memories WHERE text LIKE $1", f"mark-{name}-%")
    assert kept == 4
    files = [path for path in office.valkey.data.rglob("*") if path.is_file()]  # all that was ever written to Redis
    held = "".join(path.read_bytes().decode("latin-1") for path in files)
    logs = "".join("\n".join(program.history) for program in office.programs)
    for number in range(14):
        assert f"mark-{name}-{number} " not in held + logs
    assert user not in held + logs


def words_of(text: str) -> set[str]:
    """Return the words of a dump."""
    for mark in ('"', "'", ",", "(", ")", ":", "\\n"):
        text = text.replace(mark, " ")
    return set(text.split())
