"""What every verb gets first: the opened database, doorbell, model and embedder of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from app import errors, log
from app.config import Settings
from app.model import Vector, Vectors
from app.providers import embedder as embedders
from app.providers import llm as chats
from app.queue import Queue, open_queue
from app.store import db as databases
from app.store import migrate, models
from app.tally import LocalTally, Tally, open_tally

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Things that are opened and closed, and the settings they were opened with."""

    settings: Settings
    db: databases.Database
    queue: Queue
    llm: chats.ChatModel | None  # None: extraction works by rules
    embedder: embedders.Embedder
    tally: Tally = field(default_factory=LocalTally)


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    *,
    llm: bool = True,
    embedder: bool = True,
    queue: bool = True,
    statement_s: float | None = None,
) -> AsyncIterator[Runtime]:
    """Open what the process needs, check that it fits together, and close it in reverse order at the end.

    `llm`, `embedder`, `queue`: False leaves that part out, for commands that do not use it. `statement_s` bounds one
    statement, where somebody waits for its answer; None: generously.
    Raises: SetupError, one line that says what to change; DatabaseUnavailable.
    """
    if settings.database_url is None:
        raise errors.SetupError(
            "DATABASE_URL is not set; set it, or run `memoryd up`, which brings its own PostgreSQL."
        )
    async with AsyncExitStack() as stack:
        database = await databases.Database.open(
            settings.database_url.get_secret_value(),
            pool_size=settings.db_pool_size,
            statement_cache=settings.db_statement_cache,
            **({} if statement_s is None else {"statement_s": statement_s}),
        )
        stack.push_async_callback(database.close)
        async with database.acquire(None) as conn:
            await databases.check_server(conn)
            await migrate.require_current(conn)
        if database.wall.refusal is not None:
            _log.warning("walls.down", advice=database.wall.refusal)
        bell = _open_queue(settings, wanted=queue)
        stack.push_async_callback(bell.close)
        tally = open_tally(settings.redis_url.get_secret_value() if queue and settings.redis_url is not None else None)
        stack.push_async_callback(tally.close)
        chat = chats.open_llm(settings) if llm else None
        if chat is not None:
            stack.push_async_callback(chat.close)
        embed: embedders.Embedder = embedders.open_embedder(settings) if embedder else NoEmbedder()
        stack.push_async_callback(embed.close)
        if embedder:
            await check_embedder(database, embed)
        yield Runtime(settings=settings, db=database, queue=bell, llm=chat, embedder=embed, tally=tally)


def _open_queue(settings: Settings, *, wanted: bool) -> Queue:
    url = settings.redis_url.get_secret_value() if wanted and settings.redis_url is not None else None
    return open_queue(url)


async def check_embedder(database: databases.Database, embedder: embedders.Embedder) -> None:
    """Register the embedder's model beside the vectors that are stored. Safe to repeat.

    An endpoint that is away does not stop the start: lists and reads work without it, and the first add compares.
    Raises: SetupError when the stored vectors could not be compared with the ones that it makes; EmbedderRefused.
    """
    model = embedder.model
    async with database.acquire(None) as conn:
        stored = await models.stored(conn)
        others = await models.in_use(conn) - {model} if set(stored) - {model} else set()
    if others:
        names = ", ".join(sorted(others))
        raise errors.SetupError(
            f"The memories were embedded with {names}; {model} could not find them. "
            f"Configure {names} again, or start with an empty database."
        )
    if embedder.dims == 0:  # an endpoint says it with its first answer
        try:
            await embedder.check()
        except errors.EmbedderUnavailable as error:
            _log.warning("embedder.unavailable", model=model, error=error.message)
            return
    dims = embedder.dims
    if stored.get(model, dims) != dims:
        raise errors.SetupError(
            f"The embedder {model} makes vectors of {dims} dimensions, and the stored ones have {stored[model]}. "
            "Give the other model a name of its own, or use the model that the memories were stored with."
        )
    async with database.transaction(None) as conn:
        await models.register(conn, model, dims)


class NoEmbedder:
    """Stands in the runtime of a command that embeds nothing."""

    model = "none"
    dims = 0

    def _refuse(self) -> NoReturn:
        raise errors.SetupError("This command was started without an embedder.")

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Refuse."""
        self._refuse()

    async def embed_query(self, text: str) -> Vector:
        """Refuse."""
        self._refuse()

    async def check(self) -> None:
        """Refuse."""
        self._refuse()

    def describe(self) -> str:
        """Return what `memoryd doctor` shows."""
        return "no embedder"

    async def close(self) -> None:
        """Do nothing."""
