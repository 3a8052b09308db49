"""In a large selection the commonest words bring nobody, and count for those that others have brought."""

from __future__ import annotations

import random

import pytest

from app.model import And, Condition, Operator
from app.store import keyword, memories, near, search
from tests import factories, fakes

EVERYTHING = And(())
WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A selection is large from 100 memories on, and words bring 60."""
    monkeypatch.setattr(near, "EXACT", 100)
    monkeypatch.setattr(keyword, "CANDIDATES", 60)


@pytest.fixture
async def scope_ids(conn, project):
    rng, ids = random.Random(7), []
    weights = [1 / (place + 1) for place in range(len(WORDS))]
    for user in ("alice", "bob"):
        scope = await factories.make_scope(conn, project, user_id=user)
        texts = dict.fromkeys(" ".join(rng.choices(WORDS, weights, k=rng.randint(3, 12))) for _ in range(200))
        made = [factories.new_memory(scope, text) for text in texts]
        await memories.insert_many(conn, project.id, made, model=fakes.MODEL)
        ids.append(scope.id)
    return ids


async def ask(conn, project, scope_ids, terms, *, node=EVERYTHING, limit=30, also=()):
    """Return what the arm found, and what it finds when it looks at everything."""
    count, frequencies = await search.frequencies(conn, project.id, scope_ids, terms)
    where = (conn, project.id, scope_ids, node, terms)
    found = await keyword.lexical(*where, limit=limit, also=also, count=count, frequencies=frequencies)
    return found, await search.lexical(*where, limit=1000, also=also), frequencies


async def test_scores_are_those_of_the_whole(conn, project, scope_ids):
    found, whole, _ = await ask(conn, project, scope_ids, ["w0", "w1", "w40"])
    right = dict(whole)
    assert found
    assert [right[memory_id] for memory_id, _ in found] == pytest.approx([score for _, score in found])
    assert found == sorted(found, key=lambda row: (-row[1], row[0]))


async def test_the_best_that_have_a_rare_word_are_all_found(conn, project, scope_ids):
    found, whole, frequencies = await ask(conn, project, scope_ids, ["w0", "w40", "w41"])
    assert frequencies["w0"] > 60 > frequencies["w40"] + frequencies["w41"]
    rows = await memories.get_many(conn, project.id, [memory_id for memory_id, _ in whole])
    rare = [memory_id for memory_id, _ in whole if {"w40", "w41"} & set(rows[memory_id].text.split())]
    assert [memory_id for memory_id, _ in found] == rare[:30]


async def test_common_words_alone_find_as_well(conn, project, scope_ids):
    found, whole, frequencies = await ask(conn, project, scope_ids, ["w0", "w1"])
    assert min(frequencies.values()) > 60
    assert len(found) == 30
    assert found[0] == pytest.approx(whole[0])


async def test_what_another_arm_found_gets_its_score(conn, project, scope_ids):
    _, whole, _ = await ask(conn, project, scope_ids, ["w0", "w50"])
    also = [memory_id for memory_id, _ in whole[-3:]]
    found, _, _ = await ask(conn, project, scope_ids, ["w0", "w50"], limit=1, also=also)
    assert dict(found).keys() >= set(also)
    assert {memory_id: score for memory_id, score in found if memory_id in also} == pytest.approx(dict(whole[-3:]))


async def test_a_filter_holds(conn, project, scope_ids):
    bobs = Condition("user_id", Operator.EQ, "bob")
    found, whole, _ = await ask(conn, project, scope_ids, ["w0", "w40"], node=bobs)
    assert found
    assert {memory_id for memory_id, _ in found} <= {memory_id for memory_id, _ in whole}


async def test_words_that_are_nowhere_find_nothing(conn, project, scope_ids):
    assert (await ask(conn, project, scope_ids, ["nowhere"]))[0] == []
