"""Applies migrations/*.sql: forward only, once each, by one process at a time."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import asyncpg

import app
from app import errors, log
from app.store import db, walls

_FOLDER = Path(app.__file__).parents[1] / "migrations"
_NO_TRANSACTION = "-- memoryd: no-transaction"
_log = log.get(__name__)

_LOCK_KEY = 6_317_120_451  # any fixed number: the advisory lock that one runner holds


@dataclass(frozen=True, slots=True)
class File:
    name: str
    checksum: str  # SHA-256 of the file
    sql: str


_CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    name       text PRIMARY KEY,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""

_LOCK = "SELECT pg_advisory_lock($1)"


async def migrate(dsn: str) -> list[str]:
    """Bring the schema up to date; return the names of the files applied now, in order. Safe to repeat and to race.

    Afterwards every tenant's table stands behind row-level security, unless the log says why not.
    Raises: SetupError (an applied file was edited, the schema is newer than this code, the server is too old),
    DatabaseUnavailable (no answer, or a table stayed locked for five seconds).
    """
    conn = await db.connect(dsn, wait_s=30.0)
    try:
        await db.check_server(conn)
        with db.translated():
            await conn.execute(_LOCK, _LOCK_KEY)  # released with the connection
            await conn.execute("SET lock_timeout = '5s'")
            await conn.execute("SET client_min_messages = warning")
            await conn.execute(_CREATE_TABLE)
            waiting = _waiting(_files(), await _applied(conn))
            for file in waiting:
                await apply(conn, file)
            reason = await walls.raise_all(conn)  # each time, so that new tables and new rights are noticed
            if reason is not None:
                _log.warning("walls.down", reason=reason, advice=(await walls.standing(conn)).refusal)
        return [file.name for file in waiting]
    finally:
        await conn.close()


async def require_current(conn: db.Conn) -> None:
    """Check that every migration of this code was applied, and none of a newer one.

    Raises: SetupError that names the command to run.
    """
    with db.translated():
        try:
            applied = await _applied(conn)
        except asyncpg.UndefinedTableError as error:
            raise errors.SetupError("The database has no schema yet: run `memoryd migrate`.") from error
    waiting = _waiting(_files(), applied)
    if waiting:
        names = ", ".join(file.name for file in waiting)
        raise errors.SetupError(f"The database schema is older than memoryd (missing: {names}): run `memoryd migrate`.")


_APPLIED = "SELECT name, checksum FROM schema_migrations ORDER BY name"


async def _applied(conn: db.Conn) -> dict[str, str]:
    """Return the checksums of the applied files by name."""
    return {row["name"]: row["checksum"] for row in await conn.fetch(_APPLIED)}


_RECORD = "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)"


async def apply(conn: db.Conn, file: File) -> None:
    if file.sql.startswith(_NO_TRANSACTION):
        # One statement at a time: a string of several would be one implicit transaction.
        for statement in _statements(file.sql):
            if not await _is_made(conn, statement):
                await conn.execute(statement)
        await conn.execute(_RECORD, file.name, file.checksum)
        return
    async with conn.transaction():
        await conn.execute(file.sql)
        await conn.execute(_RECORD, file.name, file.checksum)


_CONCURRENT = re.compile(r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"


async def _is_made(conn: db.Conn, statement: str) -> bool:
    """Return whether the index that a statement builds is there, from a run that ended in the middle.

    One that such a run left half-built is dropped: it is used for nothing, and its name is taken.
    """
    found = _CONCURRENT.match(statement)
    if found is None:
        return False
    is_valid: bool | None = await conn.fetchval(_IS_VALID, found[1])
    if is_valid is False:
        await conn.execute(f"DROP INDEX CONCURRENTLY {found[1]}")
    return bool(is_valid)


def _statements(sql: str) -> list[str]:
    """Split at semicolons that end a line; such files hold plain CREATE and DROP INDEX CONCURRENTLY."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    parts = ("\n".join(lines) + "\n").split(";\n")
    return [part.strip() for part in parts if part.strip()]


def _waiting(files: tuple[File, ...], applied: dict[str, str]) -> list[File]:
    """Return the files still to apply, in order; refuse a history that is not ours.

    Raises: SetupError.
    """
    known = {file.name: file for file in files}
    for name, checksum in applied.items():
        if name not in known:
            raise errors.SetupError(f"The database schema is newer than this memoryd (it has {name}): update memoryd.")
        if known[name].checksum != checksum:
            raise errors.SetupError(f"migrations/{name} was edited after it was applied: restore the released file.")
    return [file for file in files if file.name not in applied]


@cache
def _files() -> tuple[File, ...]:
    """Read the migrations that this code carries, in order of their names.

    Raises: SetupError when the folder is missing: a broken installation must not look like an empty list.
    """
    paths = sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not paths:
        raise errors.SetupError(f"No migrations found in {_FOLDER}: the installation is incomplete.")
    return tuple(File(p.name, hashlib.sha256(p.read_bytes()).hexdigest(), p.read_text("utf-8")) for p in paths)
