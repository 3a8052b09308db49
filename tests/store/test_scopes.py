"""Scopes: one for each combination of owners, made once."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from app import errors
from app.model import And, Condition, Not, Operator, Or, Owners
from app.store import scopes
from tests import factories

COMBINATIONS = [
    Owners(*values) for values in itertools.product((None, "a", "b"), repeat=4) if any(value for value in values)
]


async def test_each_combination_of_owners_is_a_scope_of_its_own(conn, project):
    made = [await scopes.ensure(conn, project.id, owners) for owners in COMBINATIONS]
    assert len({scope.id for scope in made}) == len(COMBINATIONS)
    assert [await scopes.ensure(conn, project.id, owners) for owners in COMBINATIONS] == made
    assert [await scopes.get(conn, project.id, scope.id) for scope in made] == made


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Owners(user_id="a1:b"), Owners(user_id="a", agent_id="b")),
        (Owners(user_id="A"), Owners(user_id="a")),
        (Owners(user_id="é"), Owners(user_id="e\u0301")),
        (Owners(user_id="x"), Owners(run_id="x")),
    ],
)
async def test_owners_that_look_alike_do_not_share_a_scope(conn, project, first, second):
    assert (await scopes.ensure(conn, project.id, first)).id != (await scopes.ensure(conn, project.id, second)).id


async def test_the_longest_owner_ids_fit(conn, project):
    import random

    rng = random.Random(1)  # nothing that could be compressed
    longest = Owners(*("".join(chr(rng.randint(0x20000, 0x2A000)) for _ in range(255)) for _ in range(4)))
    scope = await scopes.ensure(conn, project.id, longest)
    assert await scopes.ensure(conn, project.id, longest) == scope
    assert await scopes.get(conn, project.id, scope.id) == scope


async def test_owners_get_their_own_rows_again_after_they_were_deleted(conn, project):
    owners = Owners(user_id="alice", run_id="r1")
    scope = await scopes.ensure(conn, project.id, owners)
    await conn.execute("DELETE FROM owners WHERE project_id = $1 AND kind = 'run'", project.id)
    assert await scopes.ensure(conn, project.id, owners) == scope
    rows = await conn.fetch("SELECT kind, name FROM owners WHERE project_id = $1 ORDER BY kind", project.id)
    assert [tuple(row) for row in rows] == [("run", "r1"), ("user", "alice")]


async def test_matching_finds_scopes_by_owner_and_passes_over_what_it_cannot_know(conn, project):
    alice = await factories.make_scope(conn, project, user_id="alice")
    run = await factories.make_scope(conn, project, user_id="alice", run_id="r")
    agent = await factories.make_scope(conn, project, agent_id="bot")
    is_alice = Condition("user_id", Operator.EQ, "alice")
    any_run = Condition("run_id", Operator.ANY)
    tea = Condition("text", Operator.CONTAINS, "tea")
    assert await scopes.matching(conn, project.id, None) == [alice.id, run.id, agent.id]
    assert await scopes.matching(conn, project.id, is_alice) == [alice.id, run.id]
    assert await scopes.matching(conn, project.id, And((is_alice, Not(any_run), tea))) == [alice.id]
    assert await scopes.matching(conn, project.id, Or((is_alice, tea))) == [alice.id, run.id, agent.id]


async def test_another_project_finds_no_scope(conn, project):
    scope = await factories.make_scope(conn, project)
    stranger = await factories.make_project(conn)
    assert await scopes.matching(conn, stranger.id, None) == []
    with pytest.raises(errors.NotFound):
        await scopes.get(conn, stranger.id, scope.id)
    with pytest.raises(errors.NotFound):
        await scopes.lock(conn, stranger.id, [scope.id])
    await scopes.count(conn, stranger.id, {scope.id: (5, 5)})
    assert await conn.fetchval("SELECT memory_count FROM scopes WHERE id = $1", scope.id) == 0
    assert (await scopes.ensure(conn, stranger.id, scope.owners)).id != scope.id


async def test_many_at_once_make_one_scope(fresh_db):
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)

    async def ensure():
        async with fresh_db.db.transaction(project.id) as conn:
            return await scopes.ensure(conn, project.id, Owners(user_id="alice", app_id="chat"))

    assert len({scope.id for scope in await asyncio.gather(*(ensure() for _ in range(40)))}) == 1
