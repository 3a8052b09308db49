"""Transactions that lose: to a deadlock, to a race, to a real one in the opposite order. Nobody hears of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from tests.faults.history import History
from tests.faults.world import World

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SHARE = 0.05  # of statements that lose; a transaction has several
TABLES = ("memories", "events", "history")
LOSING = """
CREATE SEQUENCE lost;
GRANT ALL ON SEQUENCE lost TO PUBLIC;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF random() < {share} THEN
        PERFORM nextval('lost');
        RAISE EXCEPTION 'lost' USING ERRCODE = '{code}';
    END IF;
    RETURN NULL;
END $$;
"""


@pytest.fixture(params=["40P01", "40001"])
def losing(world: World, request: pytest.FixtureRequest) -> Iterator[World]:
    """Let statements that write lose now and then, as the code says."""
    for statement in LOSING.format(share=SHARE, code=request.param).split(";\n", 2):
        world.rows(statement)
    for table in TABLES:
        world.rows(f"CREATE TRIGGER lose AFTER INSERT OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION lose()")
    yield world
    for table in TABLES:
        world.rows(f"DROP TRIGGER lose ON {table}")
    world.rows("DROP FUNCTION lose()")
    world.rows("DROP SEQUENCE lost")


def test_what_loses_is_done_again_and_nobody_hears_of_it(losing: World) -> None:
    history = History(losing)
    history.adds(range(40))
    with losing.client() as client:
        for number in range(10):
            body = {"messages": f"I like tea number {number}.", "user_id": "again", "infer": False}
            made = client.post("/v3/memories/add/", json=body)
            assert made.status_code == 200, made.text
            assert client.delete(f"/v1/memories/{made.json()['results'][0]['id']}/").status_code == 200
    history.check()
    assert not history.refused
    assert losing.value("SELECT last_value FROM lost") > 3  # a sequence keeps what is rolled back
    attempts = losing.rows(
        "SELECT attempts FROM events WHERE kind = 'ADD' AND payload::text LIKE $1", f"%{history.name}-%"
    )
    assert {row["attempts"] for row in attempts} == {1}


def test_locks_in_the_opposite_order_are_waited_out(world: World, history: History) -> None:
    """Another session locks memories and scopes the wrong way round, over and over, while memories change."""
    history.adds(range(8))
    history.settle()
    world.rows("ALTER DATABASE memoryd SET deadlock_timeout = '20ms'")
    ids = [row["id"] for row in world.rows("SELECT id FROM memories ORDER BY id")]
    killed = [0]

    async def meddle(stop: asyncio.Event) -> None:
        conn = await asyncpg.connect(world.postgres.dsn)
        while not stop.is_set():
            with contextlib.suppress(asyncpg.DeadlockDetectedError):
                async with conn.transaction():
                    for one in reversed(ids):
                        await conn.execute("SELECT FROM memories WHERE id = $1 FOR UPDATE", one)
                    await asyncio.sleep(0.02)
                    await conn.execute("SELECT FROM scopes FOR UPDATE")
                continue
            killed[0] += 1
        await conn.close()

    async def change() -> list[Any]:
        stop = asyncio.Event()
        meddling = asyncio.create_task(meddle(stop))
        found = await asyncio.to_thread(_changes, world, ids)
        stop.set()
        await meddling
        return found

    statuses = world.run(change())
    world.rows("ALTER DATABASE memoryd RESET deadlock_timeout")
    assert set(statuses) == {200}
    history.adds(range(8, 12))
    history.check()


def _changes(world: World, ids: list[Any]) -> list[int]:
    found = []
    for project in world.projects:
        with world.client(project) as client:
            mine = [
                one["id"] for one in client.post("/v3/memories/", json={"filters": {"user_id": "*"}}).json()["results"]
            ]
            for number in range(3):
                items = [{"memory_id": one, "metadata": {"turn": number}} for one in mine]
                found.append(client.put("/v1/batch/", json={"memories": items}).status_code)
    return found
