"""The audit log: a line for everything that administers or destroys, and nothing that was in it."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import httpx
import pytest
from uuid_utils.compat import uuid7

from app import errors
from app.api import idempotency, trail
from app.domain import access, audit, membership, tenancy
from app.model import Caller, Condition, Operator, Project
from app.runtime import Runtime
from app.store import audit as store
from app.store.db import Conn
from tests import factories
from tests.api import test_idempotency as repeats
from tests.api import test_isolation as isolation
from tests.api.test_isolation import Tenant

AUDIT = "/v1/audit/"


@pytest.fixture
async def tenant(client: httpx.AsyncClient, runtime: Runtime, conn: Conn) -> Tenant:
    """Return a project that holds one of everything, and a second project of its organization to act upon."""
    trail._refused.clear()
    return await repeats.settled(client, runtime, conn)


async def lines(conn: Conn) -> list[dict[str, Any]]:
    return [dict(row) for row in await conn.fetch("SELECT * FROM audit_log ORDER BY id")]


def test_every_write_leaves_a_line_or_says_why_not(described: dict[str, Any]) -> None:
    """A new route has to decide; `export_lines` reads, and takes everything along."""
    writes = {one.name for one in repeats.writes(described)}
    assert writes | {"export_lines"} == set(trail.ACTIONS) | set(trail.WITHOUT)
    assert not set(trail.ACTIONS) & set(trail.WITHOUT)
    assert set(trail.ACTIONS.values()) <= audit.ACTIONS


async def test_what_administers_or_destroys_leaves_exactly_one_line(
    client: httpx.AsyncClient, conn: Conn, tenant: Tenant, described: dict[str, Any]
) -> None:
    client.event_hooks = {}  # an export is no JSON
    key_id = (await client.get("/api/v1/keys/")).json()["keys"][0]["id"]
    for operation in isolation.operations(described):
        if operation.name not in trail.ACTIONS and operation.name not in trail.WITHOUT:
            continue
        savepoint = conn.transaction()
        await savepoint.start()
        before = len(await lines(conn))
        answer = await client.request(**repeats.request_of(operation, tenant), headers={"X-Request-ID": "request-7"})
        assert answer.is_success, (operation, answer.text)
        written = (await lines(conn))[before:]
        action = trail.ACTIONS.get(operation.name)
        assert [line["action"] for line in written] == [action] * (action is not None), operation
        for line in written:
            assert (line["outcome"], line["actor"], line["request_id"]) == ("ok", key_id, "request-7"), operation
            assert line["by_project_id"] == tenant.project.id
            assert line["address"]
            assert line["organization"], operation
            assert line["objects"] or action in ("project.create", "project.update", "project.delete", "profiles.settings",
                                                 "export.raw", "organization.create", "organization.delete"), operation  # fmt: skip
        await savepoint.rollback()
        access.forget()


async def test_lines_hold_no_text_no_secret_and_no_name(
    client: httpx.AsyncClient, conn: Conn, tenant: Tenant, described: dict[str, Any]
) -> None:
    """Whatever is asked for, with everything that a request can carry."""
    client.event_hooks = {}
    told = []
    for operation in isolation.operations(described):
        savepoint = conn.transaction()
        await savepoint.start()
        answer = await client.request(**repeats.request_of(operation, tenant))
        told += (
            [str(value) for value in answer.json().values() if isinstance(value, str)]
            if (operation.name in ("create_key", "rotate_key", "create_webhook", "rotate_webhook_secret"))
            else []
        )
        written = json.dumps(await lines(conn), default=str)
        await savepoint.rollback()
        access.forget()
        assert not [
            one for one in (*tenant.canaries.values(), tenant.secret, "alice", "bob@example.com") if one in written
        ]
        secrets = [value for value in told if value.startswith(("m0-", "whsec_")) and len(value) > 20]
        assert not [secret for secret in secrets if secret in written]
    assert len([value for value in told if value.startswith(("m0-", "whsec_")) and len(value) > 20]) == 4


async def test_what_a_key_may_not_do_is_written_once_a_minute(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, tenant: Tenant
) -> None:
    grants = {"scope": access.Grant(scopes=("memories:read",)), "role": access.Grant(role="member")}
    for grant in grants.values():
        key, secret = await access.create_key(runtime, tenant.project, name="less", grant=grant)
        headers = {"Authorization": f"Token {secret}"}
        for _ in range(2):
            answer = await client.post("/api/v1/keys/", json={"name": "more"}, headers=headers)
            assert answer.status_code == 403
        refused = [line for line in await lines(conn) if line["outcome"] == "refused"]
        assert [(line["action"], line["actor"]) for line in refused if line["actor"] == str(key.id)] == [
            ("key.create", str(key.id))
        ]


async def test_wrong_keys_and_what_does_not_exist_leave_no_line(
    client: httpx.AsyncClient, conn: Conn, tenant: Tenant
) -> None:
    """Whoever has no key could fill the log; the log of requests has them."""
    before = await lines(conn)
    wrong = {"Authorization": f"Token {access.new_secret()}"}
    assert (await client.delete("/v1/memories/?user_id=alice", headers=wrong)).status_code == 401
    assert (await client.delete(f"/api/v1/keys/{uuid7()}/")).status_code == 404
    assert await lines(conn) == before


async def test_a_failed_change_leaves_no_line(client: httpx.AsyncClient, conn: Conn, tenant: Tenant) -> None:
    before = await lines(conn)
    url = f"/api/v1/webhooks/{tenant.ids['webhook_id']}/deliveries/{uuid7()}/replay/"
    assert (await client.post(url)).status_code == 404
    assert (await client.post("/api/v1/keys/", json={"name": " "})).status_code == 400
    assert await lines(conn) == before


async def test_a_repeat_leaves_no_second_line(client: httpx.AsyncClient, conn: Conn, tenant: Tenant) -> None:
    before = len(await lines(conn))
    for _ in range(2):
        await client.post("/api/v1/keys/", json={"name": "k"}, headers={idempotency.HEADER: "k"})
    assert [line["action"] for line in (await lines(conn))[before:]] == ["key.create"]


async def test_somebody_at_a_shell_is_named_so(runtime: Runtime, conn: Conn, project: Project) -> None:
    await tenancy.change_project(
        runtime, None, project.organization_public_id, project.public_id, {"adds_per_minute": 5}
    )
    line = (await lines(conn))[-1]
    assert (line["actor"], line["action"], line["address"], line["by_project_id"]) == (
        "cli",
        "project.limits",
        None,
        None,
    )


# Whose the lines are


async def test_a_key_reads_the_lines_of_its_project_and_of_its_keys(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, tenant: Tenant
) -> None:
    """Also about the project that it has deleted; and nobody else's."""
    org = f"/api/v1/orgs/organizations/{tenant.ids['org_id']}/projects/"
    gone = tenant.ids["project_id_of_delete"]
    await client.delete(f"{org}{gone}/")
    other = await factories.make_project(conn)
    _, stranger = await access.create_key(runtime, other, name="theirs")
    page = (await client.get(AUDIT)).json()
    first = page["results"][0]
    assert (first["action"], first["project_id"], first["outcome"]) == ("project.delete", gone, "ok")
    assert not [line for line in page["results"] if line["project_id"] == other.public_id]
    theirs = (await client.get(AUDIT, headers={"Authorization": f"Token {stranger}"})).json()
    assert [(line["action"], line["actor"]) for line in theirs["results"]] == [("key.create", "cli")]


async def test_lines_are_read_in_pages_and_by_action_actor_and_time(client: httpx.AsyncClient, tenant: Tenant) -> None:
    whole = (await client.get(AUDIT, params={"page_size": 100})).json()
    assert whole["count"] == len(whole["results"]) > 5
    assert [line["at"] for line in whole["results"]] == sorted((line["at"] for line in whole["results"]), reverse=True)
    second = (await client.get(AUDIT, params={"page": 2, "page_size": 2})).json()
    assert second["results"] == whole["results"][2:4]
    asked = {
        "action": {
            line["action"] for line in (await client.get(AUDIT, params={"action": "key.create"})).json()["results"]
        },
        "actor": {line["actor"] for line in (await client.get(AUDIT, params={"actor": "cli"})).json()["results"]},
    }
    assert asked == {"action": {"key.create"}, "actor": {"cli"}}
    at = whole["results"][2]["at"]
    since = (await client.get(AUDIT, params={"since": at})).json()
    before = (await client.get(AUDIT, params={"before": at})).json()
    assert (since["count"], before["count"]) == (3, whole["count"] - 3)
    for wrong in ({"action": "key.eat"}, {"since": "soon"}, {"page": 0}, {"page_size": 101}):
        assert (await client.get(AUDIT, params=wrong)).status_code == 400
    assert (await client.get(AUDIT, params={"page": 1000})).status_code == 404


# What is written stays


async def test_nobody_who_works_for_the_service_changes_or_deletes_a_line(fresh_db: Any) -> None:
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
        await audit.note(conn, "project.create", project=project)
    for project_id in (project.id, None):
        for statement in ("UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log", "TRUNCATE audit_log"):
            with pytest.raises(errors.SetupError, match="permission denied for table audit_log"):
                async with fresh_db.db.transaction(project_id) as conn:
                    await conn.execute(statement)
    async with fresh_db.db.acquire(project.id) as conn:
        assert (await store.list_page(conn, project.id, limit=9))[0] == 1


async def test_a_project_writes_no_line_about_another_one(fresh_db: Any) -> None:
    async with fresh_db.db.transaction(None) as conn:
        ours, theirs = [await factories.make_project(conn) for _ in range(2)]
        await audit.note(conn, "project.create", project=theirs)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        async with fresh_db.db.transaction(ours.id) as conn:
            await audit.note(conn, "key.create", project=theirs)
    async with fresh_db.db.acquire(ours.id) as conn:
        assert await store.list_page(conn, theirs.id, limit=9) == (0, [])


async def test_lines_are_kept_as_long_as_the_setting_says(fresh_db: Any) -> None:
    """The sweep deletes with the rights of the tables' owner, and only what is old."""
    async with fresh_db.db.transaction(None) as conn:
        project = await factories.make_project(conn)
        for days in (0, 9, 11):
            await audit.note(conn, "project.update", project=project, objects=[days])
    owner = await asyncpg.connect(fresh_db.dsn)
    await owner.execute("UPDATE audit_log SET at = at - make_interval(days => objects[1]::int)")
    await owner.close()
    async with fresh_db.db.acquire(None) as conn:
        assert await store.purge(conn, keep_days=10) == 1
        assert await store.purge(conn, keep_days=0) == 1  # what is younger than a day stays in any case
        assert (await store.list_page(conn, None, limit=9))[0] == 1


# Marks


async def test_an_owner_and_a_member_are_digests_of_their_own(runtime: Runtime, conn: Conn, project: Project) -> None:
    other = await factories.make_project(conn)
    mark = audit.owner_mark(project, "user", "alice")
    assert mark.startswith("user:")
    assert len({mark, audit.owner_mark(other, "user", "alice"), audit.owner_mark(project, "agent", "alice")}) == 3
    named = [Condition("user_id", Operator.EQ, "alice"), Condition("created_at", Operator.EQ, "x")]
    assert audit.marks(project, named) == [mark]
    assert audit.marks(project, [Condition("run_id", Operator.CONTAINS, "a")]) == ["run:*"]
    await membership.add_to_project(
        runtime, None, project.organization_public_id, project.public_id, "Bob@example.com", "READER"
    )
    assert (await lines(conn))[-1]["objects"] == [audit.member_mark(project, "bob@example.com")]


def test_an_unknown_action_is_a_bug(project: Project) -> None:
    caller = Caller(project, uuid7(), "a@b.c")
    assert audit.Actor(caller).name == str(caller.key_id)
    assert audit.Actor().name == audit.SHELL
