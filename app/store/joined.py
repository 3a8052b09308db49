"""One transaction for a whole request: what its verbs commit becomes true together, with what the door adds at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from app.store import db as databases
from app.store.db import Conn, Database


class _Joined(Database):
    """A database all of whose transactions are savepoints of one, which begins with the first of them."""

    def __init__(
        self, database: Database, stack: AsyncExitStack, project_id: int, begin: Callable[[Conn], Awaitable[None]]
    ) -> None:
        self._database = database
        self._stack = stack
        self._project_id = project_id
        self._begin = begin
        self._opening = asyncio.Lock()
        self._lent: Database | None = None

    @property
    def walled(self) -> bool:
        """As of the database behind it."""
        return self._database.walled

    async def close(self) -> None:
        """Leave the connection to whoever opened the transaction."""

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        """Lend the one connection, inside a savepoint that does the work of this project."""
        async with self._opening:
            if self._lent is None:
                conn = await self._stack.enter_async_context(self._database.transaction(self._project_id))
                await self._begin(conn)
                self._lent = databases.lend(conn, walled=self.walled)
        async with self._lent.acquire(project_id) as conn:
            yield conn


@asynccontextmanager
async def join(
    database: Database, project_id: int, begin: Callable[[Conn], Awaitable[None]]
) -> AsyncIterator[Database]:
    """Lend a database whose transactions are committed together when the body ends, and not at all when it raises.

    The transaction begins when the database is used first, so that what comes before, such as a look at a name server,
    holds no connection. `begin` is called then, doing the work of `project_id`; what it raises, the user sees.
    """
    async with AsyncExitStack() as stack:
        yield _Joined(database, stack, project_id, begin)
