"""Members, webhook endpoints and the end of a project, on real tables."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from app import errors
from app.domain import tenancy
from app.model import Member, Owners, ProjectSettings, WebhookEvent
from app.runtime import Runtime
from app.store import erase, members, orgs, scopes, webhooks
from tests import factories

HOOK = {"name": "n", "url": "https://x.invalid", "is_active": True, "owner": "a@b.c", "secret": "whsec_eA=="}


async def test_another_project_neither_sees_nor_changes_an_endpoint(conn, project):
    made = await webhooks.insert(conn, project.id, event_types=[WebhookEvent.MEMORY_ADD], **HOOK)
    stranger = await factories.make_project(conn)
    assert await webhooks.list_for(conn, stranger.id) == []
    for call in (
        webhooks.update(conn, stranger.id, made.id, name="x"),
        webhooks.delete(conn, stranger.id, made.id),
        webhooks.secret_of(conn, stranger.id, made.id),
    ):
        with pytest.raises(errors.WebhookNotFound):
            await call
    assert await webhooks.list_for(conn, project.id) == [made]


async def test_members_of_one_place_are_not_those_of_another(conn, project):
    stranger = await factories.make_project(conn)
    bob = Member("Bob@example.com", "READER")
    assert await members.add_to_project(conn, project.id, bob)
    assert not await members.add_to_project(conn, project.id, replace(bob, email="bob@EXAMPLE.com", role="OWNER"))
    assert not await members.set_in_project(conn, stranger.id, bob.email, "OWNER")
    assert not await members.remove_from_project(conn, stranger.id, bob.email)
    assert await members.of_projects(conn, [project.id, stranger.id]) == {project.id: [bob], stranger.id: []}
    assert await members.of_organizations(conn, [project.organization_id]) == {project.organization_id: []}


async def test_the_end_of_one_project_leaves_the_others_whole(conn, project):
    stranger = await factories.make_project(conn)
    for of in (project, stranger):
        await factories.make_memory(conn, await factories.make_scope(conn, of), "Bob likes tea.")
    kept = {}
    tables = [
        row["table_name"]
        for row in await conn.fetch(
            "SELECT table_name FROM information_schema.columns WHERE column_name = 'project_id' AND table_schema = 'public'"
        )
    ]
    for table in tables:
        kept[table] = await conn.fetchval(f"SELECT count(*) FROM {table} WHERE project_id = $1", stranger.id)
    assert (await erase.project(conn, project.id))["projects"] == 1
    assert not await erase.project(conn, project.id)
    for table in tables:
        counts = await conn.fetch(f"SELECT project_id, count(*) FROM {table} GROUP BY 1")
        assert dict(map(tuple, counts)).get(stranger.id, 0) == kept[table], table
        assert project.id not in dict(map(tuple, counts))


async def test_work_for_a_project_that_was_deleted_meanwhile_finds_it_gone(fresh_db):
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
    async with fresh_db.db.transaction(None) as conn:
        await erase.project(conn, project.id)
    with pytest.raises(errors.NotFound, match="deleted meanwhile"):
        async with fresh_db.db.transaction(project.id) as conn:
            await scopes.ensure(conn, project.id, Owners(user_id="alice"))


async def test_changes_of_a_project_at_the_same_time_all_count(fresh_db, settings, queue, embedder):
    rt = Runtime(settings=settings, db=fresh_db.db, queue=queue, llm=None, embedder=embedder)
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
    ids = project.organization_public_id, project.public_id
    changes = [{"decay": True}, {"multilingual": False}, {"default_top_k": 7}, {"version": "v9"}, {"name": "new"}]
    await asyncio.gather(*(tenancy.change_project(rt, None, *ids, change) for change in changes))
    async with fresh_db.db.acquire(None) as conn:
        now = await orgs.get_project(conn, project.id)
    assert now.name == "new"
    assert now.settings == ProjectSettings(decay=True, multilingual=False, default_top_k=7, extra={"version": "v9"})


async def test_of_two_that_delete_the_last_two_projects_one_is_refused(fresh_db, settings, queue, embedder):
    rt = Runtime(settings=settings, db=fresh_db.db, queue=queue, llm=None, embedder=embedder)
    async with fresh_db.db.transaction(None) as conn:
        first = await factories.make_project(conn)
        second = await orgs.insert_project(conn, first.organization_id, name="two", settings=ProjectSettings())
    ended = await asyncio.gather(
        *(
            tenancy.delete_project(rt, None, project.organization_public_id, project.public_id)
            for project in (first, second)
        ),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in ended) == ["Conflict", "Receipt"]
