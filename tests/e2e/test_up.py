"""`memoryd up`, the real command as a process: everything starts, works, and stops."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.servers import process

ROOT = Path(__file__).parents[2]
START_S = 240  # this machine may be busy with much else

pytestmark = pytest.mark.timeout(600)


class Running:
    """One `memoryd up`."""

    def __init__(self, data: Path, port: int) -> None:
        self.data = data
        self.port = port
        self.connection = data / "connection.json"
        self.output = data.parent / "output.txt"
        self.stale = self._connection_text()  # a killed one could not remove its own
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command("up"), env=environment(data, port), cwd=ROOT, stdout=output, stderr=output
            )

    def wait_ready(self) -> Running:
        assert process.wait_until(
            lambda: self._connection_text() not in ("", self.stale) or self.process.poll() is not None,
            timeout_s=START_S,
            tick=process.no_tick,
        )
        assert self.process.poll() is None, self.output.read_text()
        return self

    def _connection_text(self) -> str:
        try:
            return self.connection.read_text()
        except FileNotFoundError:
            return ""

    def client(self) -> httpx.Client:
        found = json.loads(self.connection.read_text())
        headers = {"Authorization": f"Token {found['api_key']}"}
        return httpx.Client(base_url=found["base_url"], headers=headers, timeout=60, trust_env=False)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command beside it, with nothing set but the data folder."""
        env = environment(self.data, self.port)
        return subprocess.run(command(*arguments), env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "app", *arguments]


def environment(data: Path, port: int) -> dict[str, str]:
    return {**os.environ, "MEMORYD_DATA": str(data), "MEMORYD_PORT": str(port)}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service for the tests that leave it running."""
    service = Running(tmp_path_factory.mktemp("up") / "data", process.free_port())
    try:
        yield service.wait_ready()
    finally:
        service.end()


def curl(line: str) -> dict[str, Any]:
    """Do what a pasted curl line does."""
    words = shlex.split(line)
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
    answer = httpx.post(
        words[2], headers=headers, content=words[words.index("-d") + 1].encode(), timeout=60, trust_env=False
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def finished(client: httpx.Client, event_id: str) -> dict[str, Any]:
    """Wait for the end of an event."""
    event: dict[str, Any] = {}

    def look() -> bool:
        event.update(client.get(f"/v1/event/{event_id}/").json())
        return event["status"] in ("SUCCEEDED", "FAILED")

    assert process.wait_until(look, timeout_s=120, tick=process.no_tick), event
    return event


def descendants(pid: int) -> set[int]:
    """Return the process ids below `pid`."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found, level = set(), {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found |= level
    return found


def exists(pid: int) -> bool:
    """True while the process runs; a dead one that nobody buried does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_the_printed_curl_lines_add_and_find(running: Running) -> None:
    text = running.output.read_text()
    add, search = (line.strip() for line in text.splitlines() if line.strip().startswith("curl "))
    with running.client() as client:
        event = finished(client, curl(add)["event_id"])
    assert event["status"] == "SUCCEEDED", event
    assert "peanuts" in json.dumps(curl(search))


def test_the_notice_says_where_everything_is(running: Running) -> None:
    text = running.output.read_text()
    found = json.loads(running.connection.read_text())
    assert running.connection.stat().st_mode & 0o777 == 0o600
    assert found["base_url"] == f"http://127.0.0.1:{running.port}"
    for part in (found["base_url"], found["api_key"], str(running.data), "MEMORYD_LLM_BASE_URL", "rules"):
        assert part in text


def test_a_second_up_on_the_same_data_says_which_one_runs(running: Running) -> None:
    second = running.run("up")
    assert second.returncode == 1
    assert f"process {running.process.pid}, at http://127.0.0.1:{running.port}" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    assert running.connection.exists()


def test_a_taken_port_is_one_line_that_names_the_setting(running: Running, tmp_path: Path) -> None:
    env = environment(tmp_path / "other", running.port)
    refused = subprocess.run(command("up"), env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 1
    assert "MEMORYD_PORT" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_keys_are_made_listed_and_revoked_beside_it(running: Running) -> None:
    secret = running.run("keys", "create", "--name", "laptop").stdout.strip()
    with running.client() as client:
        token = {"Authorization": f"Token {secret}"}
        assert client.get("/v1/ping/", headers=token).status_code == 200
        listed = running.run("keys", "list").stdout
        key_id = next(line.split()[0] for line in listed.splitlines() if "laptop" in line)
        assert secret not in listed
        assert running.run("keys", "revoke", key_id).returncode == 0
        assert process.wait_until(
            lambda: client.get("/v1/ping/", headers=token).status_code == 401, timeout_s=60, tick=process.no_tick
        )
    unknown = running.run("keys", "revoke", "nonsense")
    assert (unknown.returncode, len(unknown.stderr.splitlines())) == (1, 1)


def test_doctor_finds_all_well(running: Running) -> None:
    report = running.run("doctor")
    assert report.returncode == 0, report.stdout + report.stderr
    parts = [line.split()[1] for line in report.stdout.splitlines()]
    assert parts == ["database", "extensions", "migrations", "walls", "indexes", "redis", "model", "embedder"]


def test_doctor_says_what_to_do_without_a_database(tmp_path: Path) -> None:
    env = environment(tmp_path, process.free_port())
    report = subprocess.run(command("doctor"), env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert report.returncode == 1
    assert "memoryd up" in report.stdout.splitlines()[0]


def test_healthchecks_follow_the_programs(running: Running) -> None:
    assert running.run("healthcheck").returncode == 0
    assert running.run("healthcheck", "--worker").returncode == 0


def test_a_crashed_program_is_started_again(running: Running) -> None:
    victims = [
        pid for pid in descendants(running.process.pid) if runs(pid, "app", "worker") or runs(pid, "bin/postgres", "-D")
    ]
    assert len(victims) == 2
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    with running.client() as client:
        body = {"user_id": "bob", "messages": [{"role": "user", "content": "My bicycle is green."}]}

        def accepted() -> bool:
            return client.post("/v3/memories/add/", json=body).status_code == 200

        assert process.wait_until(accepted, timeout_s=120, tick=process.no_tick)
        question = {"query": "bicycle", "filters": {"user_id": "bob"}}

        def found() -> bool:
            return "green" in client.post("/v3/memories/search/", json=question).text

        assert process.wait_until(found, timeout_s=120, tick=process.no_tick)
    assert "ended (by SIGKILL); starting it again" in running.output.read_text()


def runs(pid: int, *words: str) -> bool:
    """True when `words` stand together in the command of a process."""
    try:
        return "\0".join(words).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_data_outlives_a_stop_and_a_kill_that_leaves_no_process_behind(tmp_path: Path) -> None:
    data, port = tmp_path / "data", process.free_port()
    question = {"query": "Where does Carol live?", "filters": {"user_id": "carol"}}
    with ExitStack() as cleanup:
        first = Running(data, port)
        cleanup.callback(first.end)
        with first.wait_ready().client() as client:
            body = {"user_id": "carol", "messages": [{"role": "user", "content": "I live in Porto."}]}
            assert finished(client, client.post("/v3/memories/add/", json=body).json()["event_id"])["results"]
        key = json.loads(first.connection.read_text())["api_key"]
        family = descendants(first.process.pid)
        assert first.end() == 0
        assert not first.connection.exists()
        assert not [pid for pid in family if exists(pid)]
        assert "worker.stopped" in process.tail(data / "logs" / "worker.log", 1)
        assert "database system is shut down" in process.tail(data / "logs" / "postgres.log", 1)

        second = Running(data, port)
        cleanup.callback(second.end)
        with second.wait_ready().client() as client:
            assert "Porto" in client.post("/v3/memories/search/", json=question).text
            assert client.get("/v1/ping/", headers={"Authorization": f"Token {key}"}).status_code == 200
        assert key not in second.output.read_text()
        family = descendants(second.process.pid)
        assert len(family) > 5
        second.end(signal.SIGKILL)
        assert process.wait_until(lambda: not any(map(exists, family)), timeout_s=60, tick=process.no_tick)
        assert second.connection.exists()

        third = Running(data, port)
        cleanup.callback(third.end)
        with third.wait_ready().client() as client:
            assert "Porto" in client.post("/v3/memories/search/", json=question).text
