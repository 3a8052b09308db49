"""Looks at each part that memoryd needs, and says what to do about one that does not work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from app import errors, queue
from app.cli import addresses
from app.config import Settings
from app.providers import embedder as embedders
from app.providers import llm as chats
from app.store import db as databases
from app.store import migrate, near, vector_indexes, walls


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    part: str
    good: bool
    text: str  # what works, or what does not and what to do


_HINTS = {
    "redis": " Start the server of REDIS_URL, or correct the address.",
    "model": " Start its server, or correct MEMORYD_LLM_BASE_URL, _MODEL and _API_KEY; unset, facts are found by rules.",
    "embedder": " Start its server, or correct MEMORYD_EMBEDDER_BASE_URL, _MODEL and _API_KEY.",
}


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Yield a finding for each part, as soon as it is known."""
    try:
        settings = addresses.complete(settings)
    except errors.AppError as error:
        yield Finding("database", False, error.message)
    else:
        async for finding in _database(settings):
            yield finding
    yield await _examined("redis", lambda: _redis(settings))
    yield await _examined("model", lambda: _model(settings))
    yield await _examined("embedder", lambda: _embedder(settings))


async def _examined(part: str, look: Callable[[], Awaitable[str]]) -> Finding:
    try:
        return Finding(part, True, await look())
    except errors.AppError as error:
        # A SetupError says by itself what to do.
        hint = "" if isinstance(error, errors.SetupError) else _HINTS.get(part, "")
        return Finding(part, False, error.message + hint)


async def _database(settings: Settings) -> AsyncIterator[Finding]:
    dsn = settings.database_url.get_secret_value() if settings.database_url else ""
    try:
        conn = await databases.connect(dsn)
    except errors.DatabaseUnavailable as error:
        cause = error.__cause__ or error
        yield Finding("database", False, f"no answer ({cause}): is the server of DATABASE_URL running and reachable?")
        return
    except errors.AppError as error:
        yield Finding("database", False, error.message)
        return
    try:
        version = conn.get_server_version()
        yield Finding("database", True, f"PostgreSQL {version.major}.{version.micro}")
        yield await _examined("extensions", lambda: _extensions(conn))
        migrated = await _examined("migrations", lambda: _migrations(conn))
        yield migrated
        yield await _examined("walls", lambda: _walls(conn))
        if migrated.good:
            yield await _examined("indexes", lambda: _indexes(conn))
    finally:
        await conn.close()


async def _extensions(conn: databases.Conn) -> str:
    await databases.check_server(conn)
    version = await databases.vector_version(conn)
    return f"pgvector {version}" if version else "pgvector is there; the first migration creates it"


async def _migrations(conn: databases.Conn) -> str:
    await migrate.require_current(conn)
    return "the schema is up to date"


async def _walls(conn: databases.Conn) -> str:
    with databases.translated():
        found = await walls.standing(conn)
    walls.require_usable(found)
    if found.refusal is not None:
        raise errors.SetupError(found.refusal)
    return f"every project's rows are behind row-level security; memoryd acts as {walls.APP} and {walls.SYSTEM}"


async def _indexes(conn: databases.Conn) -> str:
    with databases.translated():
        refused = await vector_indexes.refusal(conn)
    if refused is not None:
        raise errors.SetupError(
            f"searches of over {near.EXACT:,} memories are slow, because a worker may not index them ({refused}): "
            "let workers connect as the owner of the tables"
        )
    return f"searches of over {near.EXACT:,} memories get an index when they are first asked"


async def _redis(settings: Settings) -> str:
    if settings.redis_url is None:
        raise errors.SetupError(
            "REDIS_URL is not set: workers find events by their sweep only; set it, or use `memoryd up`"
        )
    return await queue.check(settings.redis_url.get_secret_value())


async def _model(settings: Settings) -> str:
    chat = chats.open_llm(settings)
    if chat is None:
        return "none; facts are found by rules. MEMORYD_LLM_BASE_URL and MEMORYD_LLM_MODEL plug one in"
    try:
        await chat.check()
        return chat.describe()
    finally:
        await chat.close()


async def _embedder(settings: Settings) -> str:
    embedder = embedders.open_embedder(settings)
    try:
        await embedder.check()
        return embedder.describe()
    finally:
        await embedder.close()
