"""Owners, feedback and counted reads belong to one project."""

from __future__ import annotations

from uuid import uuid4

from app.store import erase, feedback, history, messages, owners, stats
from tests import factories


async def test_another_project_sees_and_changes_nothing(conn, project):
    stranger = await factories.make_project(conn)
    scope = await factories.make_scope(conn, project, user_id="u1")
    memory = await factories.make_memory(conn, scope, "likes tea")
    (owner,) = await owners.list_page(conn, project.id, limit=10, offset=0)
    assert await owners.counts(conn, stranger.id) == {}
    assert await owners.list_page(conn, stranger.id, limit=10, offset=0) == []
    assert await owners.find(conn, stranger.id, "user", "u1") is None
    assert await owners.find_by_id(conn, stranger.id, "user", owner.id) is None
    assert await owners.names(conn, stranger.id, "user", limit=10) == []
    assert not await owners.delete(conn, stranger.id, "user", "u1")
    await owners.restore(conn, stranger.id, [scope.id])
    assert await owners.counts(conn, stranger.id) == {}
    assert not await feedback.put(conn, stranger.id, memory.id, feedback="POSITIVE", reason=None)
    assert not await feedback.clear(conn, stranger.id, memory.id)
    assert await feedback.find(conn, stranger.id, memory.id) is None
    assert await history.list_page(conn, stranger.id, limit=10, offset=0) == (0, [])
    assert await history.origins(conn, stranger.id, [memory.id]) == {}
    await messages.delete_of(conn, stranger.id, [scope.id])
    assert (await stats.read(conn, stranger.id)).memories == 0
    assert await owners.find(conn, project.id, "user", "u1") == owner


async def test_an_owner_of_each_kind_counts_its_memories(conn, project):
    names = {"user_id": "x", "agent_id": "x", "app_id": "x", "run_id": "x"}
    for number in range(2):
        await factories.make_memory(conn, await factories.make_scope(conn, project, **names), f"text {number}")
    await factories.make_memory(conn, await factories.make_scope(conn, project, app_id="x"), "of the app")
    found = await owners.list_page(conn, project.id, limit=10, offset=0)
    assert {owner.kind: owner.memory_count for owner in found} == {"user": 2, "agent": 2, "app": 3, "run": 2}


async def test_feedback_of_unknown_memories_is_refused_and_kept_once_for_others(conn, project):
    memory = await factories.make_memory(conn, await factories.make_scope(conn, project), "likes tea")
    assert not await feedback.put(conn, project.id, uuid4(), feedback="POSITIVE", reason=None)
    assert await feedback.put(conn, project.id, memory.id, feedback="POSITIVE", reason=None)
    assert await feedback.put(conn, project.id, memory.id, feedback=None, reason="why")
    assert await feedback.find(conn, project.id, memory.id) == (None, "why")


async def test_reads_add_up(conn, project):
    await stats.add_retrievals(conn, project.id, {"SEARCH": 2, "GET": 1})
    await stats.add_retrievals(conn, project.id, {"SEARCH": 3})
    assert (await stats.read(conn, project.id)).retrievals == 6


async def test_everything_goes_with_the_project(conn, project):
    memory = await factories.make_memory(conn, await factories.make_scope(conn, project), "likes tea")
    await feedback.put(conn, project.id, memory.id, feedback="POSITIVE", reason=None)
    await stats.add_retrievals(conn, project.id, {"GET": 1})
    assert await erase.project(conn, project.id)
    for table in ("feedback", "retrievals", "owners"):
        assert await conn.fetchval(f"SELECT count(*) FROM {table} WHERE project_id = $1", project.id) == 0
