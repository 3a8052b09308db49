"""Every request that changes something may carry an Idempotency-Key, and is then carried out once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from app import errors
from app.api import idempotency
from app.domain import access, pins
from app.model import Project
from app.runtime import Runtime
from app.store import idempotency as store
from app.store.db import Conn
from tests import factories, fakes
from tests.api import test_isolation as isolation
from tests.api.test_isolation import Tenant

#: Operations that are no GET and change nothing.
READS = {
    "search_memories", "search_memories_v1", "search_memories_v2", "list_memories", "list_memories_v2", "get_export",
    "export_lines", "summarize", "explain_search", "make_context", "update_dream_config", "preview_dream",
}  # fmt: skip
FEEDBACK = "/v1/feedback/"


def writes(described: dict[str, Any]) -> list[isolation.Operation]:
    return [one for one in isolation.operations(described) if one.method != "GET" and one.name not in READS]


def test_every_write_has_a_rule_and_declares_the_key(described: dict[str, Any]) -> None:
    assert {one.name for one in writes(described)} == set(idempotency.RULES)
    for one in writes(described):
        operation = described["paths"][one.path][one.method.lower()]
        assert [field["name"] for field in operation["parameters"] if field["in"] == "header"] == [idempotency.HEADER]
        assert {"409", "422"} <= set(operation["responses"]), one.name


@pytest.fixture
def client(client: httpx.AsyncClient) -> httpx.AsyncClient:
    return client


@pytest.fixture
async def tenant(client: httpx.AsyncClient, runtime: Runtime, conn: Conn) -> Tenant:
    """Return a project that holds one of everything, and a second project of its organization to act upon."""
    return await settled(client, runtime, conn)


async def settled(client: httpx.AsyncClient, rt: Runtime, conn: Conn) -> Tenant:
    hooks, client.event_hooks = client.event_hooks, {}
    tenant = await isolation.settle(client, rt, conn, "wren")
    client.headers["Authorization"] = f"Token {tenant.secret}"
    made = await client.post("/api/v1/orgs/organizations/", json={"name": "second"})
    tenant.ids["org_id_of_delete"] = made.json()["org_id"]
    org = tenant.ids["org_id"]
    made = await client.post(f"/api/v1/orgs/organizations/{org}/projects/", json={"name": "second"})
    tenant.ids["project_id_of_delete"] = made.json()["project_id"]
    await client.post("/v1/users/", json={"user_id": "alice"})
    client.event_hooks = hooks
    return tenant


def request_of(operation: isolation.Operation, tenant: Tenant) -> dict[str, Any]:
    """Return what calls the operation for what the tenant holds, and can be called."""
    ids = dict(tenant.ids)
    if operation.name == "delete_organization":
        ids["org_id"] = ids["org_id_of_delete"]
    if operation.name == "delete_project":
        ids["project_id"] = ids["project_id_of_delete"]
    if operation.name == "create_profile_job":
        ids["entity_id"] = "alice"
    if "organization_member" in operation.name:
        ids["email"] = f"{tenant.canaries['organization_member']}@x.example"
    if operation.name == "import_memories":
        ids["memory_id"] = "0198f3a2-7c41-7d3e-9b1f-2a6d1c0e5f77"  # one that is not there
    sent = operation.request(Tenant(tenant.project, tenant.secret, tenant.canaries, ids))
    if operation.name == "delete_all_memories":
        sent["url"] = "/v1/memories/?user_id=alice"
    return sent


#: What makes another request of one whose event keeps the key, or that takes no unknown field; elsewhere an unknown one does.
CHANGES: dict[str, dict[str, Any]] = {
    "add_memories": {"messages": "Other."},
    "add_memories_v1": {"messages": [{"role": "user", "content": "Other."}]},
    "create_export": {"export_instructions": "other"},
    "create_profile_job": {"entity_id": "Canarywrenowner"},
    "update_profile_settings": {"enabled": True},
    "update_memory": {"text": "Other."},
}


def other_than(name: str, sent: dict[str, Any]) -> dict[str, Any]:
    """Return another request to the same route."""
    if sent["json"] is None:
        return {**sent, "url": f"{sent['url']}{'&' if '?' in sent['url'] else '?'}more=1"}
    if name == "update_memories":
        return {**sent, "json": {"memories": [{**sent["json"]["memories"][0], "text": "Other."}]}}
    return {**sent, "json": {**sent["json"], **CHANGES.get(name, {"more": 1})}}


async def test_a_repeat_changes_nothing_and_gets_the_same_answer(
    client: httpx.AsyncClient, conn: Conn, tenant: Tenant, described: dict[str, Any]
) -> None:
    for operation in writes(described):
        savepoint = conn.transaction()
        await savepoint.start()
        await repeated(client, conn, operation, request_of(operation, tenant))
        await savepoint.rollback()
        access.forget()


async def repeated(client: httpx.AsyncClient, conn: Conn, operation: isolation.Operation, sent: dict[str, Any]) -> None:
    headers, name = {idempotency.HEADER: "k 1"}, operation.name
    first = await client.request(**sent, headers=headers)
    assert first.is_success, (name, first.text)
    assert idempotency.REPLAYED not in first.headers
    async with unchanged(conn):
        again = await client.request(**sent, headers=headers)
        assert (again.status_code, again.headers.get(idempotency.REPLAYED)) == (first.status_code, "true"), again.text
        secret = idempotency.RULES[name].secret
        if secret is not None:
            assert again.json() == {**first.json(), secret: None, "detail": idempotency.ONCE}
        elif name == "create_profile_job":
            assert again.json() == {**first.json(), "replayed": True}
        else:
            assert again.json() == first.json(), name
        refused = await client.request(**other_than(name, sent), headers=headers)
        assert (refused.status_code, idempotency.HEADER in refused.text) == (422, True), (name, refused.text)


async def test_secrets_are_not_kept_with_the_answer(
    client: httpx.AsyncClient, conn: Conn, tenant: Tenant, described: dict[str, Any]
) -> None:
    for operation in writes(described):
        secret = idempotency.RULES[operation.name].secret
        if secret is None:
            continue
        headers = {idempotency.HEADER: operation.name}
        told = (await client.request(**request_of(operation, tenant), headers=headers)).json()[secret]
        kept = await conn.fetchval("SELECT string_agg(answer, '') FROM idempotency_answers")
        assert len(told) > 20
        assert told not in kept


@asynccontextmanager
async def unchanged(conn: Conn) -> AsyncIterator[None]:
    before = await dumped(conn)
    yield
    assert await dumped(conn) == before


async def dumped(conn: Conn) -> str:
    """Return every row of every table; when a key was used last is not a change."""
    tables = await conn.fetch("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    rows = [
        await conn.fetchval(
            f"SELECT coalesce(string_agg(one, E'\\n'), '') FROM (SELECT (to_jsonb(a_row) - 'last_used_at')::text AS one "
            f"FROM {row['name']} AS a_row ORDER BY 1) sorted"
        )
        for row in tables
    ]
    return "\n".join(rows)


async def test_a_key_is_of_one_request_whatever_the_route(client: httpx.AsyncClient, tenant: Tenant) -> None:
    """Also between routes that keep their answers and those whose event has the key."""
    add = {"user_id": "bob", "messages": "I like tea."}
    feedback = {"memory_id": tenant.ids["memory_id"], "feedback": "POSITIVE"}
    for first, second in (
        (("/v3/memories/add/", add), (FEEDBACK, feedback)),
        ((FEEDBACK, feedback), ("/v3/memories/add/", add)),
        ((FEEDBACK, feedback), ("/v1/users/", {"user_id": "bob"})),
        (("/v3/memories/add/", add), ("/v1/import/", {"memories": []})),
    ):
        headers = {idempotency.HEADER: f"{first[0]} {second[0]}"}
        assert (await client.post(first[0], json=first[1], headers=headers)).is_success
        assert (await client.post(second[0], json=second[1], headers=headers)).status_code == 422


async def test_a_refused_request_keeps_no_key(client: httpx.AsyncClient, conn: Conn, tenant: Tenant) -> None:
    headers = {idempotency.HEADER: "k"}
    async with unchanged(conn):
        for body, status in (
            ({"memory_id": "x"}, 400),
            ({"memory_id": tenant.ids["key_id"], "feedback": "POSITIVE"}, 404),
        ):
            assert (await client.post(FEEDBACK, json=body, headers=headers)).status_code == status
    body = {"memory_id": tenant.ids["memory_id"], "feedback": "POSITIVE"}
    assert (await client.post(FEEDBACK, json=body, headers=headers)).status_code == 200


async def test_an_updated_memory_is_answered_as_it_was_then(client: httpx.AsyncClient, tenant: Tenant) -> None:
    """The memory has changed since, and at last it is gone."""
    url, body, headers = f"/v1/memories/{tenant.ids['memory_id']}/", {"text": "A"}, {idempotency.HEADER: "k"}
    first = await client.put(url, json=body, headers=headers)
    await client.put(url, json={"text": "B"})
    assert (await client.put(url, json=body, headers=headers)).json() == first.json()
    await client.delete(url)
    assert (await client.put(url, json=body, headers=headers)).json() == first.json()


async def test_the_order_of_fields_and_the_slash_at_the_end_make_no_other_request(client: httpx.AsyncClient) -> None:
    headers = {idempotency.HEADER: "k"}
    first = await client.post("/v1/users/", content=b'{"user_id": "u", "metadata": {"a": 1, "b": 2}}', headers=headers)
    again = await client.post("/v1/users", content=b'{"metadata": {"b": 2, "a": 1}, "user_id":"u"}', headers=headers)
    assert (again.json(), again.headers[idempotency.REPLAYED]) == (first.json(), "true")


@pytest.mark.parametrize("name", ["give_feedback", "add_memories", "create_organization"])
async def test_keys_that_cannot_be_kept_are_refused(
    client: httpx.AsyncClient, tenant: Tenant, described: dict[str, Any], name: str
) -> None:
    sent = request_of(next(one for one in writes(described) if one.name == name), tenant)
    for key in (b"x" * 256, b"a\x01b", b"a\x85b"):
        answer = await client.request(**sent, headers=[(b"idempotency-key", key)])
        assert (answer.status_code, idempotency.HEADER in answer.json()["detail"]) == (400, True), answer.text
    for key in (b"x" * 255, "schlüssel".encode()):
        assert (await client.request(**sent, headers=[(b"idempotency-key", key)])).is_success


async def test_a_blank_key_is_none(client: httpx.AsyncClient) -> None:
    for _ in range(2):
        answer = await client.post("/api/v1/orgs/organizations/", json={"name": "o"}, headers={idempotency.HEADER: " "})
        assert (answer.status_code, idempotency.REPLAYED in answer.headers) == (201, False)
    assert len((await client.get("/api/v1/orgs/organizations/")).json()) == 3


async def test_reads_know_no_key(client: httpx.AsyncClient, conn: Conn, tenant: Tenant) -> None:
    headers = {idempotency.HEADER: "k"}
    body = {"query": "tea", "filters": {"user_id": "alice"}}
    for _ in range(2):
        answer = await client.post("/v3/memories/search/", json=body, headers=headers)
        assert (answer.status_code, idempotency.REPLAYED in answer.headers) == (200, False)
    assert not (await store.find(conn, tenant.project.id, "k")).answer


async def test_projects_and_keys_of_other_rights_share_no_answers(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, tenant: Tenant
) -> None:
    headers, body = {idempotency.HEADER: "k"}, {"memory_id": tenant.ids["memory_id"], "feedback": "POSITIVE"}
    assert (await client.post(FEEDBACK, json=body, headers=headers)).is_success
    grant = access.Grant(pins=pins.read({"user_id": ["nobody"]}))
    _, pinned = await access.create_key(runtime, tenant.project, name="pinned", grant=grant)
    _, equal = await access.create_key(runtime, tenant.project, name="equal")
    stranger = await factories.make_key(runtime, await factories.make_project(conn))
    seen = {}
    for who, secret in (("pinned", pinned), ("equal", equal), ("stranger", stranger)):
        asked = {**headers, "Authorization": f"Token {secret}"}
        seen[who] = (await client.post(FEEDBACK, json=body, headers=asked)).status_code
    assert seen == {"pinned": 422, "equal": 200, "stranger": 404}


async def test_old_answers_are_purged_and_erased_ones_forgotten(
    client: httpx.AsyncClient, conn: Conn, tenant: Tenant
) -> None:
    own = tenant.project.id
    for key in ("old", "young"):
        await client.post("/v1/users/", json={"user_id": "u"}, headers={idempotency.HEADER: key})
    await conn.execute(
        "UPDATE idempotency_answers SET made_at = made_at - make_interval(hours => $1) WHERE key = 'old'",
        store.KEPT_HOURS,
    )
    assert await store.purge(conn) == 1
    assert (await store.find(conn, own, "young")).answer is not None
    other = await factories.make_project(conn)
    assert await store.forget(conn, other.id) == 0
    assert await store.forget(conn, own) == 1
    assert (await store.find(conn, own, "young")).answer is None


async def test_a_project_takes_its_answers_with_it(client: httpx.AsyncClient, conn: Conn, project: Project) -> None:
    """The one about the deletion itself, too."""
    headers = {idempotency.HEADER: "k"}
    await client.post("/v1/users/", json={"user_id": "u"}, headers=headers)
    url = f"/api/v1/orgs/organizations/{project.organization_public_id}/projects/"
    await factories.make_project(conn)  # the first organization keeps its last project
    made = await client.post(url, json={"name": "second"}, headers={idempotency.HEADER: "k2"})
    assert made.is_success
    assert (await client.delete(f"{url}{project.public_id}/", headers={idempotency.HEADER: "k3"})).is_success
    assert await conn.fetchval("SELECT count(*) FROM idempotency_answers WHERE project_id = $1", project.id) == 0


# Several at once, and faults


@pytest.fixture
async def alone(fresh_db: Any, settings: Any) -> AsyncIterator[tuple[Runtime, httpx.AsyncClient, Tenant]]:
    """Return a runtime with connections of its own, a client of it, and what a project holds."""
    queue = fakes.RecordingQueue()
    rt = Runtime(settings=settings, db=fresh_db.db, queue=queue, llm=None, embedder=fakes.FakeEmbedder())
    transport = httpx.ASGITransport(app=factories.make_app(rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://memoryd.test") as client:
        async with rt.db.acquire(None) as conn:
            tenant = await settled(client, rt, conn)
        yield rt, client, tenant


async def test_equal_requests_at_once_have_one_effect_and_one_answer(
    alone: tuple[Runtime, httpx.AsyncClient, Tenant], described: dict[str, Any]
) -> None:
    """Whatever it is that keeps the key."""
    _, client, tenant = alone
    one_of_a_kind = ("delete_entity_by_number", "delete_memory", "delete_memories")  # what they name goes once
    last = (
        "update_webhook",
        "update_profile",
        "delete",
        "remove",
        "revoke",
    )  # what takes others the ground from under their feet
    for operation in sorted(writes(described), key=lambda one: one.name.startswith(last)):
        if operation.name in one_of_a_kind:
            continue
        sent, headers = request_of(operation, tenant), {idempotency.HEADER: operation.name}
        answers = await asyncio.gather(*(client.request(**sent, headers=headers) for _ in range(4)))
        assert {answer.status_code for answer in answers} <= {200, 201, 202}, (operation, [a.text for a in answers])
        secret = idempotency.RULES[operation.name].secret or "-"
        told = {json.dumps(without(answer.json(), secret, "detail", "replayed")) for answer in answers}
        assert len(told) == 1, (operation, told)
    organizations = (await client.get("/api/v1/orgs/organizations/")).json()
    assert [one["name"] for one in organizations].count("mine") == 1
    assert [key["name"] for key in (await client.get("/api/v1/keys/")).json()["keys"]].count("mine") == 1


def without(answer: Any, *names: str) -> Any:
    return {name: value for name, value in answer.items() if name not in names} if isinstance(answer, dict) else answer


async def test_while_the_first_one_runs_a_repeat_is_put_off(
    alone: tuple[Runtime, httpx.AsyncClient, Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    rt, client, tenant = alone
    monkeypatch.setattr(idempotency, "WAIT_S", 0.1)
    headers, body = {idempotency.HEADER: "k"}, {"user_id": "u"}
    async with rt.db.transaction(tenant.project.id) as conn:
        assert await store.lock(conn, tenant.project.id, "k")
        answer = await client.post("/v1/users/", json=body, headers=headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (409, "2")
    assert "still runs" in answer.json()["detail"]
    assert (await client.post("/v1/users/", json=body, headers=headers)).status_code == 201


async def test_what_fails_before_the_commit_leaves_neither_effect_nor_key(
    alone: tuple[Runtime, httpx.AsyncClient, Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer cannot be kept: so the organization is not made either, and a repeat makes it."""
    _, client, _ = alone
    keep = store.keep

    async def away(*_args: Any) -> bool:
        raise errors.DatabaseUnavailable

    headers, body, url = {idempotency.HEADER: "k"}, {"name": "only"}, "/api/v1/orgs/organizations/"
    monkeypatch.setattr(store, "keep", away)
    assert (await client.post(url, json=body, headers=headers)).status_code == 503
    assert "only" not in [one["name"] for one in (await client.get(url)).json()]
    monkeypatch.setattr(store, "keep", keep)
    made = await client.post(url, json=body, headers=headers)
    assert (made.status_code, idempotency.REPLAYED in made.headers) == (201, False)


@pytest.mark.parametrize("name", ["update_memory", "import_memories", "delete_entity"])
async def test_an_answer_that_was_lost_after_the_change_is_made_again(
    alone: tuple[Runtime, httpx.AsyncClient, Tenant],
    described: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Where the answer is written after the change: a repeat is put off until the lease has run out, and changes nothing."""
    _, client, tenant = alone
    operation = next(one for one in writes(described) if one.name == name)
    sent, headers, answer = request_of(operation, tenant), {idempotency.HEADER: "k"}, store.answer
    monkeypatch.setattr(idempotency, "WAIT_S", 0.1)
    monkeypatch.setattr(idempotency, "LEASE_S", 1.0)

    async def away(*_args: Any, **_named: Any) -> None:
        raise errors.DatabaseUnavailable

    monkeypatch.setattr(store, "answer", away)
    first = await client.request(**sent, headers=headers)
    assert first.is_success
    monkeypatch.setattr(store, "answer", answer)
    assert (await client.request(**sent, headers=headers)).status_code == 409
    assert (await client.request(**other_than(name, sent), headers=headers)).status_code == 422
    history = f"/v1/memories/{tenant.ids['memory_id']}/history/"
    changes = (await client.get(history)).json()
    monkeypatch.setattr(idempotency, "WAIT_S", 20.0)
    again = await client.request(**sent, headers=headers)
    assert (again.status_code, idempotency.REPLAYED in again.headers) == (200, False), again.text
    assert (await client.get(history)).json() == changes
    assert (await client.request(**sent, headers=headers)).headers[idempotency.REPLAYED] == "true"


async def test_a_request_that_fails_afterwards_frees_its_key(
    alone: tuple[Runtime, httpx.AsyncClient, Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    rt, client, tenant = alone
    url, headers = f"/v1/memories/{tenant.ids['memory_id']}/", {idempotency.HEADER: "k"}
    embed = rt.embedder.embed

    async def away(*_args: Any) -> Any:
        raise errors.EmbedderUnavailable

    monkeypatch.setattr(rt.embedder, "embed", away)
    assert (await client.put(url, json={"text": "A"}, headers=headers)).status_code == 503
    monkeypatch.setattr(rt.embedder, "embed", embed)
    assert (await client.put(url, json={"text": "B"}, headers=headers)).status_code == 200


async def test_bells_ring_after_the_commit(alone: tuple[Runtime, httpx.AsyncClient, Tenant]) -> None:
    rt, client, tenant = alone
    queue: Any = rt.queue
    before = len(queue.rung)
    url = f"/api/v1/webhooks/{tenant.ids['webhook_id']}/deliveries/{tenant.ids['message_id']}/replay/"
    for _ in range(2):
        assert (await client.post(url, headers={idempotency.HEADER: "k"})).status_code == 200
    assert len(queue.rung) == before + 1
