"""The second wall: what a statement that forgets to name its project sees and changes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest
from uuid_utils.compat import uuid7

from app import errors
from app.model import And, Condition, Message, Operator, Owners, WebhookEvent
from app.store import db as databases
from app.store import events, memories, messages, migrate, scopes, search, walls, webhooks
from tests import factories, fakes

_TENANTS = """
SELECT c.relname FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'project_id' AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""
DIRECTORY = {"api_keys", "project_members"}  # closed to the work of a project
APPEND_ONLY = {"audit_log"}  # from which nobody deletes


async def tenants(conn):
    return [row["relname"] for row in await conn.fetch(_TENANTS)]


async def fill(conn, project):
    """Give a project something of most kinds; return its memory."""
    scope = await factories.make_scope(conn, project, user_id="alice", agent_id="bot")
    memory = await factories.make_memory(conn, scope, "Alice met Bob in Paris.")
    event = await events.insert(conn, project.id, uuid4(), "ADD", {}, scope_id=scope.id)
    said = Message("user", "Alice met Bob.", id=uuid7(), said_at=datetime.now(UTC))
    await messages.insert_many(conn, project.id, scope.id, event.id, [said])
    await webhooks.insert(
        conn, project.id, name="n", url="https://x.invalid", is_active=True, owner="a@b.c", secret="whsec_eA==",
        event_types=[WebhookEvent.MEMORY_ADD],
    )  # fmt: skip
    return memory


@pytest.fixture
async def two(fresh_db):
    """Return a database of two filled projects, and these: ours and theirs, each with its memory."""
    async with fresh_db.db.transaction(None) as conn:
        projects = [await factories.make_project(conn) for _ in range(2)]
        found = [(project, await fill(conn, project)) for project in projects]
    return fresh_db, *found


async def test_every_table_of_a_tenant_is_forced_behind_the_wall(conn):
    """A table that a later migration makes, too: `memoryd migrate` raises the wall after every run."""
    for table in await tenants(conn):
        row = await conn.fetchrow(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = $1::regclass", table
        )
        assert tuple(row) == (True, True), table
        policies = await conn.fetch("SELECT policyname, roles, qual FROM pg_policies WHERE tablename = $1", table)
        assert {row["policyname"]: list(row["roles"]) for row in policies} == {
            "own_rows": [walls.APP],
            "all_rows": [walls.SYSTEM],
        }, table
        assert all("memoryd.project" in row["qual"] for row in policies if row["policyname"] == "own_rows"), table


async def test_a_new_table_stands_behind_the_wall_after_the_next_run(fresh_db):
    owner = await databases.connect(fresh_db.dsn)
    await owner.execute("CREATE TABLE novelties (project_id bigint NOT NULL, n integer)")
    assert (await walls.standing(owner)).open_tables == ("novelties",)
    assert "novelties" in str((await walls.standing(owner)).refusal)
    await migrate.migrate(fresh_db.dsn)
    assert (await walls.standing(owner)).refusal is None
    await owner.execute("INSERT INTO novelties VALUES (1, 1), (2, 2)")
    async with fresh_db.db.acquire(2) as conn:
        assert [row["n"] for row in await conn.fetch("SELECT n FROM novelties")] == [2]
    await owner.close()


async def test_the_service_owns_no_table_and_bypasses_nothing(fresh_db):
    for project_id in (None, 1):
        async with fresh_db.db.acquire(project_id) as conn:
            assert await conn.fetchval("SELECT current_user") == (walls.SYSTEM if project_id is None else walls.APP)
            assert not await conn.fetchval(
                "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcanlogin FROM pg_roles WHERE rolname = current_user"
            )
            assert not await conn.fetchval(
                "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = current_user"
            )
            with pytest.raises(errors.SetupError):
                async with fresh_db.db.transaction(project_id) as inner:
                    await inner.execute("ALTER TABLE memories DISABLE ROW LEVEL SECURITY")


async def test_a_statement_without_a_project_sees_and_changes_its_own_rows_only(two):
    fresh_db, (ours, _), (theirs, _) = two
    async with fresh_db.db.acquire(None) as conn:
        names = [name for name in await tenants(conn) if name not in DIRECTORY]
        before = {name: await rows_of(conn, name, theirs) for name in names}
    assert sum(map(bool, before.values())) >= 11, before  # the test is about tables with rows
    for name in names:
        async with fresh_db.db.acquire(ours.id) as conn:
            seen = await conn.fetch(f"SELECT DISTINCT project_id FROM {name}")
            assert {row["project_id"] for row in seen} == ({ours.id} if before[name] else set()), name
    for name in reversed([name for name in names if name not in APPEND_ONLY]):
        async with fresh_db.db.transaction(ours.id) as conn:
            await conn.execute(f"DELETE FROM {name}")
    async with fresh_db.db.acquire(None) as conn:
        assert {name: await rows_of(conn, name, theirs) for name in names} == before
        assert not any([await rows_of(conn, name, ours) for name in names])


async def rows_of(conn, table, project):
    return await conn.fetchval(f"SELECT count(*) FROM {table} WHERE project_id = $1", project.id)


async def test_a_verb_that_names_the_wrong_project_finds_and_deletes_nothing(two):
    """The first wall is down: the statements name a project, and it is not the caller's."""
    fresh_db, (ours, _), (theirs, memory) = two
    scope_ids, node = [memory.scope_id], Condition("user_id", Operator.EQ, "alice")
    async with fresh_db.db.acquire(ours.id) as conn:
        with pytest.raises(errors.MemoryNotFound):
            await memories.get(conn, theirs.id, memory.id)
        assert await memories.list_page(conn, theirs.id, node, limit=9, offset=0) == (0, [])
        assert await scopes.matching(conn, theirs.id, None) == []
        assert await webhooks.list_for(conn, theirs.id) == []
        vector = fakes.vector(memory.text)
        where = (conn, theirs.id, scope_ids, And(()))
        assert not await search.semantic(*where, vector, model=fakes.MODEL, limit=9)
        assert not await search.lexical(*where, ["paris"], limit=9)
        assert not await search.by_entity(*where, ["paris"], limit=9)
    async with fresh_db.db.transaction(ours.id) as conn:
        assert await memories.delete_where(conn, theirs.id, node) == 0
    for write in (
        lambda conn: scopes.ensure(conn, theirs.id, Owners(user_id="mallory")),
        lambda conn: events.insert(conn, theirs.id, uuid4(), "ADD", {}),
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            async with fresh_db.db.transaction(ours.id) as conn:
                await write(conn)
    async with fresh_db.db.acquire(theirs.id) as conn:
        assert (await memories.get(conn, theirs.id, memory.id)).text == memory.text


async def test_keys_and_members_are_closed_to_the_work_of_a_project(two):
    fresh_db, (ours, _), _ = two
    for table in DIRECTORY | {"workers", "organization_members"}:
        with pytest.raises(errors.SetupError, match=f"permission denied for table {table}"):
            async with fresh_db.db.transaction(ours.id) as conn:
                await conn.fetch(f"SELECT * FROM {table}")
    async with fresh_db.db.acquire(ours.id) as conn:
        assert [row["id"] for row in await conn.fetch("SELECT id FROM projects")] == [ours.id]
        assert [row["id"] for row in await conn.fetch("SELECT id FROM organizations")] == [ours.organization_id]


@pytest.mark.parametrize("statement_cache", [0, 256], ids=["shared sessions", "own sessions"])
async def test_connections_that_serve_many_projects_never_mix_them(two, statement_cache):
    fresh_db, (ours, _), (theirs, _) = two
    opened = await databases.Database.open(fresh_db.dsn, pool_size=3, statement_cache=statement_cache)

    async def look(number):
        project_id = (ours.id, theirs.id, None)[number % 3]
        open_one = opened.acquire if number % 2 else opened.transaction
        async with open_one(project_id) as conn:
            if number % 7 == 0:
                await asyncio.sleep(0)
            seen = {row["project_id"] for row in await conn.fetch("SELECT project_id FROM memories")}
        assert seen == ({ours.id, theirs.id} if project_id is None else {project_id})

    await asyncio.gather(*(look(number) for number in range(120)))
    await opened.close()


async def test_a_failed_transaction_does_not_keep_its_project(two):
    fresh_db, (ours, _), (theirs, _) = two
    opened = await databases.Database.open(fresh_db.dsn, pool_size=1, statement_cache=256)
    for project in (ours, theirs):
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with opened.transaction(project.id) as conn:
                await conn.execute("SELECT 1 / 0")
        async with opened.acquire(theirs.id) as conn:
            assert {row["project_id"] for row in await conn.fetch("SELECT project_id FROM memories")} == {theirs.id}
    await opened.close()


async def test_a_lent_connection_stands_behind_the_wall_too(conn, db):
    ours, theirs = [await factories.make_project(conn) for _ in range(2)]
    await fill(conn, theirs)
    async with db.transaction(ours.id) as inner:
        assert await inner.fetchval("SELECT count(*) FROM memories") == 0
        async with db.acquire(None) as deeper:
            assert await deeper.fetchval("SELECT count(*) FROM memories") > 0
        assert await inner.fetchval("SELECT count(*) FROM memories") == 0
    assert await conn.fetchval("SELECT count(*) FROM memories") > 0


# Users of the database that are no superusers


@asynccontextmanager
async def user_with_database(postgres_dsn, *grants):
    """Make a login and a database that it owns; yield the address as that user."""
    name = f"u{uuid4().hex[:12]}"
    administrator = await databases.connect(postgres_dsn)
    await administrator.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'pw'")
    await administrator.execute(f"CREATE DATABASE {name} OWNER {name}")
    for grant in grants:
        await administrator.execute(grant.format(name))
    split = urlsplit(postgres_dsn)
    inside = await databases.connect(urlunsplit(split._replace(path=f"/{name}")))
    await inside.execute("CREATE EXTENSION vector")  # as an administrator does, where it is not a trusted extension
    await inside.close()
    netloc = f"{name}:pw@{split.hostname}:{split.port}"
    try:
        yield urlunsplit(split._replace(netloc=netloc, path=f"/{name}"))
    finally:
        await administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await administrator.execute(f"DROP ROLE {name}")
        await administrator.close()


async def round_trip(dsn):
    """Store a memory of each of two projects; return what a careless statement of the first one's work sees."""
    opened = await databases.Database.open(dsn, pool_size=2, statement_cache=256)
    async with opened.transaction(None) as conn:
        await conn.execute("INSERT INTO embedding_models (model, dims) VALUES ($1, $2)", fakes.MODEL, fakes.DIMS)
        projects = [await factories.make_project(conn) for _ in range(2)]
    for project in projects:
        async with opened.transaction(project.id) as conn:
            await fill(conn, project)
    async with opened.acquire(projects[0].id) as conn:
        seen = await conn.fetchval("SELECT count(DISTINCT project_id) FROM memories")
    refusal = opened.wall.refusal
    await opened.close()
    return seen, refusal


async def test_an_owner_that_is_no_superuser_is_held_by_the_wall(postgres_dsn, template):
    async with user_with_database(postgres_dsn, f"GRANT {walls.APP}, {walls.SYSTEM} TO {{}}") as dsn:
        await migrate.migrate(dsn)
        assert await round_trip(dsn) == (1, None)
        owner = await databases.connect(dsn)  # a later migration has to see all rows
        assert await owner.fetchval("SELECT count(DISTINCT project_id) FROM memories") == 2
        await owner.close()


async def test_without_the_right_to_its_roles_memoryd_works_and_says_what_to_do(postgres_dsn, template):
    async with user_with_database(postgres_dsn) as dsn:
        await migrate.migrate(dsn)
        seen, refusal = await round_trip(dsn)
        assert seen == 2  # the first wall alone stands
        assert refusal is not None
        assert "\n" not in refusal
        assert f"GRANT {walls.APP}, {walls.SYSTEM} TO {urlsplit(dsn).username}" in refusal
        administrator = await databases.connect(postgres_dsn)
        await administrator.execute(f"GRANT {walls.APP}, {walls.SYSTEM} TO {urlsplit(dsn).username}")
        await administrator.close()
        assert await migrate.migrate(dsn) == []
        owner = await databases.connect(dsn)
        assert (await walls.standing(owner)).refusal is None
        await owner.close()


async def test_a_user_to_whom_the_wall_shows_nothing_is_refused(postgres_dsn, fresh_db):
    async with user_with_database(postgres_dsn) as dsn:
        stranger = urlunsplit(urlsplit(dsn)._replace(path=urlsplit(fresh_db.dsn).path))
        with pytest.raises(errors.SetupError, match=f"GRANT {walls.APP}, {walls.SYSTEM} TO"):
            await databases.Database.open(stranger, pool_size=2, statement_cache=256)
