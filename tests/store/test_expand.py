"""The release before still runs on the schema of this one: migrations after it add, and take nothing away.

released/NNNN.sql has the statements of that release, whose last migration was NNNN; a release adds its own and removes
the one before. So one process of each may work on one database while an upgrade goes on.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import app
from app.store import db as databases
from app.store import migrate, walls

(RELEASED,) = (Path(__file__).parent / "released").glob("*.sql")
MIGRATIONS = Path(app.__file__).parents[1] / "migrations"
STATEMENTS = dict(
    re.findall(r"-- statement: (\S+)\n(.*?)(?=\n-- statement: |\Z)", RELEASED.read_text("utf-8"), re.DOTALL)
)

_COLUMNS = """
SELECT table_name || '.' || column_name AS name, data_type, is_nullable = 'YES' AS nullable, column_default, is_identity
FROM information_schema.columns
WHERE table_schema = 'public'
"""
#: What refuses rows: a new one could refuse what the release before writes.
_RULES = """
SELECT r.conrelid::regclass::text AS place, pg_get_constraintdef(r.oid) AS rule
FROM pg_constraint r WHERE r.connamespace = 'public'::regnamespace AND r.contype IN ('c', 'u', 'x', 'f')
UNION
SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE 'CREATE UNIQUE%'
"""
#: New rules on old tables that the release before cannot break, each with its reason.
HARMLESS: dict[str, str] = {}


@pytest.mark.parametrize("statement", [pytest.param(text, id=name) for name, text in STATEMENTS.items()])
async def test_statement_of_the_release_before_is_still_understood(conn: databases.Conn, statement: str) -> None:
    await conn.prepare(statement)


async def test_no_migration_since_takes_anything_away_or_asks_for_more(conn: databases.Conn, empty_dsn: str) -> None:
    before = await databases.connect(empty_dsn)
    try:
        for sql in (migrate._CREATE_TABLE, *files_until(RELEASED.stem)):
            await before.execute(sql)
        await walls.raise_all(before)
        old = {row["name"]: row for row in await before.fetch(_COLUMNS)}
        old_rules = {tuple(row) for row in await before.fetch(_RULES)}
    finally:
        await before.close()
    new = {row["name"]: row for row in await conn.fetch(_COLUMNS)}
    gone = [name for name in old if name not in new]
    assert gone == []
    assert [name for name in old if new[name]["data_type"] != old[name]["data_type"]] == []
    assert [name for name in old if old[name]["nullable"] and not new[name]["nullable"]] == []
    tables = {name.partition(".")[0] for name in old}
    added = [row for name, row in new.items() if name not in old and name.partition(".")[0] in tables]
    assert [
        row["name"]
        for row in added
        if not row["nullable"] and row["column_default"] is None and row["is_identity"] == "NO"
    ] == []
    rules = {tuple(row) for row in await conn.fetch(_RULES)} - old_rules
    assert sorted(rule for place, rule in rules if place in tables and rule not in HARMLESS) == []


def files_until(number: str) -> list[str]:
    """Return the migrations of the release before, in order."""
    return [path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql")) if path.name[:4] <= number]


def test_there_are_statements_of_the_release_before() -> None:
    assert len(STATEMENTS) > 100
