"""Servers and processes of one run: PostgreSQL, Valkey, the API, workers and the reference, thrown away at the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from app import config
from app.domain import access
from app.model import ProjectSettings
from app.queue import SilentQueue
from app.runtime import NoEmbedder, Runtime
from app.servers import process
from app.servers.postgres import PostgresServer
from app.servers.valkey import ValkeyServer
from app.store import db as databases
from app.store import migrate, orgs

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
START_S = 120.0  #: a process may take so long to be ready
_OURS = ("MEMORYD_", "DATABASE_URL", "REDIS_URL", "REFERENCE_")


class Program:
    """One process of the run."""

    def __init__(self, name: str, command: list[str], log: Path, env: dict[str, str], *, ready: str) -> None:
        self.name, self._command, self._env, self._ready = name, command, env, ready
        self.child = process.Child(name, log, death_signal=signal.SIGKILL)

    def start(self) -> Self:
        """Start it and wait for the words that say that it works."""
        self.child.spawn(self._command, env=self._env, cwd=str(ROOT))

        def ready() -> bool:
            said = self.child.log.read_text("utf-8", "replace") if self.child.log.exists() else ""
            return self._ready in said or not self.child.alive()

        process.wait_until(ready, timeout_s=START_S, tick=process.no_tick)
        if not self.child.alive():
            raise RuntimeError(f"{self.name} ended: {process.tail(self.child.log, 20)}")
        return self

    def stop(self) -> None:
        """End it."""
        self.child.end(signal.SIGTERM, timeout_s=15)

    @property
    def ended(self) -> list[datetime]:
        """When it has ended each event, by its log."""
        lines = self.child.log.read_text("utf-8", "replace").splitlines()
        return [datetime.fromisoformat(json.loads(line)["timestamp"]) for line in lines if '"event.processed"' in line]

    @property
    def rss_bytes(self) -> int:
        """Resident memory."""
        pages = Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Stage:
    """A context manager; every process listens on a port of its own on the loopback interface."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memoryd-speed-"))
        self.folder.chmod(0o711)
        self._ending = contextlib.ExitStack()
        self._settings = settings
        self._number = 0
        # With its defaults, fsync too: a commit that costs nothing would flatter nobody but us.
        self.postgres = PostgresServer(self.folder / "postgres", timeout_s=60)
        self.valkey = ValkeyServer(self.folder / "valkey", timeout_s=60)

    def __enter__(self) -> Self:
        self._ending.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            for server in (self.postgres, self.valkey):
                self._ending.callback(server.stop)
                server.start()
            self.key, self.other_key = run(self._prepare())
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    async def _prepare(self) -> tuple[str, str]:
        """Make the schema and two projects; return a key of each."""
        await migrate.migrate(self.postgres.dsn)
        db = await databases.Database.open(self.postgres.dsn, pool_size=2, statement_cache=0)
        rt = Runtime(config.load(data=self.folder), db, SilentQueue(), None, NoEmbedder())
        first = await access.bootstrap(rt)
        async with db.transaction(None) as conn:
            other = await orgs.insert_project(
                conn, first.project.organization_id, name="other", settings=ProjectSettings()
            )
        _, key = await access.create_key(rt, first.project, name="speed")
        _, other_key = await access.create_key(rt, other, name="speed")
        await db.close()
        return key, other_key

    def env(self, **changes: str) -> dict[str, str]:
        """Return the environment of a process of the service."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
            "DATABASE_URL": self.postgres.dsn,
            "REDIS_URL": self.valkey.url,
            "REFERENCE_DSN": self.postgres.dsn,
            "MEMORYD_DATA": str(self.folder),
            "MEMORYD_MAX_PENDING": "0",
            "OMP_NUM_THREADS": "1",
            **self._settings,
            **changes,
        }

    def program(self, name: str, arguments: list[str], *, ready: str, **env: str) -> Program:
        """Start a Python program of the run; it ends with the run."""
        self._number += 1
        log = self.folder / f"{self._number}-{name}.log"
        made = Program(name, [sys.executable, *arguments], log, self.env(**env), ready=ready)
        self._ending.callback(made.child.end, signal.SIGKILL, timeout_s=10)
        return made.start()

    def api(self, **env: str) -> tuple[Program, int]:
        """Start an API; return it and its port."""
        port = process.free_port()
        ready = "startup complete"
        made = self.program("api", ["-m", "app", "serve"], ready=ready, MEMORYD_PORT=str(port), **env)
        return made, _listening(port)

    def reference(self) -> tuple[Program, int]:
        """Start the reference; return it and its port."""
        port = process.free_port()
        command = ["-m", "uvicorn", "bench.reference_endpoints:app", "--port", str(port), "--no-access-log"]
        return self.program("reference", command, ready="startup complete"), _listening(port)

    def worker(self, kind: str = "steady", **env: str) -> Program:
        """Start a worker whose model and embedder are stubs, as `bench.stub_worker` has it."""
        return self.program(kind, ["-m", "bench.stub_worker", kind], ready="worker.started", **env)

    def value(self, sql: str, *args: Any) -> Any:
        """Return the only value of a query."""

        async def fetch() -> Any:
            conn = await databases.connect(self.postgres.dsn)
            try:
                return await conn.fetchval(sql, *args)
            finally:
                await conn.close()

        return run(fetch())


def _listening(port: int) -> int:
    """Return the port once it takes connections, which is a moment after the server says that it is ready."""

    def open_() -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", port)) == 0

    process.wait_until(open_, timeout_s=START_S, tick=process.no_tick)
    return port


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a loop of its own."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
