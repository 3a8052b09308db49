"""No key reaches beyond its project: every operation of `openapi.yaml`, called with every kind of wrong key.

Each project holds canaries, texts that are nowhere else. Whatever is asked, no answer and no line of the log has the
canary of another project, and what another project holds stays as it was, byte by byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from app.api import rights
from app.domain import access, pins
from app.model import KEY_SCOPES, Project
from app.runtime import Runtime
from app.store import exports, webhooks
from app.store.db import Conn
from tests import factories

HIDDEN = (403, 404)
#: Where answers show nothing of a project: no route returns the body of an export that was asked for, or a key.
UNSEEN = {"export"}


@dataclass(frozen=True)
class Row:
    """How an operation is called, with what is another project's where the request has a place for it."""

    body: Any = None  # "{name}" in texts stands for an id of the other project
    query: str = ""
    foreign: tuple[int, ...] = HIDDEN  # what a full key of one project gets that names what is another's


OWN = (200, 201)  #: nothing in the request names another project: the caller's own answers
EVERYBODY = {"user_id": "alice"}  #: both projects have this user
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
BOB = {"email": "bob@example.com", "role": "READER"}

ROWS: dict[str, Row] = {
    "ping": Row(foreign=OWN),
    "get_metrics": Row(foreign=(200, 403)),  # numbers of the whole installation, for keys of its first organization
    "add_memories": Row({**EVERYBODY, "messages": "I like tea."}, foreign=OWN),
    "add_memories_v1": Row({**EVERYBODY, "messages": [{"role": "user", "content": "I like tea."}]}, foreign=OWN),
    "import_memories": Row({"memories": [{"memory": "She likes tea.", "id": "{memory_id}", "user_id": "alice"}]}, foreign=OWN),
    "search_memories": Row({"query": "canary", "filters": {"user_id": "*"}, "threshold": 0}, foreign=OWN),
    "explain_search": Row({"query": "canary", "filters": {"user_id": "*"}, "memory_id": "{memory_id}"}),
    "make_context": Row({"query": "canary", "filters": {"user_id": "*"}}, foreign=OWN),
    "search_memories_v1": Row({"query": "canary", **EVERYBODY, "threshold": 0}, foreign=OWN),
    "search_memories_v2": Row({"query": "canary", "filters": {"memory_ids": ["{memory_id}"]}, "threshold": 0}, foreign=OWN),
    "list_memories": Row({"filters": {"OR": [{"user_id": "*"}, {"agent_id": "*"}]}}, foreign=OWN),
    "list_memories_v1": Row(query="user_id=*", foreign=OWN),
    "list_memories_v2": Row({"filters": {"memory_ids": ["{memory_id}"]}}, foreign=OWN),
    "list_memories_of_entity": Row(foreign=OWN),
    "get_memory": Row(),
    "get_history": Row(),
    "get_sources": Row(),
    "list_changes": Row(foreign=OWN),
    "update_memory": Row({"text": "Mine now."}),
    "update_memories": Row({"memories": [{"memory_id": "{memory_id}", "text": "Mine now."}]}),
    "give_feedback": Row({"memory_id": "{memory_id}", "feedback": "POSITIVE"}),
    "delete_memory": Row(query="delete_linked=true"),
    "delete_memories": Row({"memories": [{"memory_id": "{memory_id}"}]}),
    "delete_all_memories": Row(query="user_id=*&agent_id=*&app_id=*&run_id=*", foreign=OWN),
    "summarize": Row({"filters": EVERYBODY}, foreign=(*OWN, 501)),
    "get_stats": Row(foreign=OWN),
    "get_event": Row(),
    "get_event_by_its_older_path": Row(),
    "list_events": Row(foreign=OWN),
    "list_entities": Row(foreign=OWN),
    "list_entity_filters": Row(foreign=OWN),
    "get_entity": Row(),
    "create_user": Row({"user_id": "alice", "metadata": {"a": 1}}, foreign=OWN),
    "create_agent": Row({"agent_id": "alice", "name": "n"}, foreign=OWN),
    "create_app": Row({"app_id": "alice", "name": "n"}, foreign=OWN),
    "create_run": Row({"run_id": "alice", "name": "n"}, foreign=OWN),
    "delete_entity": Row(),
    "delete_entity_by_number": Row(),
    "get_profile": Row(foreign=(*OWN, 404)),
    "get_profile_job": Row(),
    "create_profile_job": Row(
        {"operation": "trigger", "entity_type": "user", "entity_id": "{entity_id}"}, foreign=(400, 404, 501)
    ),
    "get_profile_settings": Row(foreign=OWN),
    "update_profile_settings": Row({"enabled": False}, foreign=OWN),
    "create_export": Row({"schema": SCHEMA, "filters": {"user_id": "*"}}, foreign=OWN),
    "get_export": Row({"memory_export_id": "{export_id}"}),
    "export_lines": Row({"filters": {"user_id": "*"}}, foreign=OWN),
    "list_webhooks": Row(),
    "create_webhook": Row({"name": "n", "url": "https://x.example.com/", "event_types": ["memory_add"]}),
    "update_webhook": Row({"is_active": False}),
    "delete_webhook": Row(),
    "rotate_webhook_secret": Row(),
    "list_webhook_deliveries": Row(),
    "replay_webhook_delivery": Row(),
    "list_audit": Row(foreign=OWN),
    "list_keys": Row(foreign=OWN),
    "create_key": Row({"name": "mine"}, foreign=OWN),
    "rotate_key": Row({"overlap_s": 0}),
    "revoke_key": Row(),
    "list_organizations": Row(foreign=OWN),
    "create_organization": Row({"name": "mine"}, foreign=OWN),
    "get_organization": Row(),
    "delete_organization": Row(),
    "list_organization_members": Row(),
    "add_organization_member": Row(BOB),
    "update_organization_member": Row({"email": "{email}", "role": "READER"}),
    "remove_organization_member": Row({"email": "{email}"}),
    "list_projects": Row(),
    "create_project": Row({"name": "mine"}),
    "get_project": Row(),
    "update_project": Row({"custom_instructions": "mine"}),
    "delete_project": Row(),
    "list_project_members": Row(),
    "add_project_member": Row(BOB),
    "update_project_member": Row({"email": "{email}", "role": "READER"}),
    "remove_project_member": Row(query="email={email}"),
    **{
        name: Row({} if name in ("update_dream_config", "preview_dream") else None, foreign=(501,))
        for name in (
            "get_dream_config", "update_dream_config", "preview_dream", "list_dream_activity", "list_dream_runs",
            "list_dream_run_memories", "list_dream_memory_sources", "get_dream_stats",
        )
    },
}  # fmt: skip


@dataclass(frozen=True)
class Tenant:
    """A project with canaries, and the ids of what it holds."""

    project: Project
    secret: str
    canaries: dict[str, str]  # where → the text
    ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    name: str
    method: str
    path: str

    def request(self, target: Tenant) -> dict[str, Any]:
        """Return what calls it for what `target` holds."""
        row = ROWS[self.name]
        path = re.sub(r"\{([a-z_]+)\}", lambda found: target.ids[found[1]], self.path)
        query = _filled(row.query, target)
        return {"method": self.method, "url": f"{path}?{query}" if query else path, "json": _filled(row.body, target)}


def _filled(value: Any, target: Tenant) -> Any:
    if isinstance(value, str):
        return re.sub(r"\{([a-z_]+)\}", lambda found: target.ids[found[1]], value)
    if isinstance(value, dict):
        return {key: _filled(part, target) for key, part in value.items()}
    return [_filled(part, target) for part in value] if isinstance(value, list) else value


def operations(described: dict[str, Any]) -> Iterator[Operation]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if operation["security"]:
                yield Operation(operation["operationId"], method.upper(), path)


def test_every_operation_has_a_row(described: dict[str, Any]) -> None:
    assert {operation.name for operation in operations(described)} == set(ROWS)


# Two projects full of canaries


@pytest.fixture
def client(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """Return the client without the comparison with the description, which other tests make; some answers are lines."""
    client.event_hooks = {}
    return client


@pytest.fixture
async def ours(client: httpx.AsyncClient, runtime: Runtime, conn: Conn) -> Tenant:
    return await settle(client, runtime, conn, "heron")


@pytest.fixture
async def theirs(client: httpx.AsyncClient, runtime: Runtime, conn: Conn) -> Tenant:
    return await settle(client, runtime, conn, "osprey")


async def settle(client: httpx.AsyncClient, rt: Runtime, conn: Conn, bird: str) -> Tenant:
    """Make a project and everything that a project can hold, over HTTP where there is a route for it."""
    places = (
        "memory", "entity", "metadata", "category", "owner", "pending", "feedback", "webhook", "project_member",
        "organization_member", "organization", "project", "instructions", "categories", "key", "export", "profile",
    )  # fmt: skip
    canaries = {place: f"Canary{bird}{place.replace('_', '')}" for place in places}
    project = await factories.make_project(conn)
    secret = await factories.make_key(rt, project)
    tenant = Tenant(project, secret, canaries)
    headers = {"Authorization": f"Token {secret}"}

    async def call(method: str, path: str, body: Any = None) -> Any:
        answer = await client.request(method, path, json=body, headers=headers)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    org = f"/api/v1/orgs/organizations/{project.organization_public_id}/"
    await conn.execute(
        "UPDATE organizations SET name = $2 WHERE id = $1", project.organization_id, canaries["organization"]
    )
    await call("POST", f"{org}members/", {"email": f"{canaries['organization_member']}@x.example", "role": "OWNER"})
    at = f"{org}projects/{project.public_id}/"
    email = f"{canaries['project_member']}@x.example"
    await call("POST", f"{at}members/", {"email": email, "role": "OWNER"})
    settings = {
        "name": canaries["project"],
        "custom_instructions": canaries["instructions"],
        "custom_categories": [{canaries["categories"]: "c"}],
    }
    await call("PATCH", at, settings)
    kinds = ["memory_add", "memory_update"]
    hook = {"name": canaries["webhook"], "url": "https://hook.example.com/", "event_types": kinds}
    webhook = await call("POST", f"/api/v1/webhooks/projects/{project.public_id}/", hook)
    key = await call("POST", "/api/v1/keys/", {"name": canaries["key"]})
    said = f"{canaries['memory']} met {canaries['entity']} in Paris."
    added = await call("POST", "/v3/memories/add/", {
        "user_id": "alice", "infer": False, "metadata": {"m": canaries["metadata"]},
        "messages": [{"role": "user", "content": said}],
    })  # fmt: skip
    memory_id = added["results"][0]["id"]
    await conn.execute("UPDATE memories SET categories = $2 WHERE id = $1", UUID(memory_id), [canaries["category"]])
    pending = await call("POST", "/v3/memories/add/", {"user_id": "alice", "messages": canaries["pending"]})
    await call("POST", "/v1/users/", {"user_id": canaries["owner"]})
    await call("POST", "/v1/feedback/", {"memory_id": memory_id, "feedback_reason": canaries["feedback"]})
    described = {"type": "object", "properties": {"c": {"type": "string", "description": canaries["profile"]}}}
    await call("POST", "/v2/profiles/settings/", {"enabled": True, "entities": {"user": {"schema": described}}})
    asked = {"schema": SCHEMA, "filters": EVERYBODY, "export_instructions": canaries["export"]}
    export = (await call("POST", "/v1/exports/", asked))["id"]
    await exports.finish(conn, project.id, UUID(export), {"city": canaries["export"]}, scope_ids=[])
    deliveries = (await call("GET", f"/api/v1/webhooks/{webhook['webhook_id']}/deliveries/"))["results"]
    owners = (await call("GET", "/v1/entities/"))["results"]
    tenant.ids.update(
        memory_id=memory_id, event_id=pending["event_id"], job_id=export, export_id=export, email=email,
        org_id=project.organization_public_id, project_id=project.public_id, key_id=key["id"],
        webhook_id=webhook["webhook_id"], message_id=deliveries[0]["message_id"], run_id=str(uuid4()),
        entity_type="user", entity_id=canaries["owner"], entity_number=owners[0]["id"],
    )  # fmt: skip
    return tenant


# What it is compared with


async def held(conn: Conn, tenant: Tenant, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return all rows of a project, by table; when a key was used last is not a change."""
    tables = await conn.fetch(
        "SELECT c.table_name AS name FROM information_schema.columns c "
        "WHERE c.column_name = 'project_id' AND c.table_schema = 'public' ORDER BY 1"
    )
    rows = {
        row["name"]: await conn.fetch(
            f"SELECT to_jsonb(t) - 'last_used_at' AS row FROM {row['name']} t WHERE project_id = $1 ORDER BY (to_jsonb(t) - 'last_used_at')::text",
            tenant.project.id,
        )
        for row in tables
        if row["name"] not in without
    }
    rows["projects"] = await conn.fetch("SELECT to_jsonb(t) AS row FROM projects t WHERE id = $1", tenant.project.id)
    of = tenant.project.organization_id
    rows["organizations"] = await conn.fetch("SELECT to_jsonb(t) AS row FROM organizations t WHERE id = $1", of)
    rows["organization_members"] = await conn.fetch(
        "SELECT to_jsonb(t) AS row FROM organization_members t WHERE organization_id = $1 ORDER BY to_jsonb(t)::text",
        of,
    )
    return {name: [row["row"] for row in found] for name, found in rows.items()}


def betrayed(text: str, tenant: Tenant, sent: dict[str, Any]) -> list[str]:
    """Return the canaries of a project in `text`, but for those that the request itself had."""
    said = f"{sent['url']} {json.dumps(sent['json'])}"
    return [canary for canary in tenant.canaries.values() if canary in text and canary not in said]


@asynccontextmanager
async def untouched(conn: Conn, *tenants: Tenant, without: tuple[str, ...] = ()) -> AsyncIterator[None]:
    before = [await held(conn, tenant, without=without) for tenant in tenants]
    yield
    for tenant, former in zip(tenants, before, strict=True):
        assert await held(conn, tenant, without=without) == former


async def refused(client: httpx.AsyncClient, secret: str | None, target: Tenant, described: Any, status: int) -> None:
    for operation in operations(described):
        sent = operation.request(target)
        headers = {"Authorization": "" if secret is None else f"Token {secret}"}
        answer = await client.request(**sent, headers=headers)
        assert answer.status_code == status, (operation, answer.text)
        assert not betrayed(answer.text, target, sent), operation


# Keys that are none


async def test_nobody_gets_in_without_a_key(
    client: httpx.AsyncClient, conn: Conn, theirs: Tenant, described: dict[str, Any]
) -> None:
    async with untouched(conn, theirs):
        for secret in (None, "", "None", "null", access.new_secret(), theirs.secret[:-1], theirs.secret.upper()):
            await refused(client, secret, theirs, described, 401)


async def test_a_revoked_key_opens_nothing(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, theirs: Tenant, described: dict[str, Any]
) -> None:
    key, secret = await access.create_key(runtime, theirs.project, name="former")
    assert (await access.authenticate(runtime, secret)).project.id == theirs.project.id
    await access.revoke_key(runtime, theirs.project, key.id)
    async with untouched(conn, theirs):
        await refused(client, secret, theirs, described, 401)


async def test_an_expired_key_opens_nothing(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, theirs: Tenant, described: dict[str, Any]
) -> None:
    grant = access.Grant(expires_at=datetime.now(UTC) + timedelta(hours=1))
    key, secret = await access.create_key(runtime, theirs.project, name="old", grant=grant)
    await conn.execute("UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = $1", key.id)
    async with untouched(conn, theirs):
        await refused(client, secret, theirs, described, 401)


# Keys that are not enough


async def test_a_key_without_the_scope_of_a_route_is_refused_by_it(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, theirs: Tenant, described: dict[str, Any]
) -> None:
    without = {}
    for scope in KEY_SCOPES:
        grant = access.Grant(scopes=tuple(one for one in KEY_SCOPES if one != scope))
        without[scope] = (await access.create_key(runtime, theirs.project, name="less", grant=grant))[1]
    async with untouched(conn, theirs, without=("audit_log",)):  # which tells that a key was refused
        for operation in operations(described):
            scope = rights.RIGHTS["get_event" if "older" in operation.name else operation.name].scope
            if scope is None:
                continue
            sent = operation.request(theirs)
            answer = await client.request(**sent, headers={"Authorization": f"Token {without[scope]}"})
            assert answer.status_code == 403, (operation, answer.text)
            assert not betrayed(answer.text, theirs, sent), operation


async def test_a_key_that_is_pinned_to_others_sees_and_changes_nothing(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn, theirs: Tenant, described: dict[str, Any]
) -> None:
    grant = access.Grant(pins=pins.read({"user_id": ["nobody*"]}))
    _, secret = await access.create_key(runtime, theirs.project, name="pinned", grant=grant)
    # A delete that finds nothing is an event, and leaves a line.
    async with untouched(conn, theirs, without=("events", "retrievals", "audit_log")):
        for operation in operations(described):
            sent = operation.request(theirs)
            answer = await client.request(**sent, headers={"Authorization": f"Token {secret}"})
            assert answer.status_code in (200, *HIDDEN), (operation, answer.text)
            if operation.name != "ping":  # which says whose key it is
                assert not betrayed(answer.text, theirs, sent), operation


# A full key of another project


async def test_a_key_of_another_project_sees_and_changes_nothing(
    client: httpx.AsyncClient,
    conn: Conn,
    ours: Tenant,
    theirs: Tenant,
    described: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    async with untouched(conn, theirs):
        # The import comes last: ids are a project's own, so it gives the caller a memory of the same id.
        for operation in sorted(operations(described), key=lambda one: one.name == "import_memories"):
            sent = operation.request(theirs)
            answer = await client.request(**sent, headers={"Authorization": f"Token {ours.secret}"})
            assert answer.status_code in ROWS[operation.name].foreign, (operation, answer.text)
            assert not betrayed(answer.text, theirs, sent), operation
    logged = "".join(capsys.readouterr())
    assert logged.count('"request"') >= len(ROWS) - 5
    for tenant in (ours, theirs):
        # Ids in paths are logged; what people wrote and keys are not.
        found = [
            canary for canary in tenant.canaries.values() if canary in logged and canary not in tenant.ids.values()
        ]
        assert not found
        assert tenant.secret not in logged
        assert await webhooks.secret_of(conn, theirs.project.id, theirs.ids["webhook_id"]) not in logged


async def test_the_canaries_can_be_found(client: httpx.AsyncClient, theirs: Tenant, described: dict[str, Any]) -> None:
    """Otherwise the tests above would find nothing because there is nothing."""
    seen = set()
    for operation in operations(described):
        if operation.method != "GET" and not operation.name.startswith(("search", "list", "export", "get")):
            continue
        answer = await client.request(**operation.request(theirs), headers={"Authorization": f"Token {theirs.secret}"})
        seen |= {place for place, canary in theirs.canaries.items() if canary in answer.text}
    assert seen >= set(theirs.canaries) - UNSEEN - {"feedback"}
