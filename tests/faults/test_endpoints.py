"""Webhook endpoints that misbehave in every way, before a worker in a process of its own: nobody else notices."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.faults.history import History
from tests.faults.world import World, eventually
from tests.receiver import Receiver, Reply

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

ATTEMPTS = 4
TIMEOUT_S = 1.0
HUGE = 30 * 2**20

BAD: dict[str, Reply | list[Reply]] = {
    "hangs": Reply(hangs=True),
    "drips": Reply(headers={"Content-Length": str(2**30)}, drips=True),
    "breaks": Reply(500, b"no"),
    "moved": Reply(302),  # to an address that is filled in when it is known
    "huge": Reply(500, b"x" * HUGE),
    "gone": Reply(410, b"gone"),
    "busy": [Reply(429, b"", {"Retry-After": "2"}), Reply()],
    "nonsense": Reply(429, b"", {"Retry-After": "\xff soon"}),
}


@pytest.fixture(scope="module")
def town(server_folder: Path) -> Iterator[World]:
    """A world whose worker delivers to this machine, gives up soon, and can be lied to about names."""
    delays = ",".join(["0.2"] * (ATTEMPTS - 1))
    settings = {"MEMORYD_OUTBOUND_ALLOW_NETS": "127.0.0.0/8", "MEMORYD_WEBHOOK_DELAYS_S": delays}
    settings |= {"MEMORYD_WEBHOOK_TIMEOUT_S": f"{TIMEOUT_S:g}"}
    with World(server_folder / "town", workers=1, bent=True, **settings) as world:
        yield world


@pytest.fixture
def hooks(town: World) -> Iterator[World]:
    """Lend the world; remove its endpoints afterwards."""
    yield town
    town.heal()
    town.rows("DELETE FROM webhooks")


def endpoint(world: World, project: str, url: str) -> dict[str, Any]:
    hook = {"name": "one", "url": url, "event_types": ["memory_add"]}
    with world.client(project) as client:
        made = client.post(f"/api/v1/webhooks/projects/{project}/", json=hook)
    assert made.status_code == 201, made.text
    answer: dict[str, Any] = made.json()
    return answer


def deliveries(world: World, made: dict[str, Any]) -> list[dict[str, Any]]:
    return world.rows(
        "SELECT d.id, d.status, d.attempts, d.created_at, d.completed_at, w.is_active,"
        " extract(epoch FROM d.completed_at - d.created_at)::float8 AS took_s,"
        " (SELECT array_agg(a.status_code ORDER BY a.seq) FROM delivery_attempts a WHERE a.delivery_id = d.id) AS codes,"
        " (SELECT array_agg(a.error_code ORDER BY a.seq) FROM delivery_attempts a WHERE a.delivery_id = d.id) AS reasons,"
        " (SELECT max(length(a.response)) FROM delivery_attempts a WHERE a.delivery_id = d.id) AS answer_chars"
        " FROM deliveries d JOIN webhooks w ON w.project_id = d.project_id AND w.id = d.endpoint_id"
        " WHERE d.endpoint_id = $1 ORDER BY d.seq",
        made["webhook_id"],
    )


def ended(world: World, made: dict[str, Any], count: int) -> list[dict[str, Any]]:
    def all_of_them() -> list[dict[str, Any]]:
        found = deliveries(world, made)
        return found if len(found) == count and all(one["completed_at"] for one in found) else []

    return eventually(all_of_them, within_s=60, what=str(deliveries(world, made)))


def test_bad_endpoints_fail_by_the_rules_and_a_good_one_hears_everything_meanwhile(hooks: World) -> None:
    history, project = History(hooks, users=1), sorted(hooks.projects)[0]
    with Receiver(**BAD) as receiver:
        receiver.replies["moved"] = deque([Reply(302, b"", {"Location": receiver.url("inside")})])
        refused = socket.create_server(("127.0.0.1", 0))
        port = refused.getsockname()[1]
        refused.close()
        bad = {name: endpoint(hooks, project, receiver.url(name)) for name in BAD}
        bad["refused"] = endpoint(hooks, project, f"http://127.0.0.1:{port}/x")
        bad["no tls"] = endpoint(hooks, project, receiver.url("tls").replace("http:", "https:"))
        good = endpoint(hooks, project, receiver.url("good"))
        history.adds(range(0, 12, 2), threads=3)
        of_good = ended(hooks, good, 6)
        # Every bad one still has an attempt to come, or has been given up; the good one has long heard everything.
        assert {one["status"] for one in of_good} == {"SUCCEEDED"}
        assert [one["attempts"] for one in of_good] == [1] * 6
        history.check()
        gone(hooks, bad.pop("gone"))
        found = {name: ended(hooks, made, 6) for name, made in bad.items()}
        for name in ("hangs", "drips", "breaks", "moved", "huge", "nonsense", "refused", "no tls"):
            assert {(one["status"], one["attempts"]) for one in found[name]} == {("FAILED", ATTEMPTS)}, name
        assert {reason for one in found["hangs"] for reason in one["reasons"]} == {"outbound_unavailable"}
        assert {reason for one in found["no tls"] for reason in one["reasons"]} == {"outbound_unavailable"}
        assert {code for one in found["moved"] for code in one["codes"]} == {302}
        assert receiver.at("inside") == []
        assert {one["answer_chars"] for one in found["huge"]} == {1024}
        busy = found["busy"]
        assert {one["status"] for one in busy} == {"SUCCEEDED"}
        assert max(one["took_s"] for one in busy if one["codes"][0] == 429) >= 2
        assert max(one["took_s"] for one in of_good) < 20  # on a busy machine


def gone(world: World, made: dict[str, Any]) -> None:
    """Prove that an endpoint that says it is no more gets one delivery, and is switched off."""

    def off() -> list[dict[str, Any]]:
        found = deliveries(world, made)
        return found if found and not any(one["is_active"] for one in found) else []

    found = eventually(off)
    assert [one["status"] for one in found if one["codes"]][:1] == ["FAILED"]


def test_memory_of_a_worker_does_not_grow_with_what_endpoints_answer(hooks: World) -> None:
    project = sorted(hooks.projects)[0]
    with Receiver(huge=Reply(200, b"x" * HUGE)) as receiver:
        made = endpoint(hooks, project, receiver.url("huge"))
        History(hooks, users=1).adds([0])
        ended(hooks, made, 1)
        before = peak_mib(hooks)
        history = History(hooks, users=1)
        history.adds(range(0, 20, 2))
        ended(hooks, made, 11)
        assert peak_mib(hooks) - before < HUGE / 2**20


def peak_mib(world: World) -> float:
    nurse = world.workers[0].child.pid
    child = Path(f"/proc/{nurse}/task/{nurse}/children").read_text(encoding="utf-8").split()[0]
    text = Path(f"/proc/{child}/status").read_text(encoding="utf-8")
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def test_certificate_that_nobody_vouches_for_is_a_failure(hooks: World, tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl, which makes the certificate of this test, is not installed")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    project = sorted(hooks.projects)[0]
    with Receiver() as receiver:
        receiver._server.socket = context.wrap_socket(receiver._server.socket, server_side=True)
        one = endpoint(hooks, project, f"https://127.0.0.1:{receiver.port}/hook")
        History(hooks, users=1).adds([0])
        (found,) = ended(hooks, one, 1)
        assert (found["status"], set(found["reasons"])) == ("FAILED", {"outbound_unavailable"})
        assert receiver.requests == []


def test_rotated_secret_signs_beside_the_new_one_while_a_delivery_is_tried_again(hooks: World) -> None:
    project = sorted(hooks.projects)[0]
    with Receiver(hook=[Reply(500), Reply()]) as receiver:
        made = endpoint(hooks, project, receiver.url())
        seen = threading.Event()
        real = receiver._reply

        def reply(name: str) -> Reply:
            found = real(name)
            if not seen.is_set():  # rotated between the first attempt and the second
                with hooks.client(project) as client:
                    answer = client.post(f"/api/v1/webhooks/{made['webhook_id']}/secret/rotate/")
                made["new"] = answer.json()["secret"]
                seen.set()
            return found

        receiver._reply = reply  # type: ignore[method-assign]
        History(hooks, users=1).adds([0])
        ended(hooks, made, 1)
        first, second = receiver.at()
        assert first.id == second.id
        first.verify(made["secret"])
        for secret in (made["secret"], made["new"]):
            second.verify(secret)
        assert len(second.headers["webhook-signature"].split()) == 2
        with pytest.raises(Exception, match="No matching signature"):
            Webhook(made["new"]).verify(first.body, first.headers)


@pytest.mark.parametrize(
    "answers", [[["93.184.215.14"], ["127.0.0.1"]], [["93.184.215.14", "10.0.0.7"]]], ids=["then", "beside"]
)
def test_name_that_points_inside_a_moment_later_is_not_called_there(
    server_folder: Path, answers: list[list[str]]
) -> None:
    folder = server_folder / f"rebinding-{len(answers)}"
    with World(
        folder, workers=1, bent=True, MEMORYD_WEBHOOK_DELAYS_S="0.2,0.2,0.2", MEMORYD_WEBHOOK_TIMEOUT_S="2"
    ) as world:
        for program in world.programs:
            assert program.bend is not None
            (program.bend / "names").write_text(json.dumps({"rebind.example": answers}), encoding="utf-8")
        project = sorted(world.projects)[0]
        made = endpoint(world, project, "http://rebind.example/hook")
        history = History(world, users=1)
        history.adds(range(0, 8, 2))
        found = ended(world, made, 4)
        history.check()
        assert {one["status"] for one in found} == {"FAILED"}
        calls = {line for program in world.programs for line in sockets(program.bend)}
        assert {line for line in calls if line.endswith((" 80", " 443"))} <= {"93.184.215.14 80"}
        assert not [line for line in calls if line.startswith("10.")]
        if len(answers) > 1:
            assert {reason for one in found for reason in one["reasons"]} <= {
                "outbound_refused",
                "outbound_unavailable",
            }
            assert "outbound_refused" in {reason for one in found for reason in one["reasons"]}
        else:
            assert "93.184.215.14 80" in calls  # the test sees what is called


def sockets(folder: Path | None) -> list[str]:
    assert folder is not None
    try:
        return (folder / "sockets").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
