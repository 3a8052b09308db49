"""Connections: one pool a process, JSON and vectors as Python values, driver errors as ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import asyncpg

from app import errors
from app.store import codecs, walls

Conn: TypeAlias = asyncpg.Connection

_MIN_SERVER = 160_000  # UNIQUE NULLS NOT DISTINCT is 15; 16 is the oldest version that is tested
_MIN_VECTOR = (0, 8, 2)
_CONNECT_S = 10.0  # one attempt
_ACQUIRE_S = 5.0  # waiting for a free connection of the pool
_OVERALL = 2  # connections for the work over all projects, at least; where there are few, all do everything
_STATEMENT_S = 60.0  # one statement, where nobody waits for its answer
#: The server ends a statement that takes too long; only where it is not heard of any more, we do, so much later.
_UNHEARD_S = 1.0
#: Of a transaction between two statements, in seconds. A host that vanishes says no goodbye, and what its transaction has
#: locked would stay so until TCP gives up, hours later. No transaction of ours waits for anybody else.
_IDLE_S = 30

#: Nothing is wrong with the statement: the server is away, full, stopping, being migrated, or let another transaction win.
_TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,  # the server became a replica
    asyncpg.InvalidCachedStatementError,  # a migration has just changed what the statement returns; next time it is new
    TimeoutError,
)
_UNSTORABLE = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
_MISCONFIGURED = (
    asyncpg.InvalidAuthorizationSpecificationError,  # and a wrong password
    asyncpg.InvalidCatalogNameError,
    asyncpg.exceptions.ClientConfigurationError,
)


_NOBODY = -1  # no project, and not the work over all of them


class _Pooled(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection that remembers whose work it does, so that it is told only when that changes."""

    acts_for: int | None = _NOBODY

    async def act(self, project_id: int | None) -> None:
        """Do the work of this project from now on; None: the work over all of them."""
        if self.acts_for != project_id:
            self.acts_for = _NOBODY  # in case the answer does not arrive
            await walls.act(self, project_id, local=False)
            self.acts_for = project_id


class Database:
    """A pool of connections. Open one per process with `open`."""

    concurrent = True  #: whether several tasks can use it at the same time

    def __init__(self, dsn: str, pool: Any, wall: walls.Standing, *, pinned: bool, overall: Any = None) -> None:
        """`pinned`: a connection of ours is one session of the server; False behind a pooler that shares sessions.

        `overall`: connections for the work over all projects; None: the same ones do it, and are told so each time.
        """
        self._dsn = dsn
        self._pool = pool
        self._overall = overall or pool
        self._pinned = pinned
        self.wall = wall  #: how the second wall between tenants stood when the database was opened

    @property
    def walled(self) -> bool:
        """Whether connections act as roles that see one project only."""
        return self.wall.raised

    @classmethod
    async def open(
        cls, dsn: str, *, pool_size: int, statement_cache: int, wait_s: float = 30.0, statement_s: float = _STATEMENT_S
    ) -> Database:
        """Connect, waiting up to `wait_s` seconds for a server that is still starting.

        `statement_cache` is the number of prepared statements kept per connection; 0 suits pgbouncer. `statement_s` bounds
        one statement.
        Raises: DatabaseUnavailable when the wait was in vain, SetupError when waiting cannot help.
        """
        first = await connect(dsn, wait_s=wait_s, statement_cache=statement_cache)
        try:
            with translated():
                wall = await walls.standing(first)
        finally:
            await first.close()
        walls.require_usable(wall)
        pinned = statement_cache > 0
        # Whose work a connection does is told when that changes, and plans are lost then: a tenth of all statements.
        apart = max(_OVERALL, pool_size // 4) if pinned and pool_size > 2 * _OVERALL else 0

        def pool(size: int, role: str, plans: str) -> Any:
            return asyncpg.create_pool(
                dsn,
                min_size=1,
                max_size=size,
                init=codecs.register,
                reset=_keep,
                command_timeout=statement_s + _UNHEARD_S,
                timeout=_CONNECT_S,
                connection_class=_Pooled,
                **_session(statement_cache, role=role if wall.raised else None, statement_s=statement_s, plans=plans),
            )

        with translated():
            tenants = await pool(pool_size - apart, walls.APP, _PLANNED_EACH)
            # No statement over all projects depends on whose rows are many.
            overall = await pool(apart, walls.SYSTEM, _PLANNED_ONCE) if apart else None
        return cls(dsn, tenants, wall, pinned=pinned, overall=overall)

    @property
    def _pools(self) -> set[Any]:
        return {self._pool, self._overall}

    def connections(self) -> dict[str, int]:
        """Return how many connections are lent and how many are idle."""
        idle = sum(pool.get_idle_size() for pool in self._pools)
        return {"in_use": sum(pool.get_size() for pool in self._pools) - idle, "idle": idle}

    async def close(self) -> None:
        """Close the pool once its connections have come back; after five seconds they are cut off. Safe to repeat."""
        try:
            await asyncio.wait_for(asyncio.gather(*(pool.close() for pool in self._pools)), 5.0)
        except TimeoutError:
            for pool in self._pools:
                pool.terminate()

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Lend a connection on which every statement is its own transaction.

        `project_id` is the tenant whose rows may be touched; None: the directory of organizations, projects and keys,
        and work over all tenants. Behind a pooler that shares sessions, all statements are one transaction instead:
        only there is it known which session has been told whose rows those are. Raises: DatabaseUnavailable.
        """
        with translated():
            pool = self._overall if project_id is None else self._pool
            async with pool.acquire(timeout=_ACQUIRE_S) as conn, _sound(conn):
                if not self.wall.raised:
                    yield conn
                elif self._pinned:
                    await conn.act(project_id)
                    yield conn
                else:
                    async with conn.transaction():
                        await walls.act(conn, project_id, local=True)
                        yield conn

    @asynccontextmanager
    async def transaction(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Lend a connection inside one transaction: committed at the end, rolled back when the body raises.

        Raises: DatabaseUnavailable; TransactionLost when it lost a deadlock: run it again, as again.if_lost does.
        """
        async with self.acquire(project_id) as conn:
            with translated():
                async with conn.transaction(), _sound(conn):
                    yield conn

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[Conn]:
        """Lend a connection of its own, outside the pool, with no limit of time, as the user that memoryd connects as.

        For what the tables' owner alone may do: building and dropping indexes. Raises: DatabaseUnavailable.
        """
        conn = await connect(self._dsn)
        try:
            with translated():
                yield conn
        finally:
            conn.terminate()  # at once: one that was cancelled may still be busy


class _Lent(Database):
    """A database of one connection, whose transactions are savepoints of the one that is open on it."""

    concurrent = False

    def __init__(self, conn: Conn, *, walled: bool) -> None:
        self._conn = conn
        self._walled = walled
        self._free = asyncio.Lock()
        self._holder: asyncio.Task[Any] | None = None
        self._acts_for: int | None = None

    @property
    def walled(self) -> bool:
        """As of the database that the connection is of."""
        return self._walled

    def connections(self) -> dict[str, int]:
        """Return the one."""
        return {"in_use": 1, "idle": 0}

    async def close(self) -> None:
        """Leave the connection to whoever lent it."""

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Lend the connection to one task at a time; the task that has it may ask again."""
        task = asyncio.current_task()
        if self._holder is task:
            async with self._acting(project_id):
                yield self._conn
            return
        async with self._free:
            self._holder = task
            try:
                async with self._acting(project_id):
                    yield self._conn
            finally:
                self._holder = None

    @asynccontextmanager
    async def _acting(self, project_id: int | None) -> AsyncIterator[None]:
        """Do a project's work inside a savepoint: an error in it leaves the connection as it was."""
        before, self._acts_for = self._acts_for, project_id
        try:
            with translated():
                async with self._conn.transaction():
                    await self._act(project_id)
                    yield
                    await self._act(before)
        finally:
            self._acts_for = before

    async def _act(self, project_id: int | None) -> None:
        if self._walled:
            await walls.act(self._conn, project_id, local=True)


def lend(conn: Conn, *, walled: bool = True) -> Database:
    """Return a Database that uses `conn`, which has a transaction open: whoever opened it decides what becomes of all.

    Between its transactions the connection does work over all projects. `walled`: as of the database that `conn` is of.
    """
    return _Lent(conn, walled=walled)


async def connect(dsn: str, *, wait_s: float = 0.0, statement_cache: int = 0) -> Conn:
    """Open one connection outside any pool, retrying for `wait_s` seconds while the server starts.

    Raises: DatabaseUnavailable, SetupError (wrong password, no such database, an address that cannot be read).
    """
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        try:
            with translated():
                conn = await asyncpg.connect(dsn, timeout=_CONNECT_S, **_session(statement_cache))
                await codecs.register(conn)
                return conn
        except errors.DatabaseUnavailable:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            await asyncio.sleep(0.1)


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into ours, with the cause kept; errors that mean a bug of ours pass unchanged."""
    try:
        yield
    except asyncpg.ForeignKeyViolationError as error:
        if str(error.constraint_name).endswith("_scope_id_fkey"):
            raise errors.Conflict(
                "The owner was erased meanwhile; nothing was stored. Send the request again."
            ) from error
        if not str(error.constraint_name).endswith("_project_id_fkey"):
            raise
        raise errors.NotFound("The project was deleted meanwhile.") from error
    except _UNSTORABLE as error:
        raise errors.InvalidRequest("The text holds a character that cannot be stored, such as U+0000.") from error
    except asyncpg.InsufficientPrivilegeError as error:
        if "row-level security" in str(error):
            raise  # a statement wrote another project's row: a bug, which the second wall has stopped
        raise errors.SetupError(f"The database refuses memoryd: {error}") from error
    except _MISCONFIGURED as error:
        raise errors.SetupError(f"The database refuses memoryd: {error}") from error
    except asyncpg.TransactionRollbackError as error:  # deadlocks and serialization failures
        raise errors.TransactionLost from error
    except _TRANSIENT as error:
        raise errors.DatabaseUnavailable from error
    except asyncpg.InternalClientError as error:  # the server died in the midst of an answer, and the driver lost count
        raise errors.DatabaseUnavailable from error
    except OSError as error:  # refused, reset, unknown host
        raise errors.DatabaseUnavailable from error
    except asyncpg.InterfaceError as error:
        if not _is_loss(error):
            raise
        raise errors.DatabaseUnavailable from error


_VECTOR_VERSIONS = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available
"""


async def check_server(conn: Conn) -> None:
    """Check the versions of PostgreSQL and pgvector.

    Raises: SetupError, one line with what is there and what is needed.
    """
    with translated():
        number = int(await conn.fetchval("SHOW server_version_num"))
        row = await conn.fetchrow(_VECTOR_VERSIONS)
    if number < _MIN_SERVER:
        raise errors.SetupError(f"PostgreSQL {number // 10_000} is too old: memoryd needs PostgreSQL 16 or newer.")
    wanted = ".".join(map(str, _MIN_VECTOR))
    found = row["installed"] or row["available"]
    if found is None:
        raise errors.SetupError(f"The database server has no pgvector: install the extension, {wanted} or newer.")
    if _version(found) < _MIN_VECTOR:
        newer = row["available"] and _version(row["available"]) >= _MIN_VECTOR
        hint = "run ALTER EXTENSION vector UPDATE" if newer else "update the extension"
        raise errors.SetupError(f"pgvector {found} is too old: {hint}; memoryd needs {wanted} or newer.")


async def vector_version(conn: Conn) -> str | None:
    """Return the version of pgvector in this database; None before the first migration."""
    with translated():
        row = await conn.fetchrow(_VECTOR_VERSIONS)
    version: str | None = row["installed"]
    return version


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _is_loss(error: asyncpg.InterfaceError) -> bool:
    # The driver has one class for its misuse and for a connection that is gone; only the words tell them apart.
    return any(words in str(error) for words in ("connection is closed", "pool is closing", "pool is closed"))


_PLANNED_EACH = "force_custom_plan"  # a generic plan would not know how many rows a scope has, which decides
_PLANNED_ONCE = "auto"


def _session(
    statement_cache: int, *, role: str | None = None, statement_s: float | None = None, plans: str = _PLANNED_EACH
) -> dict[str, Any]:
    """Return the options of a connection. `role`: what it acts as until it is told whose work it does."""
    if statement_cache == 0:  # pgbouncer refuses unknown start-up parameters, and unnamed statements need none
        return {"statement_cache_size": 0}
    settings = {"application_name": "memoryd", "plan_cache_mode": plans, "jit": "off"}
    # What searches read is in memory or on a disk without a head: a few hundred rows by their keys cost less than all rows of
    # the table, which the default of 4 chooses up to some ten thousand memories (a search then took 10 ms more).
    settings["random_page_cost"] = "1.1"
    settings["idle_in_transaction_session_timeout"] = f"{_IDLE_S}s"
    if role is not None:
        settings["role"] = role
    if statement_s is not None:
        settings["statement_timeout"] = f"{round(statement_s * 1000)}ms"
    return {"statement_cache_size": statement_cache, "server_settings": settings}


@asynccontextmanager
async def _sound(conn: Conn) -> AsyncIterator[None]:
    """Close the connection when the driver has lost count of what was said on it, so that nobody gets it again.

    And when its server is not heard of: whatever is said on it then, such as ROLLBACK, is waited for just as long.
    """
    try:
        yield
    except (asyncpg.InternalClientError, TimeoutError):
        conn.terminate()
        raise


async def _keep(_conn: Conn) -> None:
    """Reset nothing: the driver itself rolls back what was left open, and `acquire` says whose work comes next."""
