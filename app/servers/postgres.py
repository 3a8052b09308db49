"""Embedded PostgreSQL with pgvector: the programs of a wheel, under our own supervision."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app import errors
from app.servers import binaries, process, server

MAJOR = "18"  #: of the pinned wheel; data folders of another major version cannot be opened
NAME = "memoryd"  #: of the database and of its owner
_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a socket's path may have 107 characters, a data folder's more
    "log_checkpoints": "off",
    "cluster_name": NAME,
}
_INITDB = (
    f"--username={NAME}",
    "--encoding=UTF8",
    # With the locale C, pg_trgm and lower() would not see any letter but ASCII's.
    "--locale=C.UTF-8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--auth=scram-sha-256",
    "--data-checksums",
)


class PostgresServer(server.Server):
    """PostgreSQL, listening on the loopback interface, with one database called `memoryd`."""

    name = "postgres"
    death_signal = signal.SIGINT  # the fast shutdown: ends all sessions and leaves clean data behind
    hasty_signal = signal.SIGQUIT  # the immediate one: the next start recovers
    port_taken = "could not bind"

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None, **options: Any) -> None:
        """`settings`: further ones of PostgreSQL, such as `{"fsync": "off"}` for tests; `options` as in Server."""
        super().__init__(folder, **options)
        self._settings = {**_SETTINGS, **(settings or {})}

    @property
    def dsn(self) -> str:
        """Address of the database, with its password; valid once started."""
        return _dsn(self.password, self.port)

    def start(self) -> None:
        """Start and wait until the database `memoryd` accepts connections; makes everything that is missing.

        Raises: SetupError with one line that says what to do.
        """
        super().start()
        self._create_database()

    def prepare(self) -> None:
        """Find the programs; make the data folder at the first start; refuse one that cannot be opened."""
        self._bin = binaries.postgres(self.who)
        if not self.data.exists():
            self._init()
        process.own(self.data, self.who)
        self._check_version()
        self._await_predecessor()

    def spawn(self) -> None:
        """Start the process at `port` and return at once."""
        options = [f"--{name}={value}" for name, value in {**self._settings, "port": str(self.port)}.items()]
        with process.handed(self.data, self.who) as (name, descriptors):
            command = [str(self._bin / "postgres"), "-D", name, *options]
            self.child.spawn(command, env=_ENV, who=self.who, pass_fds=descriptors)

    def ready(self) -> bool:
        """True when it accepts connections."""
        return self._tool("pg_isready", "-q", "-t", "5").returncode == 0

    def _init(self) -> None:
        """Make the data folder under another name first, so that a crash meanwhile leaves nothing half-made."""
        draft = Path(tempfile.mkdtemp(prefix="new-", dir=self.folder))
        if self.who:
            os.chown(draft, self.who.uid, self.who.gid)
        child = process.Child("initdb", self.child.log, death_signal=signal.SIGKILL)
        extra = ["--no-sync"] if self._settings.get("fsync") == "off" else []
        with (
            process.handed(draft, self.who) as (name, descriptors),
            process.readable(self.password, self.who) as secret,
        ):
            command = [str(self._bin / "initdb"), "-D", name, f"--pwfile=/proc/self/fd/{secret}", *_INITDB, *extra]
            child.spawn(command, env=_ENV, who=self.who, pass_fds=(*descriptors, secret))
        try:
            process.wait_until(lambda: not child.alive(), timeout_s=self._timeout_s, tick=self._tick)
            if child.code != 0:
                raise errors.SetupError(f"cannot make the database: {process.tail(child.log)}; see {child.log}")
            draft.rename(self.data)
        finally:
            child.end(signal.SIGTERM, timeout_s=10)
            shutil.rmtree(draft, ignore_errors=True)

    def _check_version(self) -> None:
        found = (self.data / "PG_VERSION").read_text(encoding="utf-8").strip()
        if found != MAJOR:
            raise errors.SetupError(
                f"{self.data} was made by PostgreSQL {found}, and this release of memoryd carries {MAJOR}; nothing was changed. "
                "Start the release that made it, save the data with pg_dump, move the folder away, and restore into a new one"
            )

    def _await_predecessor(self) -> None:
        """Wait for a server that is still ending, and drop the lock of one that went down with its machine."""
        lock = self.data / "postmaster.pid"

        def gone() -> bool:
            pid = server.number(lock)
            return pid is None or not _is_postgres(pid)

        if not process.wait_until(gone, timeout_s=60, tick=self._tick):
            raise errors.SetupError(
                f"{self.data} is in use by another PostgreSQL, process {server.number(lock)}: stop it first"
            )
        # PostgreSQL would only see that *some* process has that number by now, and refuse.
        lock.unlink(missing_ok=True)

    def _create_database(self) -> None:
        made = self.folder / "made"
        if made.exists():
            return
        done = self._tool("createdb", "--maintenance-db=postgres", NAME)
        if done.returncode != 0 and "already exists" not in done.stderr:
            self.stop()
            raise errors.SetupError(f"cannot create the database: {done.stderr.strip()}; see {self.child.log}")
        made.touch()

    def _tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", NAME]
        env = {**_ENV, "PGPASSWORD": self.password}
        return subprocess.run([self._bin / name, *where, *arguments], capture_output=True, text=True, env=env, cwd="/")


def running_dsn(folder: Path) -> str | None:
    """Return the address of the server that runs in `folder`, or None when none answers there."""
    port = server.running_port(folder)
    return None if port is None else _dsn(process.password(folder / "password"), port)


def _dsn(password: str, port: int | None) -> str:
    return f"postgresql://{NAME}:{password}@127.0.0.1:{port}/{NAME}"


def _is_postgres(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "postgres"
    except OSError:
        return False
