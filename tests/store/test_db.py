"""Connections: values in and out, errors translated once, and the lent database of the tests themselves."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, date, datetime
from types import SimpleNamespace
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import pytest

from app import errors
from app.store import db


@pytest.mark.parametrize(
    "value", [{"a": [1, 2.5, None, True, "茶\n"]}, [], "text", 7, -(2**63), {"big": 2**64 - 1}, {"uuid": "x" * 10_000}]
)
async def test_json_is_read_back_as_it_was_written(conn, value):
    assert await conn.fetchval("SELECT $1::jsonb", value) == value
    assert await conn.fetchval("SELECT $1::json", value) == value


async def test_integers_beyond_64_bits_are_stored_exactly(conn):
    assert await conn.fetchval("SELECT $1::jsonb ->> 'n'", {"n": 10**30}) == str(10**30)


async def test_ids_and_times_may_stand_inside_json(conn):
    stored = await conn.fetchval("SELECT $1::jsonb", {"id": UUID(int=1), "at": datetime(2024, 1, 2, tzinfo=UTC)})
    assert stored == {"id": str(UUID(int=1)), "at": "2024-01-02T00:00:00+00:00"}


async def test_ids_are_plain_uuids(conn):
    value = uuid4()
    row = await conn.fetchrow("SELECT $1::uuid AS one, $2::uuid[] AS many", value, [value, str(value)])
    assert (row["one"], row["many"]) == (value, [value, value])
    assert type(row["one"]) is UUID


async def test_half_vectors_go_in_as_arrays_and_come_out_as_half_vectors(conn):
    value = np.linspace(-1, 1, 384, dtype=np.float32)
    stored = await conn.fetchval("SELECT $1::halfvec", value)
    assert np.allclose(stored.to_numpy(), value, atol=1e-3)


async def test_times_are_aware_and_utc(conn):
    now = await conn.fetchval("SELECT clock_timestamp()")
    assert now.tzinfo is not None
    assert now.utcoffset().total_seconds() == 0


async def test_plans_know_the_values(conn):
    assert await conn.fetchval("SHOW plan_cache_mode") == "force_custom_plan"


async def test_a_connection_whose_driver_lost_count_is_a_passing_failure_and_not_used_again(fresh_db):
    # What asyncpg says on a connection whose server was killed at the wrong moment.
    seen = []

    async def use(error=None):
        async with fresh_db.db.acquire(None) as conn:
            seen.append(await conn.fetchval("SELECT pg_backend_pid()"))
            if error is not None:
                raise error

    with pytest.raises(errors.DatabaseUnavailable):
        await use(asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"))
    await use()
    assert seen[0] != seen[1]


async def test_a_client_that_vanishes_inside_a_transaction_is_given_up(conn):
    assert await conn.fetchval("SHOW idle_in_transaction_session_timeout") == "30s"


async def make_table(dsn, definition):
    """Make the table t as the owner of the schema; the service's connections may not."""
    conn = await db.connect(dsn)
    await conn.execute(f"CREATE TABLE t {definition}; GRANT SELECT, INSERT, UPDATE ON t TO memoryd_system")
    await conn.close()


async def test_a_transaction_is_committed_at_the_end_and_rolled_back_by_an_error(fresh_db):
    await make_table(fresh_db.dsn, "(n integer)")
    async with fresh_db.db.transaction(None) as conn:
        await conn.execute("INSERT INTO t VALUES (1)")

    async def fail():
        async with fresh_db.db.transaction(None) as conn:
            await conn.execute("INSERT INTO t VALUES (2)")
            raise errors.Conflict

    with pytest.raises(errors.Conflict):
        await fail()
    async with fresh_db.db.acquire(None) as conn:
        assert [row["n"] for row in await conn.fetch("SELECT n FROM t")] == [1]


async def test_a_transaction_left_open_is_not_handed_to_the_next(fresh_db):
    async with fresh_db.db.acquire(None) as conn:
        await conn.execute("BEGIN")
        await conn.execute("CREATE TEMP TABLE t (n integer)")
    for _ in range(16):
        async with fresh_db.db.acquire(None) as conn:
            assert not conn.is_in_transaction()
            assert await conn.fetchval("SELECT to_regclass('t')") is None


async def terminate(dsn, conn):
    """End the server's side of a connection and wait until it is gone, as an administrator."""
    administrator = await db.connect(dsn)
    await administrator.execute("SELECT pg_terminate_backend($1, 5000)", conn.get_server_pid())
    await administrator.close()


async def test_a_lost_connection_is_database_unavailable_and_the_next_one_works(fresh_db):
    async def lose():
        async with fresh_db.db.transaction(None) as conn:
            await terminate(fresh_db.dsn, conn)
            await conn.execute("SELECT 1")

    with pytest.raises(errors.DatabaseUnavailable) as caught:
        await lose()
    assert caught.value.__cause__ is not None
    async with fresh_db.db.acquire(None) as conn:
        assert await conn.fetchval("SELECT 1") == 1


async def test_a_closed_pool_is_database_unavailable(fresh_db):
    opened = await db.Database.open(fresh_db.dsn, pool_size=2, statement_cache=0)
    await opened.close()
    await opened.close()
    with pytest.raises(errors.DatabaseUnavailable):
        async with opened.acquire(None):
            pass


async def test_the_loser_of_a_deadlock_is_told_to_try_again(fresh_db):
    await make_table(fresh_db.dsn, "AS SELECT n, 0 AS x FROM generate_series(1, 2) AS n")
    locked = [asyncio.Event(), asyncio.Event()]

    async def lock(first, second, mine, theirs):
        async with fresh_db.db.transaction(None) as conn:
            await conn.execute("UPDATE t SET x = x + 1 WHERE n = $1", first)
            mine.set()
            await theirs.wait()
            await conn.execute("UPDATE t SET x = x + 1 WHERE n = $1", second)

    results = await asyncio.gather(lock(1, 2, *locked), lock(2, 1, *reversed(locked)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NoneType", "TransactionLost"]


@pytest.mark.parametrize("statement", ["SELECT $1::text", "SELECT jsonb_build_object('a', $1::text)"])
async def test_a_character_that_cannot_be_stored_is_the_requests_fault(database, statement):
    with pytest.raises(errors.InvalidRequest, match="cannot be stored"):
        async with database.transaction(None) as conn:
            await conn.fetchval(statement, "a\0b")


async def test_a_wrong_statement_stays_a_bug(database):
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.transaction(None) as conn:
            await conn.execute("SELECT * FROM nothing")


def changed(dsn, **parts):
    split = urlsplit(dsn)
    return urlunsplit(split._replace(**parts))


async def test_nobody_listening_is_database_unavailable_once_the_wait_is_over(postgres_dsn):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        dsn = f"postgresql://x:y@127.0.0.1:{held.getsockname()[1]}/x"
        with pytest.raises(errors.DatabaseUnavailable):
            await db.Database.open(dsn, pool_size=2, statement_cache=0, wait_s=0.3)


async def test_what_waiting_cannot_cure_is_a_setup_error_without_the_password(postgres_dsn):
    split = urlsplit(postgres_dsn)
    wrong = changed(postgres_dsn, netloc=f"{split.username}:wrongsecret@{split.hostname}:{split.port}")
    for dsn in (wrong, changed(postgres_dsn, path="/no_such_database"), "mysql://u:wrongsecret@127.0.0.1/x"):
        with pytest.raises(errors.SetupError) as caught:
            await db.Database.open(dsn, pool_size=2, statement_cache=0)
        assert "wrongsecret" not in caught.value.message


async def test_without_prepared_statements_everything_works(fresh_db):
    opened = await db.Database.open(fresh_db.dsn, pool_size=2, statement_cache=0)
    async with opened.transaction(None) as conn:
        assert await conn.fetchval("SELECT $1::jsonb -> 'd'", {"d": date(2024, 1, 1)}) == "2024-01-01"
    await opened.close()


def server(number, installed, available):
    """A connection to a server of these versions."""

    async def fetchval(_statement):
        return str(number)

    async def fetchrow(_statement):
        return {"installed": installed, "available": available}

    return SimpleNamespace(fetchval=fetchval, fetchrow=fetchrow)


@pytest.mark.parametrize(
    ("number", "installed", "available", "words"),
    [
        (150_020, "0.8.6", "0.8.6", "PostgreSQL 15 is too old"),
        (160_000, None, None, "no pgvector"),
        (170_001, "0.8.1", "0.8.6", "ALTER EXTENSION vector UPDATE"),
        (170_001, "0.7.4", "0.7.4", "update the extension"),
        (170_001, None, "0.6.2", "pgvector 0.6.2 is too old"),
    ],
)
async def test_an_unfit_server_is_refused_in_one_line(number, installed, available, words):
    with pytest.raises(errors.SetupError, match=words) as caught:
        await db.check_server(server(number, installed, available))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("installed", "available"), [("0.8.2", "0.8.6"), (None, "0.10.0"), ("1.0.0", None)])
async def test_a_fit_server_is_accepted(installed, available):
    await db.check_server(server(160_004, installed, available))


async def test_the_test_server_is_fit(conn):
    await db.check_server(conn)


async def test_a_lent_connection_survives_an_error_in_a_transaction(conn, db):
    await conn.execute("CREATE TEMP TABLE t (n integer UNIQUE) ON COMMIT DROP")

    async def insert_again():
        async with db.transaction(None) as deeper:
            assert deeper is conn
            await deeper.execute("INSERT INTO t VALUES (1)")

    async with db.transaction(None) as inner:
        await inner.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(asyncpg.UniqueViolationError):
            await insert_again()
        await inner.execute("INSERT INTO t VALUES (2)")
    assert [row["n"] for row in await conn.fetch("SELECT n FROM t ORDER BY n")] == [1, 2]


async def test_a_lent_connection_serves_one_task_after_the_other(db):
    async def use():
        async with db.transaction(None) as conn:
            return await conn.fetchval("SELECT pg_sleep(0.001)")

    await asyncio.gather(*(use() for _ in range(10)))
