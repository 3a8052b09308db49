"""Random sequences of changes, and many connections at once: the counts stay right."""

from __future__ import annotations

import asyncio
import random

import pytest

from app import errors
from app.model import And, Condition, Operator
from app.store import memories
from tests import factories, fakes
from tests.store.ledger import assert_in_step
from tests.store.test_memories import rewording

NAMES = ("Ann", "Bob", "Cem", "Dan", "Eve", "Fay")


def sentence(rng):
    return " ".join(rng.choices((*NAMES, "likes", "tea", "cats", "cats", "paris"), k=rng.randint(1, 5)))


@pytest.mark.parametrize("seed", range(6))
async def test_counts_stay_right_after_any_sequence_of_changes(conn, project, seed):
    rng = random.Random(seed)
    scopes = [await factories.make_scope(conn, project, user_id=name) for name in ("u1", "u2")]
    alive = {}
    for _ in range(60):
        match rng.choice(("add", "add", "update", "delete", "delete_where")):
            case "add":
                new = [factories.new_memory(rng.choice(scopes), sentence(rng)) for _ in range(rng.randint(1, 6))]
                alive |= {m.id: m.text for m in await memories.insert_many(conn, project.id, new, model=fakes.MODEL)}
            case "update" if alive:
                memory_id, text = rng.choice(list(alive)), sentence(rng)
                try:
                    alive[memory_id] = (await memories.update(conn, project.id, memory_id, rewording(text))).text
                except errors.Conflict:
                    assert text in alive.values()
            case "delete":
                for gone in await memories.delete(conn, project.id, rng.sample(list(alive), min(len(alive), 3))):
                    del alive[gone]
            case "delete_where":
                word = rng.choice(NAMES)
                condition = And((Condition("user_id", Operator.EQ, "u1"), Condition("text", Operator.CONTAINS, word)))
                await memories.delete_where(conn, project.id, condition)
                alive = {m.id: m.text for m in (await memories.get_many(conn, project.id, list(alive))).values()}
        await assert_in_step(conn)
    found = await memories.get_many(conn, project.id, list(alive))
    assert {memory_id: memory.text for memory_id, memory in found.items()} == alive


async def test_a_hundred_identical_adds_at_once_leave_one_memory(fresh_db):
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
        scope = await factories.make_scope(conn, project)

    async def add():
        async with fresh_db.db.transaction(project.id) as conn:
            return await memories.insert_many(
                conn, project.id, [factories.new_memory(scope, "Alice likes tea")], model=fakes.MODEL
            )

    made = await asyncio.gather(*(add() for _ in range(100)))
    assert sum(len(each) for each in made) == 1
    async with fresh_db.db.acquire(project.id) as conn:
        assert await conn.fetchval("SELECT count(*) FROM memories") == 1
        await assert_in_step(conn)


async def test_writers_of_the_same_facts_in_any_order_never_deadlock(fresh_db):
    """Adds to two scopes, updates and deletes, all of the same thirty texts, each in an order of its own."""
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
        scopes = [await factories.make_scope(conn, project, user_id=name) for name in ("u1", "u2")]
    texts = [f"{rng} knows {name}" for rng, name in zip(range(30), NAMES * 5, strict=True)]

    async def work(number):
        rng = random.Random(number)
        new = [factories.new_memory(scope, text) for scope in scopes for text in texts]
        rng.shuffle(new)
        async with fresh_db.db.transaction(project.id) as conn:
            await memories.insert_many(conn, project.id, new, model=fakes.MODEL)
        async with fresh_db.db.transaction(project.id) as conn:
            _, page = await memories.list_page(conn, project.id, And(()), limit=60, offset=0)
        async with fresh_db.db.transaction(project.id) as conn:
            await memories.delete(conn, project.id, [memory.id for memory in rng.sample(page, len(page) // 3)])
        for memory in rng.sample(page, len(page) // 5):
            try:
                async with fresh_db.db.transaction(project.id) as conn:
                    await memories.update(conn, project.id, memory.id, rewording(f"{memory.text} well {number}"))
            except errors.MemoryNotFound:
                continue  # another worker deleted it

    await asyncio.gather(*(work(number) for number in range(12)))
    async with fresh_db.db.acquire(project.id) as conn:
        await assert_in_step(conn)


async def test_an_add_is_accepted_while_another_writes_to_its_scope(fresh_db):
    """A row that refers to the scope, such as an event's, need not wait for whoever holds the scope."""
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
        scope = await factories.make_scope(conn, project)
    async with fresh_db.db.transaction(project.id) as writer:
        await factories.make_memory(writer, scope, "slow")
        async with fresh_db.db.transaction(project.id) as other:
            await other.execute("SET LOCAL lock_timeout = '2s'")
            await other.execute(
                "INSERT INTO events (project_id, id, kind, scope_id, payload) VALUES ($1, gen_random_uuid(), 'ADD', $2, '{}')",
                project.id,
                scope.id,
            )
