"""The arms against what they should say, computed in Python; other scopes, filters, models and projects."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from app.model import And, Condition, Not, Operator
from app.store import memories, models, search
from tests import factories, fakes

EVERYTHING = And(())
WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture
async def scope(conn, project):
    return await factories.make_scope(conn, project)


def random_text(rng):
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    return " ".join(rng.choices(WORDS, weights, k=rng.randint(3, 15)))


async def fill(conn, scope, count, *, seed=1, **changes):
    rng = random.Random(seed)
    texts = list(dict.fromkeys(random_text(rng) for _ in range(count)))
    new = [factories.new_memory(scope, text, **changes) for text in texts]
    return await memories.insert_many(conn, scope.project_id, new, model=fakes.MODEL)


def bm25(documents, query):
    """The textbook's formula over {id: text}."""
    bags = {key: factories.terms(text) for key, text in documents.items()}
    lengths = {key: sum(bag.values()) for key, bag in bags.items()}
    average = sum(lengths.values()) / len(lengths)
    scores = {}
    for key, bag in bags.items():
        total = 0.0
        for term in set(query):
            frequency = sum(term in other for other in bags.values())
            idf = math.log(1 + (len(bags) - frequency + 0.5) / (frequency + 0.5))
            tf = bag.get(term, 0)
            total += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths[key] / average))
        if total:
            scores[key] = total
    return scores


async def test_the_keyword_arm_is_bm25_over_the_chosen_scopes(conn, project, scope):
    second = await factories.make_scope(conn, project, user_id="alice", run_id="1")
    other = await factories.make_scope(conn, project, user_id="bob")
    made = await fill(conn, scope, 150) + await fill(conn, second, 60, seed=2)
    await fill(conn, other, 100, seed=3)
    documents = {memory.id: memory.text for memory in made}
    rng = random.Random(4)
    for _ in range(20):
        query = rng.choices(WORDS, k=rng.randint(1, 6)) + ["absent"]
        got = await search.lexical(conn, project.id, [scope.id, second.id], EVERYTHING, query, limit=1000)
        expected = bm25(documents, query)
        assert dict(got).keys() == expected.keys()
        assert all(abs(score - expected[key]) < 1e-6 for key, score in got)
        assert [score for _, score in got] == sorted((score for _, score in got), reverse=True)


async def test_the_keyword_arm_also_scores_memories_that_are_not_among_the_best(conn, project, scope):
    await fill(conn, scope, 100)
    whole = await search.lexical(conn, project.id, [scope.id], EVERYTHING, ["w0"], limit=1000)
    worst = whole[-1][0]
    got = await search.lexical(conn, project.id, [scope.id], EVERYTHING, ["w0"], limit=3, also=[worst, whole[0][0]])
    assert got == [*whole[:3], whole[-1]]


async def test_a_selective_filter_finds_the_best_of_what_it_leaves(conn, project, scope):
    made = await fill(conn, scope, 120, metadata={"kind": "common"})
    await fill(conn, scope, 6, seed=9, metadata={"kind": "rare"})
    rare = Condition("metadata", Operator.EQ, "rare", "kind")
    direction = fakes.vector(made[0].text)
    near = await search.semantic(conn, project.id, [scope.id], rare, direction, model=fakes.MODEL, limit=3)
    assert len(near) == 3
    every = await search.semantic(conn, project.id, [scope.id], EVERYTHING, direction, model=fakes.MODEL, limit=500)
    allowed = {memory.id for memory in (await memories.list_page(conn, project.id, rare, limit=99, offset=0))[1]}
    assert near == [row for row in every if row[0] in allowed][:3]
    words = await search.lexical(conn, project.id, [scope.id], EVERYTHING, ["w0", "w1"], limit=500)
    got = await search.lexical(conn, project.id, [scope.id], rare, ["w0", "w1"], limit=3)
    assert got == [row for row in words if row[0] in allowed][:3]


async def test_the_semantic_arm_is_an_exact_search_by_cosine(conn, project, scope):
    made = await fill(conn, scope, 200)
    query = fakes.vector("w1 w2 w3")
    expected = sorted(((float(fakes.vector(memory.text) @ query), memory.id) for memory in made), reverse=True)
    got = await search.semantic(conn, project.id, [scope.id], EVERYTHING, query, model=fakes.MODEL, limit=10)
    assert np.allclose([score for _, score in got], [score for score, _ in expected[:10]], atol=2e-3)  # half precision


async def test_vectors_of_another_model_are_never_compared(conn, project, scope):
    await models.register(conn, "other", fakes.DIMS)
    other = factories.new_memory(scope, "blue van")
    await memories.insert_many(conn, project.id, [other], model="other")
    query = fakes.vector("blue van")
    assert await search.semantic(conn, project.id, [scope.id], EVERYTHING, query, model=fakes.MODEL, limit=5) == []
    (found,) = await search.found(conn, project.id, [other.id], query, model=fakes.MODEL)
    assert found.cosine is None


async def test_the_entity_arm_puts_more_and_rarer_names_first(conn, project, scope):
    both = await factories.make_memory(conn, scope, "Anna met Oskar")
    rare = await factories.make_memory(conn, scope, "Oskar left")
    common = [await factories.make_memory(conn, scope, f"Anna {number}") for number in range(3)]
    rows = await search.by_entity(conn, project.id, [scope.id], EVERYTHING, ["anna", "oskar", "oskar"], limit=9)
    assert rows[:2] == [(both.id, 1.0, 2), (rare.id, 0.5, 2)]
    assert {row[0] for row in rows[2:]} == {memory.id for memory in common}
    assert {row[1:] for row in rows[2:]} == {(0.5, 4)}
    left = Not(Condition("text", Operator.CONTAINS, "Oskar"))
    assert len(await search.by_entity(conn, project.id, [scope.id], left, ["anna"], limit=9)) == 3


async def test_the_memory_before_is_the_one_that_was_said_before_in_the_scope(conn, project, scope):
    at = datetime(2024, 1, 1, tzinfo=UTC)
    other = await factories.make_scope(conn, project, user_id="bob")
    first = await factories.make_memory(conn, scope, "one", created_at=at)
    await factories.make_memory(conn, other, "between", created_at=at)
    second = await factories.make_memory(conn, scope, "two", created_at=at)
    third = await factories.make_memory(conn, scope, "three", created_at=at + timedelta(days=1))
    rows = await search.found(conn, project.id, [third.id, first.id, second.id], fakes.vector("one"), model=fakes.MODEL)
    assert {row.id: row.follows for row in rows} == {first.id: None, second.id: first.id, third.id: second.id}
    by_id = {row.id: row for row in rows}
    assert by_id[first.id].cosine == pytest.approx(1, abs=1e-3)


async def test_frequencies_count_memories_of_the_scopes(conn, project, scope):
    await factories.make_memory(conn, scope, "tea and more tea")
    await factories.make_memory(conn, scope, "tea")
    counted = await search.frequencies(conn, project.id, [scope.id], ["tea", "more", "coffee"])
    assert counted == (2, {"tea": 2, "more": 1})
    assert await search.frequencies(conn, project.id, [], ["tea"]) == (0, {})


async def test_no_arm_sees_another_project(conn, project, scope):
    stranger = await factories.make_project(conn)
    memory = await factories.make_memory(conn, scope, "Anna likes tea")
    query = fakes.vector("tea")
    assert await search.semantic(conn, stranger.id, [scope.id], EVERYTHING, query, model=fakes.MODEL, limit=9) == []
    assert await search.lexical(conn, stranger.id, [scope.id], EVERYTHING, ["tea"], limit=9, also=[memory.id]) == []
    assert await search.by_entity(conn, stranger.id, [scope.id], EVERYTHING, ["anna"], limit=9) == []
    assert await search.found(conn, stranger.id, [memory.id], query, model=fakes.MODEL) == []
    assert await search.frequencies(conn, stranger.id, [scope.id], ["tea"]) == (0, {})
