"""Fixtures: servers once per run, a connection that is rolled back, a database of one's own, a runtime, a client."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest

from app import config
from app.model import Project
from app.store import db as databases
from app.store import migrate, models
from tests import factories, fakes

if TYPE_CHECKING:
    import httpx

    from app.runtime import Runtime

#: No data of a test has to outlive the machine; and some tests open many connections.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200"}
_OURS = ("MEMORYD_", "DATABASE_URL", "REDIS_URL")
SEED = "MEMORYD_SEED"  #: no setting: it replays a run of tests/faults


def pytest_configure() -> None:
    """Forget the settings of the shell: tests choose their own."""
    for name in [name for name in os.environ if name.startswith(_OURS) and name != SEED]:
        del os.environ[name]


# The network is closed


@pytest.fixture(scope="session", autouse=True)
def closed_network() -> Iterator[None]:
    """Refuse every connection that leaves this machine."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    yield
    patch.undo()


def _guarded(real: Any) -> Any:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise AssertionError(f"a test reached for the network: {address}")
        return real(self, address)

    return connect


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


# Servers


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Return a folder that the unprivileged user of the servers can enter; pytest's own are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_dsn(server_folder: Path) -> Iterator[str]:
    """Run a PostgreSQL for this run; return the address of its maintenance database."""
    from app.servers.postgres import PostgresServer

    server = PostgresServer(server_folder / "postgres", settings=_FAST)
    server.start()
    yield server.dsn
    server.stop()


@pytest.fixture(scope="session")
def valkey_url(server_folder: Path) -> Iterator[str]:
    """Run a Valkey for this run; return its address."""
    from app.servers.valkey import ValkeyServer

    server = ValkeyServer(server_folder / "valkey")
    server.start()
    yield server.url
    server.stop()


# Databases


@dataclass(frozen=True)
class FreshDatabase:
    """A database of one test's own: commits, several connections, workers."""

    dsn: str
    db: databases.Database


@pytest.fixture(scope="session")
async def template(postgres_dsn: str) -> str:
    """Migrate one database; return its name. Nobody connects to it afterwards, so that it can be copied."""
    name = "memoryd_template"
    await _run(postgres_dsn, f"CREATE DATABASE {name}")
    dsn = _dsn_of(postgres_dsn, name)
    await migrate.migrate(dsn)
    conn = await databases.connect(dsn)
    await models.register(conn, fakes.MODEL, fakes.DIMS)
    await conn.close()
    return name


@pytest.fixture(scope="session")
async def database(postgres_dsn: str, template: str) -> AsyncIterator[databases.Database]:
    """Open the database whose changes are always rolled back."""
    async with _clone(postgres_dsn, template) as dsn:
        opened = await databases.Database.open(dsn, pool_size=4, statement_cache=256)
        yield opened
        await opened.close()


@pytest.fixture
async def conn(database: databases.Database) -> AsyncIterator[databases.Conn]:
    """Lend a connection inside a transaction that is rolled back after the test."""
    async with database.acquire(None) as conn:
        transaction = conn.transaction()
        await transaction.start()
        yield conn
        await transaction.rollback()


@pytest.fixture
def db(conn: databases.Conn) -> databases.Database:
    """Lend `conn` as a database: a verb's own transactions become savepoints."""
    return databases.lend(conn)


@pytest.fixture
async def fresh_db(postgres_dsn: str, template: str) -> AsyncIterator[FreshDatabase]:
    """Make an empty, migrated database for this test alone."""
    async with _clone(postgres_dsn, template) as dsn:
        opened = await databases.Database.open(dsn, pool_size=16, statement_cache=256)
        yield FreshDatabase(dsn, opened)
        await opened.close()


@pytest.fixture
async def empty_dsn(postgres_dsn: str) -> AsyncIterator[str]:
    """Make a database without a schema; return its address."""
    async with _clone(postgres_dsn, "template0") as dsn:
        yield dsn


@asynccontextmanager
async def _clone(server_dsn: str, template: str) -> AsyncIterator[str]:
    name = f"memoryd_{uuid4().hex}"
    await _run(server_dsn, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield _dsn_of(server_dsn, name)
    finally:
        await _run(server_dsn, f"DROP DATABASE {name} WITH (FORCE)")


async def _run(dsn: str, sql: str) -> None:
    conn = await databases.connect(dsn)
    try:
        await conn.execute(sql)
    finally:
        await conn.close()


def _dsn_of(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


# The service without its doors, and with the HTTP one


@pytest.fixture
async def project(conn: databases.Conn) -> Project:
    """Insert an organization and a project of the rolled-back connection."""
    return await factories.make_project(conn)


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    """Return default settings with a data folder of the test's own."""
    return config.load(data=tmp_path)


@pytest.fixture
def embedder() -> fakes.FakeEmbedder:
    """Return the embedder of `runtime`."""
    return fakes.FakeEmbedder()


@pytest.fixture
def queue() -> fakes.RecordingQueue:
    """Return the queue of `runtime`."""
    return fakes.RecordingQueue()


@pytest.fixture
def runtime(
    db: databases.Database, settings: config.Settings, embedder: fakes.FakeEmbedder, queue: fakes.RecordingQueue
) -> Runtime:
    """Return a runtime of fakes over the rolled-back connection; extraction works by rules."""
    from app.runtime import Runtime

    return Runtime(settings=settings, db=db, queue=queue, llm=None, embedder=embedder)


@pytest.fixture
async def client(runtime: Runtime, project: Project) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of the API in this process, whose every request carries a valid key of `project`."""
    import httpx

    secret = await factories.make_key(runtime, project)
    transport = httpx.ASGITransport(app=factories.make_app(runtime))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://memoryd.test", headers={"Authorization": f"Token {secret}"}
    ) as client:
        yield client
