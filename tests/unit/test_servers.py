"""The embedded servers and the processes that they are."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import errors
from app.servers import binaries, process
from app.servers.postgres import PostgresServer, running_dsn
from app.servers.valkey import ValkeyServer, running_url
from app.store import db as databases

ROOT = os.geteuid() == 0
NOBODY = "nobody"


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server below pytest's folders, which are closed to the unprivileged user."""
    server = PostgresServer(tmp_path / "postgres", user=NOBODY, settings={"fsync": "off"})
    yield server
    server.stop()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path / "valkey", user=NOBODY)
    yield server
    server.stop()


def wait_for(check: Callable[[], bool]) -> None:
    assert process.wait_until(check, timeout_s=60, tick=process.no_tick)


async def run(dsn: str, sql: str) -> object:
    conn = await databases.connect(dsn, wait_s=30)
    try:
        return await conn.fetchval(sql)
    finally:
        await conn.close()


def ask(server: ValkeyServer, command: str) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port or 0), timeout=10) as connection:
        connection.sendall(f"AUTH {server.password}\r\n{command}\r\n".encode())
        answer = b""
        while answer.count(b"\n") < 2:
            answer += connection.recv(1024)
        return answer.split(b"\n", 1)[1]


async def test_database_keeps_its_rows_through_a_stop_and_a_crash(postgres: PostgresServer) -> None:
    postgres.start()
    assert running_dsn(postgres.folder) == postgres.dsn
    await run(postgres.dsn, "CREATE EXTENSION vector")
    await run(postgres.dsn, "CREATE TABLE kept AS SELECT 7 AS number")
    postgres.stop()
    assert running_dsn(postgres.folder) is None

    postgres.start()
    os.kill(postgres.child.pid or 0, signal.SIGKILL)
    wait_for(lambda: not postgres.child.alive())
    postgres.start()
    assert await run(postgres.dsn, "SELECT number FROM kept") == 7


async def test_database_sees_letters_beyond_ascii_and_guards_its_pages(postgres: PostgresServer) -> None:
    postgres.start()
    assert await run(postgres.dsn, "SELECT lower('ÄÖЖ') || upper('é')") == "äöжÉ"
    assert await run(postgres.dsn, "SHOW data_checksums") == "on"


async def test_database_wants_its_password_and_keeps_it_private(postgres: PostgresServer) -> None:
    postgres.start()
    secret = postgres.folder / "password"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert len(postgres.password) >= 32
    with pytest.raises(errors.SetupError, match="password"):
        await databases.connect(postgres.dsn.replace(postgres.password, "wrong"))


def test_data_of_another_major_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "postgres", user=NOBODY)
    process.make_folder(server.folder)
    process.own(server.data, process.account(NOBODY))
    (server.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(errors.SetupError, match=r"made by PostgreSQL 17.*carries 18.*nothing was changed"):
        server.start()
    assert [path.name for path in server.data.iterdir()] == ["PG_VERSION"]


@pytest.mark.skipif(not ROOT, reason="only root can make files of another user")
def test_data_of_another_user_is_refused(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "postgres", user=NOBODY)
    process.make_folder(server.folder)
    server.data.mkdir()
    with pytest.raises(errors.SetupError, match="belongs to root, not to nobody"):
        server.start()


def test_queue_keeps_its_keys_through_a_stop(valkey: ValkeyServer) -> None:
    valkey.start()
    assert running_url(valkey.folder) == valkey.url
    assert ask(valkey, "SET bell rung") == b"+OK\r\n"
    valkey.stop()
    assert running_url(valkey.folder) is None
    valkey.start()
    assert ask(valkey, "GET bell").startswith(b"$4")


def test_queue_wants_its_password_and_does_not_show_it(valkey: ValkeyServer) -> None:
    valkey.start()
    with socket.create_connection(("127.0.0.1", valkey.port or 0), timeout=10) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(100).startswith(b"-NOAUTH")
    arguments = Path(f"/proc/{valkey.child.pid}/cmdline").read_bytes()
    assert valkey.password.encode() not in arguments


@pytest.mark.skipif(not ROOT, reason="an ordinary user's servers run as that user")
def test_servers_of_root_run_without_privileges(valkey: ValkeyServer) -> None:
    valkey.start()
    assert Path(f"/proc/{valkey.child.pid}").stat().st_uid == process.account(NOBODY).uid  # type: ignore[union-attr]


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    text = (
        "import pathlib, sys, time\n"
        "from app.servers import process\n"
        "child = process.Child('sleeper', pathlib.Path(sys.argv[1]) / 'log')\n"
        "child.spawn(['/bin/sleep', '300'], env={})\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(300)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    with parent:
        assert parent.stdout
        orphan = int(parent.stdout.readline())
        parent.kill()
    wait_for(lambda: not Path(f"/proc/{orphan}").exists() or "Z" in Path(f"/proc/{orphan}/stat").read_text())


def test_child_that_ignores_a_signal_is_killed(tmp_path: Path) -> None:
    child = process.Child("stubborn", tmp_path / "log")
    child.spawn(
        ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], env={"PATH": "/bin:/usr/bin"}
    )
    wait_for(lambda: "ready" in process.tail(child.log))
    started = time.monotonic()
    child.end(signal.SIGTERM, timeout_s=0.2)
    assert child.code == -signal.SIGKILL
    assert time.monotonic() - started < 10


def test_hurry_cuts_a_wait_short(tmp_path: Path) -> None:
    child = process.Child("stubborn", tmp_path / "log")
    child.spawn(
        ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], env={"PATH": "/bin:/usr/bin"}
    )
    wait_for(lambda: "ready" in process.tail(child.log))
    child.end(signal.SIGTERM, timeout_s=60, hasten=lambda: True)
    assert child.code == -signal.SIGKILL


def test_long_logs_are_moved_aside_while_they_are_written(tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    with log.open("ab") as writer:
        writer.write(b"old\n" * 100)
        writer.flush()
        process.trim_log(log, limit_bytes=100)
        writer.write(b"new\n")
    assert log.read_bytes() == b"new\n"
    assert (tmp_path / "some.log.1").read_bytes() == b"old\n" * 100


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert process.free_port(port) != port


@pytest.mark.skipif(not ROOT, reason="only root changes users")
@pytest.mark.parametrize(("user", "text"), [("no-such-user", "no user"), ("root", "without privileges")])
def test_a_user_that_cannot_run_servers_is_refused(user: str, text: str) -> None:
    with pytest.raises(errors.SetupError, match=f"MEMORYD_SERVER_USER.*{text}"):
        process.account(user)


@pytest.mark.skipif(not ROOT, reason="only root needs copies")
def test_copied_programs_can_be_read_by_everybody(tmp_path: Path) -> None:
    base = tmp_path / "closed"
    (base / "bin").mkdir(parents=True)
    program = base / "bin" / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    (base / "bin").chmod(0o700)
    target = tmp_path / "open" / "servers" / "some-1.0"
    for _ in range(2):
        binaries._copy(base, target, [base / "bin"])
    assert (target / "bin" / "program").stat().st_mode & 0o777 == 0o755
    assert [path.stat().st_mode & 0o001 for path in (target, target / "bin")] == [1, 1]
    assert [path.name for path in target.parent.iterdir()] == ["some-1.0"]
