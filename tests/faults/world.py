"""The real service as processes, on servers and a network that break when they are told to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

import httpx

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
from tests.faults.brain import Brain
from tests.faults.proxy import Proxy

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
START_S = 120  # a process starts slowly while others compute
LEASE_S = 2.0
SETTINGS = {
    "MEMORYD_LEASE_S": f"{LEASE_S:g}",
    "MEMORYD_SWEEP_S": "0.5",
    "MEMORYD_DRAIN_S": "1",  # shorter than any call of a model, so that it decides
    # Enough attempts for any number of faults; poison has a test with few.
    "MEMORYD_RETRY_DELAYS_S": ",".join(["0.2"] * 60),
    "MEMORYD_LLM_TIMEOUT_S": "3",
    "MEMORYD_EMBEDDER_TIMEOUT_S": "3",
    "MEMORYD_DB_POOL_SIZE": "6",
    "OMP_NUM_THREADS": "1",
}
POSTGRES = {"fsync": "off", "max_connections": "60", "max_wal_size": "64MB", "min_wal_size": "32MB"}


def eventually(holds: Callable[[], T], *, within_s: float = 30.0, what: str = "") -> T:
    """Return what `holds` returns once that is true; fail after `within_s`."""
    found: list[T] = []

    def look() -> bool:
        found[:] = [holds()]
        return bool(found[0])

    assert process.wait_until(look, timeout_s=within_s, tick=process.no_tick), what or f"not within {within_s} s"
    return found[0]


class Program:
    """One process of the service."""

    def __init__(self, name: str, command: str, log: Path, env: dict[str, str], *, bend: Path | None = None) -> None:
        """`bend`: the folder from which it is told of the faults that are built into it; None: as it is released."""
        self.name, self._command, self.env, self.bend = name, command, env, bend
        self.child = process.Child(name, log, death_signal=signal.SIGKILL)
        self._log_from = 0

    @property
    def log(self) -> str:
        """What it has said since its latest start."""
        return self.child.log.read_bytes()[self._log_from :].decode("utf-8", "replace")

    @property
    def history(self) -> list[str]:
        """The lines of all its lives."""
        return self.child.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def spawn(self) -> None:
        """Start it and return at once."""
        self._log_from = self.child.log.stat().st_size if self.child.log.exists() else 0
        module = "tests.faults.bent" if self.bend else "app"
        told = {"FAULTS_BEND": str(self.bend)} if self.bend else {}
        self.child.spawn([sys.executable, "-m", module, self._command], env=self.env | told, cwd=str(ROOT))

    def await_ready(self) -> None:
        """Wait until it works."""
        word = "worker.started" if self._command == "worker" else "startup complete"
        eventually(lambda: word in self.log or self.child.code is not None, within_s=START_S, what=self.name)
        assert self.child.alive(), self.log[-2000:]

    def start(self) -> None:
        """Start it and wait until it works."""
        self.spawn()
        self.await_ready()

    def kill(self) -> None:
        """End it as a power cut does."""
        self.child.end(signal.SIGKILL, timeout_s=10)

    def end(self) -> int | None:
        """End it as an operator does; return its exit code."""
        self.child.end(signal.SIGTERM, timeout_s=30)
        return self.child.code


class World:
    """PostgreSQL, Valkey, a model that obeys, proxies before all of them, an API and some workers."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        apis: int = 1,
        bent: bool = False,
        postgres_folder: Path | None = None,
        postgres: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        """`bent`: its processes can be told to be faulty. `postgres`: further settings of that server."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)
        self.folder = folder
        self._bent, self._api_count = bent, apis
        self._settings = {**SETTINGS, **settings}
        self._ending = contextlib.ExitStack()
        self._count = workers
        self.postgres = PostgresServer(
            postgres_folder or folder / "postgres",
            settings={**POSTGRES, **(postgres or {})},
            port=process.free_port(),
            timeout_s=60,
        )
        self.valkey = ValkeyServer(folder / "valkey", port=process.free_port(), timeout_s=60)
        self.brain = Brain()

    def __enter__(self) -> Self:
        try:
            return self._start()
        except BaseException:
            self._ending.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def _start(self) -> Self:
        enter, later = self._ending.enter_context, self._ending.callback
        enter(self.brain.stub)
        later(self.postgres.stop)
        self.postgres.start()
        later(self.valkey.stop)
        self.valkey.start()
        self.api_db, self.worker_db = (enter(Proxy(urlsplit(self.postgres.dsn).port or 0)) for _ in range(2))
        self.redis = enter(Proxy(urlsplit(self.valkey.url).port or 0))
        self.model = enter(Proxy(urlsplit(self.brain.stub.url).port or 0))
        self.projects = self.run(self._prepare())
        self.ports = [process.free_port() for _ in range(self._api_count)]
        self.apis = [self._program("api", "serve", self._env(self.api_db, port)) for port in self.ports]
        names = [f"worker{number}" for number in range(1, self._count + 1)]
        self.workers = [self._program(name, "worker", self._env(self.worker_db, self.port)) for name in names]
        for program in self.programs:
            later(program.kill)
            program.spawn()
        for program in self.programs:
            program.await_ready()
        return self

    @property
    def api(self) -> Program:
        """The first API."""
        return self.apis[0]

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.ports[0]

    @property
    def programs(self) -> tuple[Program, ...]:
        """Every process of ours."""
        return (*self.apis, *self.workers)

    def _program(self, name: str, command: str, env: dict[str, str]) -> Program:
        bend = self.folder / f"bend-{name}-{env['MEMORYD_PORT']}" if self._bent else None
        if bend:
            bend.mkdir()
        return Program(name, command, self.folder / f"{name}-{env['MEMORYD_PORT']}.log", env, bend=bend)

    def _env(self, database: Proxy, port: int) -> dict[str, str]:
        ours = ("MEMORYD_", "DATABASE_URL", "REDIS_URL")
        model = _at(self.brain.stub.url, self.model.port)
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "DATABASE_URL": _at(self.postgres.dsn, database.port),
            "REDIS_URL": _at(self.valkey.url, self.redis.port),
            "MEMORYD_DATA": str(self.folder),
            "MEMORYD_PORT": str(port),
            "MEMORYD_LLM_BASE_URL": model,
            "MEMORYD_LLM_MODEL": "brain",
            "MEMORYD_EMBEDDER_BASE_URL": model,
            "MEMORYD_EMBEDDER_MODEL": "brain-32",
            **self._settings,
        }

    async def _prepare(self) -> dict[str, str]:
        """Make the schema and two projects; return the key of each."""
        await migrate.migrate(self.postgres.dsn)
        db = await databases.Database.open(self.postgres.dsn, pool_size=2, statement_cache=0)
        rt = Runtime(config.load(data=self.folder), db, SilentQueue(), None, NoEmbedder())
        first = await access.bootstrap(rt)
        async with db.transaction(None) as conn:
            other = await orgs.insert_project(
                conn, first.project.organization_id, name="other", settings=ProjectSettings()
            )
        found = {}
        for project in (first.project, other):
            _, secret = await access.create_key(rt, project, name="faults")
            found[project.public_id] = secret
        await db.close()
        return found

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, in a loop of its own."""
        with asyncio.Runner() as runner:
            return runner.run(work)

    # The API

    def client(
        self, project: str | None = None, *, timeout_s: float = 30.0, api: int = 0, secret: str | None = None
    ) -> httpx.Client:
        """Return a client of an API with the key of a project, the first one if none is named, or with `secret`."""
        secret = secret or self.projects[project or next(iter(self.projects))]
        headers = {"Authorization": f"Token {secret}"}
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.ports[api]}", headers=headers, timeout=timeout_s, trust_env=False
        )

    def ready(self) -> dict[str, Any]:
        """Return what /readyz says."""
        with self.client() as client:
            answer: dict[str, Any] = client.get("/readyz").json()
        return answer

    # The database, past every proxy

    def rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        return self.rows_of(self.postgres.dsn, sql, *args)

    def rows_of(self, dsn: str, sql: str, *args: Any) -> list[dict[str, Any]]:
        """Return the rows of a query in another database."""

        async def fetch() -> list[dict[str, Any]]:
            conn = await databases.connect(dsn, wait_s=30)
            try:
                return [dict(row) for row in await conn.fetch(sql, *args)]
            finally:
                await conn.close()

        return self.run(fetch())

    def value(self, sql: str, *args: Any) -> Any:
        """Return the only value of a query."""
        return next(iter(self.rows(sql, *args)[0].values()))

    # Breaking things

    def heal(self) -> None:
        """Put everything back in order that a test left broken."""
        self.brain.behave()
        for proxy in (self.api_db, self.worker_db, self.redis, self.model):
            proxy.trap = None
            proxy.set("pass")
        for server in (self.postgres, self.valkey):
            server.child.send(signal.SIGCONT)
            if not server.child.alive():
                server.start()
        for program in self.programs:
            program.child.send(signal.SIGCONT)
            if not program.child.alive():
                program.spawn()
        for program in self.programs:
            program.await_ready()

    def kill_postgres(self) -> None:
        """Kill its first process; the others see that and end."""
        self.postgres.child.end(signal.SIGKILL, timeout_s=10)

    def revive_postgres(self) -> None:
        """Start it again after a kill or a stop, at its former port."""
        self.postgres.start()

    def stop_redis(self) -> None:
        """End it at once."""
        self.valkey.child.end(signal.SIGKILL, timeout_s=10)

    def revive_redis(self) -> None:
        """Start it again at its former port."""
        self.valkey.start()

    def redis_says(self, *words: str) -> Any:
        """Return Redis' answer to one command, past the proxy."""
        import redis

        with redis.Redis.from_url(self.valkey.url, socket_timeout=5, decode_responses=True) as connection:
            return connection.execute_command(*words)

    @contextlib.contextmanager
    def frozen(self, program: Program | PostgresServer | ValkeyServer) -> Iterator[None]:
        """Stop a process's time while the body runs."""
        program.child.send(signal.SIGSTOP)
        try:
            yield
        finally:
            program.child.send(signal.SIGCONT)


def _at(url: str, port: int) -> str:
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user}{'@' if user else ''}127.0.0.1:{port}"))
