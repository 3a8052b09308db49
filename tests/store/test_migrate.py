"""The runner of migrations: once each, by one at a time, and never past a history that is not ours."""

from __future__ import annotations

import asyncio

import pytest

from app import errors
from app.store import db, migrate


async def execute(dsn, *statements):
    conn = await db.connect(dsn)
    for statement in statements:
        await conn.execute(statement)
    await conn.close()


async def check(dsn):
    conn = await db.connect(dsn)
    try:
        await migrate.require_current(conn)
    finally:
        await conn.close()


async def test_an_empty_database_becomes_current_and_a_second_run_does_nothing(empty_dsn):
    with pytest.raises(errors.SetupError, match="run `memoryd migrate`"):
        await check(empty_dsn)
    applied = await migrate.migrate(empty_dsn)
    assert applied[0] == "0001_initial.sql"
    assert applied == sorted(applied)
    await check(empty_dsn)
    assert await migrate.migrate(empty_dsn) == []


async def test_runs_at_the_same_time_apply_each_file_once(empty_dsn):
    results = await asyncio.gather(*(migrate.migrate(empty_dsn) for _ in range(5)))
    assert sorted(map(bool, results)) == [False] * 4 + [True]
    await check(empty_dsn)


async def test_an_older_schema_is_refused_with_the_command_to_run(fresh_db):
    await execute(fresh_db.dsn, "DELETE FROM schema_migrations WHERE name = '0001_initial.sql'")
    with pytest.raises(errors.SetupError, match=r"missing: 0001_initial.sql.*`memoryd migrate`"):
        await check(fresh_db.dsn)


async def test_a_newer_schema_is_refused(fresh_db):
    await execute(fresh_db.dsn, "INSERT INTO schema_migrations (name, checksum) VALUES ('9999_future.sql', 'x')")
    for run in (check, migrate.migrate):
        with pytest.raises(errors.SetupError, match=r"newer than this memoryd \(it has 9999_future.sql\)"):
            await run(fresh_db.dsn)


async def test_a_file_that_was_edited_after_it_was_applied_is_refused(fresh_db):
    await execute(fresh_db.dsn, "UPDATE schema_migrations SET checksum = 'x' WHERE name = '0001_initial.sql'")
    for run in (check, migrate.migrate):
        with pytest.raises(errors.SetupError, match="0001_initial.sql was edited"):
            await run(fresh_db.dsn)


async def test_a_file_that_fails_leaves_nothing_behind(empty_dsn):
    await execute(empty_dsn, "CREATE TABLE memories (clash integer)")
    with pytest.raises(Exception, match="already exists"):
        await migrate.migrate(empty_dsn)
    conn = await db.connect(empty_dsn)
    tables = await conn.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    assert {row["relname"] for row in tables} == {"memories", "schema_migrations"}
    assert await conn.fetchval("SELECT count(*) FROM schema_migrations") == 0
    await conn.close()


async def test_a_file_may_opt_out_of_its_transaction(fresh_db):
    sql = """-- memoryd: no-transaction
-- Why; it takes no lock that waits.
CREATE INDEX CONCURRENTLY trial_one ON owners (name);

CREATE INDEX CONCURRENTLY trial_two
    ON owners (kind);
"""
    conn = await db.connect(fresh_db.dsn)
    await migrate.apply(conn, migrate.File("0900_trial.sql", "sum", sql))
    indexes = await conn.fetch("SELECT relname FROM pg_class WHERE relname LIKE 'trial%' ORDER BY relname")
    assert [row["relname"] for row in indexes] == ["trial_one", "trial_two"]
    assert await conn.fetchval("SELECT checksum FROM schema_migrations WHERE name = '0900_trial.sql'") == "sum"
    await conn.close()


async def test_a_file_that_was_broken_off_between_or_inside_its_statements_is_finished_by_the_next_run(fresh_db):
    """As kill -9 leaves it: the first index built, the second half-built, nothing recorded."""
    sql = """-- memoryd: no-transaction
-- Why; it takes no lock that waits.
CREATE INDEX CONCURRENTLY trial_one ON owners (name);
CREATE UNIQUE INDEX CONCURRENTLY trial_two ON trial (number);
"""
    conn = await db.connect(fresh_db.dsn)
    await conn.execute("CREATE TABLE trial (number integer)")
    await conn.execute("INSERT INTO trial VALUES (1), (1)")
    with pytest.raises(Exception, match="duplicate"):  # the server, too, leaves an index that is not valid
        await migrate.apply(conn, migrate.File("0900_trial.sql", "sum", sql))
    half = "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname LIKE 'trial_%' ORDER BY 1"
    assert [tuple(row) for row in await conn.fetch(half)] == [("trial_one", True), ("trial_two", False)]
    await conn.execute("DELETE FROM trial")
    await migrate.apply(conn, migrate.File("0900_trial.sql", "sum", sql))
    assert [tuple(row) for row in await conn.fetch(half)] == [("trial_one", True), ("trial_two", True)]
    assert await conn.fetchval("SELECT checksum FROM schema_migrations WHERE name = '0900_trial.sql'") == "sum"
    await conn.close()


async def test_every_key_of_a_tenants_table_begins_with_the_project(conn):
    """So that the schema can be distributed or partitioned by project."""
    wrong = await conn.fetch("""
        SELECT c.relname, i.indexrelid::regclass::text AS key
        FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
        JOIN pg_attribute p ON p.attrelid = c.oid AND p.attname = 'project_id'
        WHERE i.indisunique AND i.indkey[0] <> p.attnum
    """)
    assert not wrong, [tuple(row) for row in wrong]
