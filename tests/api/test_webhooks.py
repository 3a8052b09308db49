"""Webhook endpoints over HTTP: what is asked for is kept, what is dangerous is refused."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from app.model import Project, WebhookEvent
from app.runtime import Runtime
from app.store import webhooks
from app.store.db import Conn
from tests import factories

HOOK = {"name": "Backup", "url": "https://93.184.216.34/in?x=1", "event_types": ["memory_add", "memory_delete"]}


def collection(project: Project) -> str:
    return f"/api/v1/webhooks/projects/{project.public_id}/"


async def ok(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


@pytest.fixture
async def made(client: httpx.AsyncClient, project: Project) -> dict[str, Any]:
    return await ok(await client.post(collection(project), json=HOOK), 201)


@pytest.fixture
def one(made: dict[str, Any]) -> str:
    return f"/api/v1/webhooks/{made['webhook_id']}/"


async def listed(client: httpx.AsyncClient, project: Project) -> Any:
    return await ok(await client.get(collection(project)))


async def test_new_endpoint_has_the_documented_fields(made: dict[str, Any], project: Project) -> None:
    assert {name: made[name] for name in HOOK} == HOOK
    assert (made["owner"], made["is_active"], made["project"]) == ("admin", True, project.name)
    assert made["webhook_id"].startswith("wh_")
    assert made["created_at"]
    assert made["updated_at"]


async def test_secret_is_shown_once_and_kept_for_signing(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any], conn: Conn
) -> None:
    secret = made.pop("secret")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert await listed(client, project) == [made]
    assert await webhooks.secret_of(conn, project.id, made["webhook_id"]) == secret


async def test_two_endpoints_have_secrets_of_their_own(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any]
) -> None:
    second = await ok(await client.post(collection(project), json=HOOK), 201)
    assert second["secret"] != made["secret"]
    assert [hook["webhook_id"] for hook in await listed(client, project)] == [made["webhook_id"], second["webhook_id"]]


async def test_names_of_events_are_taken_with_a_colon_and_given_with_an_underscore(
    client: httpx.AsyncClient, project: Project
) -> None:
    sent = {**HOOK, "event_types": ["memory:add", "memory_add", "memory:categorize"], "is_active": False}
    made = await ok(await client.post(collection(project), json=sent), 201)
    assert made["event_types"] == ["memory_add", "memory_categorize"]
    assert made["is_active"] is False


async def test_every_documented_event_can_be_asked_for(client: httpx.AsyncClient, project: Project) -> None:
    made = await ok(await client.post(collection(project), json={**HOOK, "event_types": list(WebhookEvent)}), 201)
    assert made["event_types"] == [
        "memory_add", "memory_update", "memory_delete", "memory_categorize", "ingest_job_completed",
        "ingest_job_partially_completed", "ingest_job_failed", "ingest_job_cancelled",
    ]  # fmt: skip


@pytest.mark.parametrize("field", ["name", "url", "event_types"])
async def test_what_is_missing_is_named_by_its_field(client: httpx.AsyncClient, project: Project, field: str) -> None:
    body = {name: value for name, value in HOOK.items() if name != field}
    refused = await ok(await client.post(collection(project), json=body), 400)
    assert refused == {field: [refused["detail"]], "detail": refused["detail"]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", 1),
        ("name", "x" * 256),
        ("event_types", []),
        ("event_types", ["memory_read"]),
        ("event_types", ["memory_add", None]),
        ("event_types", {"memory_add": True}),
        ("is_active", "perhaps"),
        ("url", ""),
        ("url", 7),
        ("url", "ftp://93.184.216.34/"),
        ("url", "file:///etc/passwd"),
        ("url", "//93.184.216.34/"),
        ("url", "https://"),
        ("url", "https://user:password@93.184.216.34/"),
        ("url", "https://user@93.184.216.34/"),
        ("url", "https://93.184.216.34:99999/"),
        ("url", "https://93.184.216.34:0/"),
        ("url", "https://93.184.216.34\\@127.0.0.1/"),
        ("url", "https://93.184.216.34/ x"),
        ("url", "https://[1::2::3]/"),
        ("url", "https://93.184.216.34/" + "x" * 2048),
        ("url", "http://127.0.0.1/"),
        ("url", "http://127.1/"),
        ("url", "http://2130706433/"),
        ("url", "http://0x7f000001/"),
        ("url", "http://0177.0.0.1/"),
        ("url", "http://localhost:8000/"),
        ("url", "http://a.localhost./"),
        ("url", "http://0/"),
        ("url", "http://10.1.2.3/"),
        ("url", "http://169.254.169.254/latest/meta-data/"),
        ("url", "http://100.64.0.1/"),
        ("url", "http://224.0.0.1/"),
        ("url", "http://[::1]/"),
        ("url", "http://[::ffff:127.0.0.1]/"),
        ("url", "http://[64:ff9b::7f00:1]/"),
        ("url", "http://[fe80::1%25eth0]/"),
        ("url", "http://①②⑦.⓪.⓪.①/"),
    ],
)
async def test_wrong_value_is_refused_when_made_and_when_changed(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any], one: str, field: str, value: Any
) -> None:
    for answer in (
        await client.post(collection(project), json={**HOOK, field: value}),
        await client.put(one, json={"name": "other", field: value}),
    ):
        refused = await ok(answer, 400)
        assert refused == {field: [refused["detail"]], "detail": refused["detail"]}
    del made["secret"]
    assert await listed(client, project) == [made], "a refusal changes nothing"


async def test_networks_that_the_operator_opens_may_be_reached(runtime: Runtime, project: Project) -> None:
    from dataclasses import replace

    from app import config

    opened = config.load(data=runtime.settings.data, outbound_allow_nets="127.0.0.0/8,::1/128")
    rt = replace(runtime, settings=opened)
    transport = httpx.ASGITransport(app=factories.make_app(rt))
    headers = {"Authorization": f"Token {await factories.make_key(rt, project)}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://memoryd.test", headers=headers) as client:
        for url, status in (("http://127.0.0.1:9/", 201), ("http://localhost/", 201), ("http://10.0.0.1/", 400)):
            await ok(await client.post(collection(project), json={**HOOK, "url": url}), status)


async def test_name_that_does_not_resolve_yet_is_taken(client: httpx.AsyncClient, project: Project) -> None:
    for url in ("https://nowhere.invalid/hook", "https://überall.invalid/", f"https://{'a' * 64}.invalid/"):
        assert (await ok(await client.post(collection(project), json={**HOOK, "url": url}), 201))["url"] == url


async def test_change_replaces_only_what_is_sent(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any], one: str
) -> None:
    del made["secret"]
    for change in (
        {"name": "Other"},
        {"url": "http://93.184.216.34/"},
        {"event_types": ["memory_update"]},
        {"is_active": False},
    ):
        assert await ok(await client.put(one, json=change)) == {"message": "Webhook updated successfully"}
        made = {**made, **change}
        [now] = await listed(client, project)
        assert now["updated_at"] > made["updated_at"]
        made["updated_at"] = now["updated_at"]
        assert now == made


async def test_change_of_nothing_is_refused(client: httpx.AsyncClient, one: str) -> None:
    for body in ({}, {"event_type": ["memory_add"]}, {"name": None}):
        assert list(await ok(await client.put(one, json=body), 400)) == ["non_field_errors", "detail"]


async def test_deleted_endpoint_is_gone(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any], one: str
) -> None:
    assert await ok(await client.delete(one)) == {"message": "Webhook deleted successfully"}
    assert await listed(client, project) == []
    for answer in (await client.delete(one), await client.put(one, json={"name": "x"})):
        assert await ok(answer, 404) == {"error": "Webhook not found", "detail": "Webhook not found"}


async def test_endpoints_are_for_keys_of_their_project_alone(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any], one: str, runtime: Runtime, conn: Conn
) -> None:
    from app.model import ProjectSettings
    from app.store import orgs

    del made["secret"]
    sibling = await orgs.insert_project(conn, project.organization_id, name="sibling", settings=ProjectSettings())
    own = client.headers["Authorization"]
    for other in (sibling, await factories.make_project(conn)):
        client.headers["Authorization"] = f"Token {await factories.make_key(runtime, other)}"
        assert (await client.get(collection(project))).status_code == 404
        refused = await ok(await client.post(collection(project), json=HOOK), 404)
        assert refused["error"] == "You don't have access to this project"
        assert (await client.put(one, json={"name": "x"})).status_code == 404
        assert (await client.delete(one)).status_code == 404
        assert (await client.get("/api/v1/webhooks/projects/proj_nobody/")).json() == refused
    client.headers["Authorization"] = own
    assert await listed(client, project) == [made]


async def test_both_slash_forms_are_served(client: httpx.AsyncClient, project: Project, one: str) -> None:
    assert len(await ok(await client.get(collection(project).rstrip("/")))) == 1
    await ok(await client.put(one.rstrip("/"), json={"name": "x"}))
    await ok(await client.post("http://memoryd.test/" + collection(project).rstrip("/"), json=HOOK), 201)
    await ok(await client.delete(one.rstrip("/")))


async def test_ids_that_cannot_be_are_not_found(client: httpx.AsyncClient) -> None:
    for id in ("%00", "wh_" + "x" * 3000, "wh_%2F"):
        assert (await client.delete(f"/api/v1/webhooks/{id}/")).status_code == 404


# Deliveries


@pytest.fixture
async def told(client: httpx.AsyncClient, made: dict[str, Any], runtime: Runtime, project: Project) -> dict[str, Any]:
    """Delete a memory that the endpoint is told of; return the delivery that waits."""
    stored = {"messages": [{"role": "user", "content": "I like tea"}], "user_id": "alice", "infer": False}
    await ok(await client.post("/v3/memories/add/", json=stored))
    [delivery] = (await ok(await client.get(f"/api/v1/webhooks/{made['webhook_id']}/deliveries/")))["results"]
    return delivery


async def test_delivery_that_waits_is_listed_with_what_will_be_sent(
    client: httpx.AsyncClient, told: dict[str, Any], one: str
) -> None:
    assert told["event_details"] == {"id": told["memory_id"], "data": {"memory": "I like tea"}, "event": "ADD"}
    assert (told["event_type"], told["status"], told["attempt_count"], told["attempts"]) == (
        "memory_add", "PENDING", 0, [],
    )  # fmt: skip
    for query, count in (("", 1), ("?status=PENDING", 1), ("?status=FAILED", 0)):
        assert (await ok(await client.get(f"{one}deliveries/{query}")))["count"] == count
    await ok(await client.get(f"{one}deliveries/?page=2"), 404)
    await ok(await client.get(f"{one}deliveries/?status=GONE"), 400)
    await ok(await client.get(f"{one}deliveries/?page_size=0"), 400)


async def test_delivery_that_failed_is_due_again_after_a_replay(
    client: httpx.AsyncClient, told: dict[str, Any], one: str, conn: Conn
) -> None:
    failed = "UPDATE deliveries SET status = 'FAILED', attempts = 8, completed_at = now()"
    await conn.execute(failed)
    replay = f"{one}deliveries/{told['message_id']}/replay/"
    assert await ok(await client.post(replay)) == {"message": "The delivery is due again"}
    [again] = (await ok(await client.get(f"{one}deliveries/")))["results"]
    assert (again["message_id"], again["status"], again["attempt_count"]) == (told["message_id"], "PENDING", 0)
    await conn.execute("UPDATE deliveries SET status = 'RUNNING', lease_until = now()")
    await ok(await client.post(replay), 409)
    await conn.execute("UPDATE deliveries SET status = 'PENDING', lease_until = NULL")
    await ok(await client.put(one, json={"is_active": False}))
    await ok(await client.post(replay), 409)
    for unknown in ("7d8a2c44-51f7-4a0f-9c55-0f6f7e0f2a11", "x"):
        await ok(await client.put(one, json={"is_active": True}))
        refused = await ok(await client.post(f"{one}deliveries/{unknown}/replay/"), 404)
        assert refused == {"error": "Delivery not found", "detail": "Delivery not found"}


async def test_rotation_shows_the_new_secret_once(
    client: httpx.AsyncClient, project: Project, made: dict[str, Any], one: str, conn: Conn
) -> None:
    rotated = await ok(await client.post(f"{one}secret/rotate/"))
    assert rotated["webhook_id"] == made["webhook_id"]
    assert rotated["secret"] != made["secret"]
    assert await webhooks.secret_of(conn, project.id, made["webhook_id"]) == rotated["secret"]
    assert "secret" not in (await listed(client, project))[0]


async def test_former_secrets_are_few_however_often_it_is_rotated(
    client: httpx.AsyncClient, one: str, conn: Conn
) -> None:
    for _ in range(webhooks.FORMER_SECRETS + 3):
        await ok(await client.post(f"{one}secret/rotate/"))
    assert await conn.fetchval("SELECT jsonb_array_length(former_secrets) FROM webhooks") == webhooks.FORMER_SECRETS


async def test_deliveries_are_for_keys_of_their_project_alone(
    client: httpx.AsyncClient, told: dict[str, Any], one: str, runtime: Runtime, conn: Conn
) -> None:
    other = await factories.make_project(conn)
    client.headers["Authorization"] = f"Token {await factories.make_key(runtime, other)}"
    for answer in (
        await client.get(f"{one}deliveries/"),
        await client.post(f"{one}deliveries/{told['message_id']}/replay/"),
        await client.post(f"{one}secret/rotate/"),
    ):
        assert await ok(answer, 404) == {"error": "Webhook not found", "detail": "Webhook not found"}


async def test_public_host_on_another_port_is_refused_when_it_is_given(
    client: httpx.AsyncClient, project: Project
) -> None:
    for url, status in (
        ("http://93.184.216.34:8080/", 400),
        ("https://93.184.216.34:443/", 201),
        ("http://93.184.216.34:80/", 201),
    ):
        await ok(await client.post(collection(project), json={**HOOK, "url": url}), status)
