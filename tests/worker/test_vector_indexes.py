"""Large selections go through an approximate index that a search wished for and a worker built."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from app.domain import indexing
from app.model import And, Condition, Operator
from app.store import memories, near, scopes, search, vector_indexes
from tests import factories, fakes
from tests.worker.conftest import Lab

EVERYTHING = And(())
WORDS = [f"w{number}" for number in range(200)]
ROWS = 600


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selection is large from 300 memories on."""
    monkeypatch.setattr(near, "EXACT", 300)


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{' '.join(rng.choices(WORDS, k=6))} n{seed}x{number}" for number in range(count)]


async def fill(lab: Lab, count: int, *, seed: int = 1, **owners: str) -> int:
    """Store memories; return the id of their scope."""
    async with lab.db.transaction(lab.project.id) as conn:
        scope = await factories.make_scope(conn, lab.project, **owners)
        made = [factories.new_memory(scope, text, metadata={"odd": n % 2}) for n, text in enumerate(texts(count, seed))]
        await memories.insert_many(conn, lab.project.id, made, model=fakes.MODEL)
    return scope.id


async def find(lab: Lab, ids: list[int], text: str, node: Any = EVERYTHING, *, limit: int = 20) -> list[Any]:
    async with lab.db.acquire(lab.project.id) as conn:
        count = await scopes.total(conn, lab.project.id)
        where = (conn, lab.project.id, ids, node, fakes.vector(text))
        return await near.semantic(*where, model=fakes.MODEL, limit=limit, count=count)


async def exact(lab: Lab, ids: list[int], text: str, node: Any = EVERYTHING, *, limit: int = 20) -> list[Any]:
    async with lab.db.acquire(lab.project.id) as conn:
        where = (conn, lab.project.id, ids, node, fakes.vector(text))
        return await search.semantic(*where, model=fakes.MODEL, limit=limit)


async def indexes(lab: Lab) -> list[tuple[str, bool]]:
    """Return the approximate indexes that the database has, and whether they can be used."""
    async with lab.db.apart() as conn:
        rows = await conn.fetch(
            "SELECT c.relname::text AS name, i.indisvalid AS valid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid "
            "WHERE c.relname LIKE 'memory\\_vectors\\_near%' ORDER BY 1"
        )
    return [(row["name"], row["valid"]) for row in rows]


async def recall(lab: Lab, ids: list[int]) -> float:
    found = wanted = 0
    for question in texts(20, seed=99):
        right = {memory_id for memory_id, _ in await exact(lab, ids, question)}
        found += len(right & {memory_id for memory_id, _ in await find(lab, ids, question)})
        wanted += len(right)
    return found / wanted


async def test_a_small_selection_is_compared_whole_and_wishes_for_nothing(fresh_lab: Lab) -> None:
    ids = [await fill(fresh_lab, 100)]
    assert await find(fresh_lab, ids, "w1 w2") == await exact(fresh_lab, ids, "w1 w2")
    assert await indexing.tend(fresh_lab.runtime()) is False
    assert await indexes(fresh_lab) == []


async def test_a_large_scope_is_found_through_its_index_as_well_as_by_comparing(fresh_lab: Lab) -> None:
    rt, ids = fresh_lab.runtime(), [await fill(fresh_lab, ROWS)]
    before = await find(fresh_lab, ids, "w1 w2")
    assert before == await exact(fresh_lab, ids, "w1 w2")
    assert await indexing.tend(rt) is True
    assert await indexing.tend(rt) is False
    assert [valid for _, valid in await indexes(fresh_lab)] == [True]
    assert await recall(fresh_lab, ids) >= 0.98
    nearest = await find(fresh_lab, ids, "w1 w2")
    assert nearest[0] == pytest.approx(before[0])
    assert [score for _, score in nearest] == sorted((score for _, score in nearest), reverse=True)


async def test_the_statement_uses_the_index(fresh_lab: Lab) -> None:
    scope = await fill(fresh_lab, ROWS)
    await find(fresh_lab, [scope], "w1")
    await indexing.tend(fresh_lab.runtime())
    async with fresh_lab.db.acquire(fresh_lab.project.id) as conn:
        statement, args = search.filtered(near._NEAR_IN_SCOPE.replace("(384)", f"({fakes.DIMS})"), EVERYTHING, first=7)
        fixed = (fresh_lab.project.id, scope, fakes.MODEL, search.HalfVector(fakes.vector("w1")), 60, 20)
        await conn.execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off")
        plan = await conn.fetch(f"EXPLAIN {statement}", *fixed, *args)
        await conn.execute("RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_sort")
    assert "memory_vectors_near_" in "\n".join(row[0] for row in plan)


async def test_a_filter_that_leaves_little_is_answered_whole(fresh_lab: Lab) -> None:
    ids = [await fill(fresh_lab, ROWS)]
    await find(fresh_lab, ids, "w1")
    await indexing.tend(fresh_lab.runtime())
    odd = Condition("metadata", Operator.EQ, 1, "odd")
    rare = Condition("text", Operator.ICONTAINS, "n1x7")
    assert len(await find(fresh_lab, ids, "w1 w2", odd)) == 20
    assert await find(fresh_lab, ids, "w1 w2", rare) == await exact(fresh_lab, ids, "w1 w2", rare)


async def test_many_small_scopes_share_the_index_of_their_project(fresh_lab: Lab) -> None:
    ids = [await fill(fresh_lab, 60, seed=number, user_id=f"user {number}") for number in range(10)]
    await find(fresh_lab, ids, "w1")
    assert await indexing.tend(fresh_lab.runtime()) is True
    [(name, _)] = await indexes(fresh_lab)
    assert f"_{fresh_lab.project.id}_{vector_indexes.WHOLE}_" in name
    assert await recall(fresh_lab, ids) >= 0.98


async def test_another_project_neither_sees_the_rows_nor_gets_an_index(fresh_lab: Lab) -> None:
    ids = [await fill(fresh_lab, ROWS)]
    await find(fresh_lab, ids, "w1")
    await indexing.tend(fresh_lab.runtime())
    async with fresh_lab.db.transaction(None) as conn:
        other = await factories.make_project(conn)
    async with fresh_lab.db.acquire(other.id) as conn:
        where = (conn, other.id, ids, EVERYTHING, fakes.vector("w1"))
        assert await near.semantic(*where, model=fakes.MODEL, limit=20, count=ROWS) == []
    assert len(await indexes(fresh_lab)) == 1


async def test_what_has_become_small_or_is_gone_loses_its_index(fresh_lab: Lab) -> None:
    rt, scope = fresh_lab.runtime(), await fill(fresh_lab, ROWS)
    await find(fresh_lab, [scope], "w1")
    await indexing.tend(rt)
    async with fresh_lab.db.transaction(fresh_lab.project.id) as conn:
        await memories.delete_where(conn, fresh_lab.project.id, Condition("user_id", Operator.EQ, "alice"))
    assert await indexing.tend(rt) is False
    assert await indexes(fresh_lab) == []
    assert await find(fresh_lab, [scope], "w1") == []


async def test_a_build_that_was_cut_off_is_done_again(fresh_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    rt, ids = fresh_lab.runtime(), [await fill(fresh_lab, ROWS)]
    await find(fresh_lab, ids, "w1")

    async def halfway(owner: Any, index: Any) -> str | None:
        await owner.execute(f"CREATE INDEX {index.name} ON memory_vectors (memory_id)")  # what a dead builder left
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(vector_indexes, "build", halfway)
        with pytest.raises(asyncio.CancelledError):
            await indexing.tend(rt)
    assert await indexing.tend(rt) is True
    assert [valid for _, valid in await indexes(fresh_lab)] == [True]
    assert await recall(fresh_lab, ids) >= 0.98


async def test_a_database_that_does_not_allow_it_is_said_and_searches_compare(
    fresh_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt, ids = fresh_lab.runtime(), [await fill(fresh_lab, ROWS)]
    await find(fresh_lab, ids, "w1")

    async def refused(_owner: Any, _name: str) -> None:
        raise asyncpg.InsufficientPrivilegeError("must be owner of table memory_vectors")

    monkeypatch.setattr(vector_indexes, "drop", refused)
    assert await indexing.tend(rt) is True
    assert await indexing.tend(rt) is False  # not again before tomorrow
    async with fresh_lab.db.acquire(None) as conn:
        assert await vector_indexes.refusal(conn) == "must be owner of table memory_vectors"
    assert await find(fresh_lab, ids, "w1") == await exact(fresh_lab, ids, "w1")
