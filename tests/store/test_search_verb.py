"""The search verb over a real database, with an embedder of hashed words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from uuid_utils.compat import uuid7

from app import errors
from app.domain import filters, lexemes, link, search
from app.model import Caller
from app.store import memories
from tests import factories, fakes


@pytest.fixture
def caller(project):
    return Caller(project=project, key_id=uuid7(), email="test@localhost")


@pytest.fixture
async def scope(conn, project):
    return await factories.make_scope(conn, project)


async def store(conn, scope, *texts, **changes):
    """Store texts as an add does, analysed in earnest."""
    new = [
        factories.new_memory(
            scope,
            text,
            terms=lexemes.document(text, actor=None, said_at=None, previous=None),
            entities=link.entities(text),
            **changes,
        )
        for text in texts
    ]
    return await memories.insert_many(conn, scope.project_id, new, model=fakes.MODEL)


def where(raw=None, **narrow):
    node = filters.null_scoped(filters.parse(raw or {"user_id": "alice"}, max_depth=10, max_conditions=200))
    return filters.narrow(node, today=date(2024, 3, 1), **narrow)


async def ask(runtime, caller, text, *, node=None, **options):
    return await search.run(runtime, caller, search.Query(text, node or where(), **options))


TEXTS = ("Anna sold the blue van", "Oskar bakes rye bread", "The cat sleeps all day", "Riga is cold", "tea at four")


async def test_an_exact_text_is_first_and_survives_the_default_threshold(conn, runtime, caller, scope):
    await store(conn, scope, *TEXTS)
    for text in TEXTS:
        hits = await ask(runtime, caller, text)
        assert hits[0].memory.text == text
        assert hits[0].score > 0.8
        assert hits[0].semantic == pytest.approx(1, abs=1e-2)
        assert hits[0].bm25 > 0


async def test_a_higher_threshold_gives_a_subset_and_none_gives_all(conn, runtime, caller, scope):
    await store(conn, scope, *TEXTS)
    found = {
        cut: {hit.memory.text for hit in await ask(runtime, caller, TEXTS[0], threshold=cut, top_k=100)}
        for cut in (0.0, 0.3, 0.9)
    }
    assert found[0.9] <= found[0.3] <= found[0.0] == set(TEXTS)


async def test_a_rare_token_alone_finds_its_memory_among_many(conn, runtime, caller, scope):
    await store(conn, scope, *(f"note {number} on the weather and the garden" for number in range(150)))
    (memory,) = await store(conn, scope, "the spare key lies behind the zobaki-77 poster")
    assert (await ask(runtime, caller, "zobaki-77", top_k=5))[0].memory == memory


async def test_a_chinese_question_finds_a_chinese_text(conn, runtime, caller, scope):
    await store(conn, scope, "用户喜欢喝咖啡", "她住在北京海淀区", "小明对花生过敏")
    assert (await ask(runtime, caller, "花生过敏"))[0].memory.text == "小明对花生过敏"


@pytest.mark.parametrize("text", ["to be or not to be", "???", "的", "🍵", "%_\\'\"", "a" * 5000])
async def test_every_query_gets_an_answer(conn, runtime, caller, scope, text):
    await store(conn, scope, *TEXTS)
    assert len(await ask(runtime, caller, text, threshold=0.0)) == len(TEXTS)


async def test_equal_scores_come_newest_first_and_the_same_every_time(conn, runtime, caller, project):
    at = datetime(2024, 1, 1, tzinfo=UTC)
    for run, days in (("r1", 0), ("r2", 20), ("r3", 10)):
        scope = await factories.make_scope(conn, project, user_id="alice", run_id=run)
        await store(conn, scope, "the blue van", created_at=at + timedelta(days=days))
    node = where({"AND": [{"user_id": "alice"}, {"run_id": "*"}]})
    hits = await ask(runtime, caller, "blue van", node=node)
    assert [hit.memory.owners.run_id for hit in hits] == ["r2", "r3", "r1"]
    assert hits == await ask(runtime, caller, "  blue van \n", node=node)


async def test_only_what_the_filter_lets_through_is_found(conn, runtime, caller, project, scope):
    other = await factories.make_scope(conn, project, user_id="bob")
    await store(conn, other, "blue van of bob")
    await store(conn, scope, "blue van, sold", metadata={"sold": True})
    await store(conn, scope, "blue van, expired", expiration_date=date(2024, 2, 1))
    await store(conn, scope, "blue van, kept", metadata={"sold": False})

    async def texts(node):
        return {hit.memory.text for hit in await ask(runtime, caller, "blue van", node=node, threshold=0.0)}

    assert await texts(where()) == {"blue van, sold", "blue van, kept"}
    assert await texts(where(show_expired=True)) == {"blue van, sold", "blue van, kept", "blue van, expired"}
    assert await texts(where({"AND": [{"user_id": "alice"}, {"metadata": {"sold": True}}]})) == {"blue van, sold"}
    assert await texts(where({"user_id": "nobody"})) == set()


async def test_as_many_as_asked_for_come_back_from_beside_a_crowd(conn, runtime, caller, project, scope):
    other = await factories.make_scope(conn, project, user_id="bob")
    await store(conn, other, *(f"blue van {number}" for number in range(300)))
    mine = await store(conn, scope, *(f"blue car {number}" for number in range(20)))
    hits = await ask(runtime, caller, "blue van", threshold=0.0, top_k=20)
    assert {hit.memory.id for hit in hits} == {memory.id for memory in mine}


async def test_without_its_embedder_a_search_says_so(conn, runtime, caller, scope, embedder):
    await store(conn, scope, *TEXTS)
    embedder.failures.append(errors.EmbedderUnavailable())
    with pytest.raises(errors.EmbedderUnavailable):
        await ask(runtime, caller, "tea")


async def test_another_project_finds_nothing(conn, runtime, caller, scope):
    await store(conn, scope, *TEXTS)
    stranger = Caller(project=await factories.make_project(conn), key_id=uuid7(), email="x@localhost")
    assert await ask(runtime, stranger, "tea", threshold=0.0) == []


async def test_only_a_name_that_is_common_in_the_scope_is_left_out_of_the_embedding(
    conn, runtime, caller, scope, embedder
):
    await store(conn, scope, *(f"Anna told me about thing {number}" for number in range(30)), "Oskar left")
    await ask(runtime, caller, "What did Anna say to Oskar?")
    assert embedder.batches[-1] == ["What did say to Oskar?"]
