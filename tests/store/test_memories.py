"""Memories one at a time: what is written, what is read, and what another project sees."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from uuid import uuid4

import numpy as np
import pytest
from uuid_utils.compat import uuid7

from app import errors
from app.model import And, Condition, Entity, Message, Operator
from app.store import history, memories, messages
from tests import factories, fakes
from tests.store.ledger import assert_in_step

ALICE = Condition("user_id", Operator.EQ, "alice")


@pytest.fixture
async def scope(conn, project):
    return await factories.make_scope(conn, project)


@pytest.fixture
async def stranger(conn):
    """Another project."""
    return await factories.make_project(conn)


def rewording(text, **changes):
    """What an update to `text` changes."""
    return memories.MemoryEdit(
        text=text,
        hash=factories.md5(text),
        embedding=fakes.vector(text),
        model=fakes.MODEL,
        terms=factories.terms(text),
        entities=factories.entities(text),
        **changes,
    )


async def test_a_memory_is_read_back_with_everything_it_was_given(conn, project, scope):
    given = factories.new_memory(
        scope,
        "Alice 喜欢 tea 🍵",
        role="user",
        actor="Al",
        metadata={"deep": {"list": [1, 2.5, None, "x"]}, "big": 2**53 + 1},
        categories=("food", "misc"),
        immutable=True,
        expiration_date=date(2030, 1, 2),
        event_id=uuid7(),
        position=3,
        happened_from=datetime(2023, 5, 1, tzinfo=UTC),
        happened_to=datetime(2023, 5, 2, 1, 2, 3, 456_789, tzinfo=UTC),
        created_at=datetime(2023, 5, 8, 13, 56, 0, 1, tzinfo=UTC),
    )
    [stored] = await memories.insert_many(conn, project.id, [given], model=fakes.MODEL)
    for name in ("id", "scope_id", "owners", "text", "hash", "role", "actor", "metadata", "categories", "immutable",
                 "expiration_date", "event_id", "position", "happened_from", "happened_to", "created_at"):  # fmt: skip
        assert getattr(stored, name) == getattr(given, name), name
    assert await memories.get(conn, project.id, given.id) == stored
    assert await memories.get_many(conn, project.id, [given.id, uuid4()]) == {given.id: stored}


async def test_a_memory_without_a_time_gets_the_clock_of_the_database(conn, project, scope):
    before = await conn.fetchval("SELECT clock_timestamp()")
    made = await memories.insert_many(
        conn, project.id, [factories.new_memory(scope, text) for text in ("one", "two")], model=fakes.MODEL
    )
    assert before <= made[0].created_at <= await conn.fetchval("SELECT clock_timestamp()")
    assert len({instant for memory in made for instant in (memory.created_at, memory.updated_at)}) == 1


async def test_added_memories_come_back_in_the_given_order_without_those_that_exist(conn, project, scope):
    old = await factories.make_memory(conn, scope, "old")
    given = [factories.new_memory(scope, text) for text in ("b", "old", "a", "c", "a")]
    made = await memories.insert_many(conn, project.id, given, model=fakes.MODEL)
    assert [memory.text for memory in made] == ["b", "a", "c"]
    assert made[1].id == given[2].id, "of equal texts the first wins"
    assert await memories.insert_many(conn, project.id, given, model=fakes.MODEL) == []
    assert await memories.get(conn, project.id, old.id) == old
    await assert_in_step(conn)


async def test_one_text_lives_once_in_each_scope(conn, project, scope):
    other = await factories.make_scope(conn, project, user_id="alice", run_id="r")
    both = [factories.new_memory(each, "same") for each in (other, scope)]
    assert len(await memories.insert_many(conn, project.id, both, model=fakes.MODEL)) == 2
    pairs = [(scope.id, factories.md5("same")), (other.id, factories.md5("same")), (scope.id, factories.md5("no"))]
    assert await memories.known_hashes(conn, project.id, pairs) == set(pairs[:2])


async def test_nothing_added_is_nothing_done(conn, project):
    assert await memories.insert_many(conn, project.id, [], model=fakes.MODEL) == []
    assert await memories.delete(conn, project.id, []) == []
    assert await memories.known_hashes(conn, project.id, []) == set()


async def test_vectors_keep_their_direction(conn, project, scope):
    memory = await factories.make_memory(conn, scope, "green tea")
    row = await conn.fetchrow("SELECT model, embedding FROM memory_vectors WHERE memory_id = $1", memory.id)
    assert row["model"] == fakes.MODEL
    assert np.allclose(row["embedding"].to_numpy(), fakes.vector("green tea"), atol=1e-3)


async def test_terms_that_do_not_fit_are_cut_or_left_out(conn, project, scope):
    terms = {"tea": 40_000, "x" * 5_000: 1, "茶" * 300: 2}
    memory = await factories.make_memory(conn, scope, "much tea", terms=terms)
    rows = await conn.fetch("SELECT term, tf, dl FROM terms WHERE memory_id = $1 ORDER BY term", memory.id)
    assert [tuple(row) for row in rows] == [("tea", 32_767, 32_769), ("茶" * 300, 2, 32_769)]
    await assert_in_step(conn)


async def test_a_memory_without_terms_and_entities_is_a_memory(conn, project, scope):
    memory = await factories.make_memory(conn, scope, "…", terms={}, entities=())
    assert await memories.delete(conn, project.id, [memory.id]) == [memory.id]
    await assert_in_step(conn)


async def test_a_name_is_one_entity_of_its_scope_as_it_was_written_first(conn, project, scope):
    await factories.make_memory(conn, scope, "first", entities=(Entity("Zoë", "zoë"), Entity("n" * 4_000, "n" * 4_000)))
    await factories.make_memory(conn, scope, "second", entities=(Entity("ZOË", "zoë", "QUOTED"),))
    rows = await conn.fetch("SELECT name, kind FROM entities WHERE project_id = $1", project.id)
    assert [tuple(row) for row in rows] == [("Zoë", "PROPER")]
    assert await conn.fetchval("SELECT count(*) FROM memory_entities WHERE project_id = $1", project.id) == 2


async def test_a_memory_knows_the_parts_of_messages_that_it_came_from(conn, project, scope):
    event = uuid7()
    said = await messages.insert_many(conn, project.id, scope.id, event, [Message("user", "I like tea. Truly.")])
    await factories.make_memory(
        conn, scope, "likes tea", message_ids=(said[0].id, said[0].id), spans=((0, 11), (12, 18))
    )
    rows = await conn.fetch("SELECT message_id, span_start, span_end FROM memory_sources ORDER BY span_start")
    assert [tuple(row) for row in rows] == [(said[0].id, 0, 11), (said[0].id, 12, 18)]


async def test_an_update_replaces_what_finds_the_memory(conn, project, scope):
    memory = await factories.make_memory(conn, scope, "Alice drinks Coffee")
    await factories.make_memory(conn, scope, "Alice has a cat")
    new = await memories.update(conn, project.id, memory.id, rewording("Alice drinks Tea and tea"))
    assert (new.text, new.hash) == ("Alice drinks Tea and tea", factories.md5("Alice drinks Tea and tea"))
    assert new.updated_at > memory.updated_at
    assert new.created_at == memory.created_at
    assert new == await memories.get(conn, project.id, memory.id)
    norms = await conn.fetch("SELECT norm FROM entities WHERE project_id = $1 ORDER BY norm", project.id)
    assert [row["norm"] for row in norms] == ["alice", "tea"]
    embedding = await conn.fetchval("SELECT embedding FROM memory_vectors WHERE memory_id = $1", memory.id)
    assert np.allclose(embedding.to_numpy(), fakes.vector(new.text), atol=1e-3)
    await assert_in_step(conn)


async def test_an_update_changes_only_what_it_names(conn, project, scope):
    memory = await factories.make_memory(
        conn, scope, "tea", metadata={"n": 10**30}, categories=("food",), expiration_date=date(2030, 1, 1)
    )
    moved = datetime(2020, 2, 3, tzinfo=UTC)
    new = await memories.update(
        conn, project.id, memory.id, memories.MemoryEdit(expiration_date=None, created_at=moved)
    )
    assert new == replace(memory, expiration_date=None, created_at=moved, updated_at=new.updated_at)
    assert await conn.fetchval("SELECT metadata ->> 'n' FROM memories WHERE id = $1", memory.id) == str(10**30)
    cleared = await memories.update(conn, project.id, memory.id, memories.MemoryEdit(metadata=None, categories=None))
    assert (cleared.metadata, cleared.categories) == (None, None)


async def test_history_tells_every_change_in_order_and_survives_the_memory(conn, project, scope):
    said = ({"role": "user", "content": "I like tea"},)
    asked = uuid7()
    memory = await factories.make_memory(conn, scope, "likes tea", metadata={"a": 1}, categories=("food",), input=said)
    await memories.update(conn, project.id, memory.id, rewording("likes coffee", input=said, event_id=asked))
    await memories.update(conn, project.id, memory.id, memories.MemoryEdit(metadata={"a": 2}))
    await memories.update(conn, project.id, memory.id, memories.MemoryEdit(expiration_date=date(2030, 1, 1)))
    await memories.delete(conn, project.id, [memory.id])
    changes = await history.list_for(conn, project.id, memory.id)
    assert [(c.event, c.old_text, c.new_text, c.metadata, c.input) for c in changes] == [
        ("ADD", None, "likes tea", {"a": 1}, list(said)),
        ("UPDATE", "likes tea", "likes coffee", {"a": 1}, list(said)),
        ("UPDATE", "likes coffee", "likes coffee", {"a": 2}, []),
        ("DELETE", "likes coffee", None, {"a": 2}, []),
    ]
    assert {(c.memory_id, c.owners, c.categories, c.created_at) for c in changes} == {
        (memory.id, scope.owners, ("food",), memory.created_at)
    }
    assert [c.updated_at for c in changes] == sorted({c.updated_at for c in changes})
    assert await conn.fetchval("SELECT event_id FROM history WHERE event = 'UPDATE' ORDER BY id LIMIT 1") == asked


async def test_an_update_to_another_memorys_text_is_a_conflict_and_changes_nothing(conn, project, scope):
    tea, milk = [await factories.make_memory(conn, scope, text) for text in ("tea", "milk")]
    with pytest.raises(errors.Conflict):
        await memories.update(conn, project.id, tea.id, rewording("milk"))
    assert await memories.get(conn, project.id, tea.id) == tea
    assert (await memories.update(conn, project.id, milk.id, rewording("milk"))).text == "milk"
    await assert_in_step(conn)


async def test_a_new_text_must_come_with_what_is_made_from_it(conn, project, scope):
    memory = await factories.make_memory(conn, scope, "tea")
    with pytest.raises(ValueError, match="needs its hash"):
        await memories.update(conn, project.id, memory.id, memories.MemoryEdit(text="milk"))


async def test_a_delete_takes_everything_but_the_history_along(conn, project, scope):
    first, second = [await factories.make_memory(conn, scope, f"Alice and {name}") for name in ("Bob", "Carol")]
    assert await memories.delete(conn, project.id, [first.id, uuid4()]) == [first.id]
    with pytest.raises(errors.MemoryNotFound):
        await memories.get(conn, project.id, first.id)
    assert await memories.delete(conn, project.id, [first.id]) == []
    assert await memories.get(conn, project.id, second.id) == second
    norms = await conn.fetch("SELECT norm FROM entities WHERE project_id = $1 ORDER BY norm", project.id)
    assert [row["norm"] for row in norms] == ["alice", "carol"]
    assert [c.event for c in await history.list_for(conn, project.id, first.id)] == ["ADD", "DELETE"]
    await assert_in_step(conn)


async def test_what_a_memory_superseded_is_found_through_the_whole_chain(conn, project, scope, stranger):
    first, second, third, other = [await factories.make_memory(conn, scope, f"n{n}") for n in range(4)]
    for old, new in ((first, second), (second, third), (third, first)):  # a circle must end
        await conn.execute("UPDATE memories SET replaced_by = $2 WHERE id = $1", old.id, new.id)
    assert set(await memories.superseded_by(conn, project.id, third)) == {first.id, second.id}
    assert await memories.superseded_by(conn, project.id, other) == []
    assert await memories.superseded_by(conn, stranger.id, third) == []


async def test_delete_where_deletes_what_matches_in_many_rounds(conn, project, scope):
    other = await factories.make_scope(conn, project, user_id="bob")
    many = [factories.new_memory(scope, f"number {n}") for n in range(1_005)]
    await memories.insert_many(conn, project.id, [*many, factories.new_memory(other, "stays")], model=fakes.MODEL)
    keep = Condition("text", Operator.CONTAINS, "number 77")
    assert await memories.delete_where(conn, project.id, And((ALICE, keep))) == 11
    assert await memories.delete_where(conn, project.id, ALICE) == 994
    assert await memories.delete_where(conn, project.id, ALICE) == 0
    total, rest = await memories.list_page(conn, project.id, And(()), limit=10, offset=0)
    assert (total, [memory.text for memory in rest]) == (1, ["stays"])
    await assert_in_step(conn)


async def test_a_page_is_newest_first_and_later_ids_win_ties(conn, project, scope):
    days = [datetime(2024, 1, day, tzinfo=UTC) for day in (2, 1, 3, 2)]
    made = [await factories.make_memory(conn, scope, f"n{n}", created_at=day) for n, day in enumerate(days)]
    total, page = await memories.list_page(conn, project.id, ALICE, limit=3, offset=0)
    assert (total, [memory.text for memory in page]) == (4, ["n2", "n3", "n0"])
    assert page[0] == made[2]
    assert await memories.list_page(conn, project.id, ALICE, limit=3, offset=3) == (4, [made[1]])
    assert await memories.list_page(conn, project.id, ALICE, limit=3, offset=4) == (4, [])
    nobody = Condition("user_id", Operator.EQ, "nobody")
    assert await memories.list_page(conn, project.id, nobody, limit=3, offset=0) == (0, [])


async def test_another_project_sees_and_changes_nothing(conn, project, scope, stranger):
    memory = await factories.make_memory(conn, scope, "secret")
    everything = And(())
    assert await memories.get_many(conn, stranger.id, [memory.id]) == {}
    assert await memories.known_hashes(conn, stranger.id, [(scope.id, memory.hash)]) == set()
    assert await memories.list_page(conn, stranger.id, everything, limit=10, offset=0) == (0, [])
    assert await memories.delete(conn, stranger.id, [memory.id]) == []
    assert await memories.delete_where(conn, stranger.id, everything) == 0
    assert await history.list_for(conn, stranger.id, memory.id) == []
    with pytest.raises(errors.MemoryNotFound):
        await memories.get(conn, stranger.id, memory.id)
    with pytest.raises(errors.MemoryNotFound):
        await memories.update(conn, stranger.id, memory.id, rewording("changed"))
    with pytest.raises(errors.NotFound):
        await memories.insert_many(conn, stranger.id, [factories.new_memory(scope, "planted")], model=fakes.MODEL)
    assert await memories.get(conn, project.id, memory.id) == memory
    await assert_in_step(conn)
