"""All in one: the embedded servers, the schema, the first key, the API and the worker, under one supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

import app
from app import config, errors
from app.cli import addresses, health, keys, notice, single, supervisor
from app.config import Settings
from app.servers import process
from app.servers.postgres import PostgresServer
from app.servers.valkey import ValkeyServer
from app.store import migrate

START_S = 300.0  #: the API and the worker may take so long to be ready; a busy machine is slow
API_STOP_S = 20.0  #: requests under way may take so long once we stop
_PORT_S = 3.0  #: a predecessor that was killed may hold the port for a moment


def run(settings: Settings, *, stop_with_parent: bool = False) -> int:
    """Start everything, keep it running until a signal comes, and stop it in order. Returns the exit code.

    Raises: SetupError with one line that says what to do.
    """
    parent = _tie_to_parent() if stop_with_parent else None
    settings = settings.model_copy(update={"data": settings.data.absolute()})
    url = addresses.local_url(settings)
    process.make_folder(settings.data, mode=0o711 if os.geteuid() == 0 else 0o700)
    with single.alone(settings.data, base_url=url), supervisor.Supervisor(_say, parent=parent) as watched:
        connection = settings.data / "connection.json"
        connection.unlink(missing_ok=True)
        try:
            _All(settings, url, watched).start(connection)
            watched.watch()
        except supervisor.Stopped:
            _say("Stopping: worker, API, queue, database …")
        finally:
            connection.unlink(missing_ok=True)
    _say("Stopped.")
    return 0


def _tie_to_parent() -> int:
    """Have SIGTERM sent to us when our parent ends, and return its process id."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
    return parent


class _All:
    """One start, step by step."""

    def __init__(self, settings: Settings, url: str, watched: supervisor.Supervisor) -> None:
        self._settings = settings
        self._url = url
        self._watched = watched
        self._logs = settings.data / "logs"

    def start(self, connection: Path) -> None:
        """Run all steps; the operator sees a line for each."""
        _say(f"Starting memoryd on {self._settings.data}")
        self._require_port()
        process.make_folder(self._logs)
        self._start_database()
        self._start_queue()
        with _step("Schema"):
            self._watched.run(migrate.migrate(self._dsn()))
        secret, first = self._watched.run(keys.open_door(self._settings))
        try:
            self._start_programs()
        except BaseException:
            if first:
                _say(f"The first API key was made: {secret}  (shown only this once; keep it)")
            raise
        process.write_private(connection, json.dumps({"base_url": self._url, "api_key": secret}) + "\n")
        shown = self._settings.public_url or self._url
        _say(notice.ready(self._settings, url=shown.rstrip("/"), secret=secret, first=first))

    def _dsn(self) -> str:
        if self._settings.database_url is None:
            raise errors.SetupError
        return self._settings.database_url.get_secret_value()

    def _require_port(self) -> None:
        """Find out before anything starts whether the API can listen."""
        host, port = self._settings.host, self._settings.port
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except (socket.gaierror, UnicodeError) as error:
            raise errors.SetupError(f"MEMORYD_HOST: {host!r} is not an address of this machine: {error}") from error
        problem: list[OSError] = []

        def free() -> bool:
            problem.clear()
            try:
                with socket.socket(family, kind, protocol) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(address)
            except OSError as error:
                problem.append(error)
            return not problem

        if not process.wait_until(free, timeout_s=_PORT_S, tick=self._watched.tick):
            why = problem[0].strerror or str(problem[0])
            wrong_host = problem[0].errno == errno.EADDRNOTAVAIL
            hint = "MEMORYD_HOST chooses another address" if wrong_host else "MEMORYD_PORT chooses another port"
            raise errors.SetupError(f"cannot listen on {host}, port {port}: {why}; {hint}")

    def _start_database(self) -> None:
        if self._settings.database_url is not None:
            return
        folder = self._settings.data / "postgres"
        connections = max(100, 2 * self._settings.db_pool_size + 20)  # the API, the worker, and commands beside them
        server = PostgresServer(
            folder,
            user=self._settings.server_user,
            log=self._logs / "postgres.log",
            tick=self._watched.tick,
            settings={"max_connections": str(connections)},
        )
        with _step("PostgreSQL" if server.data.exists() else "PostgreSQL, with a new database"):
            server.start()
        self._watched.add(server)
        self._settings = self._settings.model_copy(update={"database_url": SecretStr(server.dsn)})

    def _start_queue(self) -> None:
        if self._settings.redis_url is not None:
            return
        folder = self._settings.data / "valkey"
        server = ValkeyServer(
            folder, user=self._settings.server_user, log=self._logs / "valkey.log", tick=self._watched.tick
        )
        with _step("Valkey"):
            server.start()
        self._watched.add(server)
        self._settings = self._settings.model_copy(update={"redis_url": SecretStr(server.url)})

    def _start_programs(self) -> None:
        """Start the API and the worker together, since both load the embedder, and wait for both."""
        with _step("API and worker"):
            api = self._spawn("serve", "api", timeout_s=API_STOP_S)
            worker = self._spawn("worker", "worker", timeout_s=self._settings.drain_s + 10)
            self._await(api, lambda: health.answers(f"{self._url}/readyz"))
            self._await(worker, lambda: self._watched.run(health.works(self._dsn(), worker.child.pid)))

    def _spawn(self, command: str, name: str, *, timeout_s: float) -> supervisor.Program:
        redis = self._settings.redis_url
        env = config.environment(
            MEMORYD_DATA=str(self._settings.data),
            MEMORYD_DATABASE_URL=self._dsn(),
            MEMORYD_REDIS_URL=redis.get_secret_value() if redis else "",
            PYTHONUNBUFFERED="1",
        )
        # Killed at once when we are: the database goes down with us, and the leases of a worker end by themselves.
        child = process.Child(name, self._logs / f"{name}.log", death_signal=signal.SIGKILL)
        root = str(Path(app.__file__).parents[1])
        program = supervisor.Program(
            child, [sys.executable, "-m", "app", command], env=env, cwd=root, timeout_s=timeout_s
        )
        self._watched.add(program)
        program.spawn()
        return program

    def _await(self, service: supervisor.Service, ready: supervisor.Check) -> None:
        child = service.child
        done = process.wait_until(lambda: not child.alive() or ready(), timeout_s=START_S, tick=self._watched.tick)
        if not child.alive():
            why = process.tail(child.log, 1).removeprefix("memoryd: ")
            raise errors.SetupError(
                f"the {child.name} ended at its start ({supervisor.ending(child)}): {why}. See {child.log}"
            )
        if not done:
            raise errors.SetupError(f"the {child.name} is not ready after {START_S:.0f} s. See {child.log}")


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    """Show that a step goes on, and how long it took."""
    started = time.monotonic()
    _write(f"  {name} … ")
    try:
        yield
    except BaseException:
        _write("\n")
        raise
    _write(f"{time.monotonic() - started:.1f} s\n")


def _say(line: str) -> None:
    _write(line + "\n")


def _write(text: str) -> None:
    # Whoever read our output may be gone; that is no reason to end a service.
    with contextlib.suppress(OSError):
        sys.stdout.write(text)
        sys.stdout.flush()
