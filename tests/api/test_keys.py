"""Keys with scopes, an end, and pins: over HTTP, as clients meet them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app import api
from app.api import rights
from app.domain import access, pins
from app.model import KEY_SCOPES, KeyScope, Project
from app.runtime import Runtime
from app.store.db import Conn
from tests import factories

KEYS = "/api/v1/keys/"


def with_key(secret: str) -> dict[str, str]:
    return {"Authorization": f"Token {secret}"}


@pytest.fixture
async def make(runtime: Runtime, project: Project) -> Any:
    """Make a key and return what sends it."""

    async def make(*scopes: KeyScope, pin: dict[str, list[str]] | None = None, **more: Any) -> dict[str, str]:
        grant = access.Grant(scopes=scopes or None, pins=pins.read(pin or {}), **more)
        return with_key((await access.create_key(runtime, project, name="k", grant=grant))[1])

    return make


def test_every_route_says_what_a_key_needs_for_it() -> None:
    guarded = {route.name for router in api.ROUTERS for route in router.routes if route.guarded}  # type: ignore[attr-defined]
    assert guarded == set(rights.RIGHTS)


async def test_a_route_that_nobody_thought_of_needs_the_most(runtime: Runtime, project: Project) -> None:
    _, secret = await access.create_key(
        runtime, project, name="k", grant=access.Grant(scopes=("memories:read", "memories:write", "memories:delete"))
    )
    with pytest.raises(Exception, match="no scope admin"):
        rights.require(await access.authenticate(runtime, secret), "brand_new_route")


# Made, listed, rotated, revoked


async def test_key_is_made_with_what_it_may_do_and_shown_once(client: httpx.AsyncClient) -> None:
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    sent = {"name": "reader", "role": "member", "scopes": ["memories:read"], "expires_at": until}
    made = (await client.post(KEYS, json=sent)).json()
    assert (made["role"], made["scopes"], made["pins"]) == ("member", ["memories:read"], {})
    assert made["key"].startswith(made["prefix"])
    listed = await client.get(KEYS)
    assert made["key"] not in listed.text
    shown = next(key for key in listed.json()["keys"] if key["id"] == made["id"])
    assert shown == {name: value for name, value in made.items() if name != "key"}
    assert (await client.get("/v1/ping/", headers=with_key(made["key"]))).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        {"scopes": []},
        {"scopes": ["everything"]},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"name": " "},
        {"role": "king"},
        {"pins": {"user": ["x"]}},
        {"pins": {"user_id": [""]}},
        {"pins": {"user_id": ["alice"]}, "scopes": ["webhooks"]},
        {"pins": {"user_id": ["alice"]}, "scopes": ["memories:read", "admin"]},
    ],
)
async def test_key_that_contradicts_itself_is_not_made(client: httpx.AsyncClient, sent: dict[str, Any]) -> None:
    assert (await client.post(KEYS, json={"name": "k", **sent})).status_code == 400
    assert len((await client.get(KEYS)).json()["keys"]) == 1


async def test_expired_key_is_no_key(client: httpx.AsyncClient, runtime: Runtime, project: Project, conn: Conn) -> None:
    grant = access.Grant(expires_at=datetime.now(UTC) + timedelta(hours=1))
    key, secret = await access.create_key(runtime, project, name="k", grant=grant)
    assert (await client.get("/v1/ping/", headers=with_key(secret))).status_code == 200
    await conn.execute("UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = $1", key.id)
    access.forget()
    assert (await client.get("/v1/ping/", headers=with_key(secret))).status_code == 401


async def test_both_keys_work_while_a_rotation_overlaps(client: httpx.AsyncClient, conn: Conn) -> None:
    sent = {"name": "n", "scopes": ["memories:read", "webhooks"], "role": "member"}
    old = (await client.post(KEYS, json=sent)).json()
    new = (await client.post(f"{KEYS}{old['id']}/rotate/", json={"overlap_s": 600})).json()
    assert (new["name"], new["scopes"], new["role"], new["expires_at"]) == ("n", sent["scopes"], "member", None)
    for key in (old, new):
        assert (await client.get("/v1/ping/", headers=with_key(key["key"]))).status_code == 200
    await conn.execute("UPDATE api_keys SET expires_at = expires_at - interval '601 s' WHERE id = $1::uuid", old["id"])
    access.forget()
    assert (await client.get("/v1/ping/", headers=with_key(old["key"]))).status_code == 401
    assert (await client.post(f"{KEYS}{old['id']}/rotate/", json={})).status_code == 409


async def test_rotation_without_overlap_ends_the_former_key_at_once(client: httpx.AsyncClient) -> None:
    old = (await client.post(KEYS, json={"name": "n"})).json()
    assert (await client.post(f"{KEYS}{old['id']}/rotate/", json={"overlap_s": 0})).status_code == 200
    assert (await client.get("/v1/ping/", headers=with_key(old["key"]))).status_code == 401


async def test_rotated_key_gets_as_long_a_life(client: httpx.AsyncClient) -> None:
    until = datetime.now(UTC) + timedelta(days=10)
    old = (await client.post(KEYS, json={"name": "n", "expires_at": until.isoformat()})).json()
    new = (await client.post(f"{KEYS}{old['id']}/rotate/", json={})).json()
    life = datetime.fromisoformat(new["expires_at"]) - datetime.fromisoformat(new["created_at"])
    assert abs(life - timedelta(days=10)) < timedelta(minutes=1)


async def test_revoked_key_is_no_key(client: httpx.AsyncClient) -> None:
    made = (await client.post(KEYS, json={"name": "n"})).json()
    assert (await client.get("/v1/ping/", headers=with_key(made["key"]))).status_code == 200
    assert (await client.delete(f"{KEYS}{made['id']}/")).status_code == 200
    assert (await client.get("/v1/ping/", headers=with_key(made["key"]))).status_code == 401
    assert (await client.delete(f"{KEYS}{uuid4()}/")).status_code == 404


@pytest.mark.parametrize("grant", [access.Grant(role="member"), access.Grant(scopes=("memories:write", "webhooks"))])
async def test_plain_key_neither_sees_nor_makes_keys(
    client: httpx.AsyncClient, runtime: Runtime, project: Project, grant: access.Grant
) -> None:
    key, secret = await access.create_key(runtime, project, name="plain", grant=grant)
    before = await access.list_keys(runtime, project)
    for method, path, body in (
        ("GET", KEYS, None),
        ("POST", KEYS, {"name": "x"}),
        ("POST", f"{KEYS}{key.id}/rotate/", {}),
        ("DELETE", f"{KEYS}{key.id}/", None),
    ):
        answer = await client.request(method, path, json=body, headers=with_key(secret))
        assert answer.status_code == 403, (method, path)
    assert [key.id for key in await access.list_keys(runtime, project)] == [key.id for key in before]


# Scopes


@pytest.mark.parametrize(
    ("scope", "method", "path", "body"),
    [
        ("memories:read", "POST", "/v3/memories/search/", {"query": "x", "filters": {"user_id": "alice"}}),
        ("memories:read", "GET", "/v1/events/", None),
        ("memories:write", "POST", "/v3/memories/add/", {"user_id": "alice", "messages": "I like tea."}),
        ("memories:delete", "DELETE", "/v1/memories/?user_id=alice", None),
        ("webhooks", "GET", "/api/v1/webhooks/projects/{project_id}/", None),
        ("exports", "POST", "/v1/exports/get/", {"filters": {"user_id": "alice"}}),
        ("admin", "PATCH", "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/", {"decay": True}),
    ],
)
async def test_scope_opens_its_routes_and_the_others_do_not(
    client: httpx.AsyncClient, project: Project, make: Any, scope: KeyScope, method: str, path: str, body: Any
) -> None:
    path = path.format(project_id=project.public_id, org_id=project.organization_public_id)
    with_it = await client.request(method, path, json=body, headers=await make(scope))
    assert with_it.status_code in (200, 404), with_it.text
    without = await make(*(one for one in KEY_SCOPES if one != scope))
    refused = await client.request(method, path, json=body, headers=without)
    assert refused.status_code == 403
    assert scope in refused.json()["detail"]


# Pins


@pytest.fixture
async def pinned(
    client: httpx.AsyncClient, project: Project, conn: Conn, make: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers of a key for users `alice*`, and one memory each of alice-1 and bob, by user."""
    found = {}
    for user in ("alice-1", "bob"):
        scope = await factories.make_scope(conn, project, user_id=user)
        found[user] = str((await factories.make_memory(conn, scope, f"{user} drinks tea.")).id)
    return await make(pin={"user_id": ["alice*"]}), found


async def test_pinned_key_finds_its_own_owners_only(
    client: httpx.AsyncClient, pinned: tuple[dict[str, str], dict[str, str]]
) -> None:
    headers, found = pinned
    for filters in (
        {"user_id": "*"},
        {"OR": [{"user_id": "bob"}, {"user_id": "alice-1"}]},
        {"NOT": [{"user_id": "nobody"}], "user_id": "*"},
        {"user_id": {"in": ["bob", "alice-1"]}},
    ):
        for path, more in (("/v3/memories/", {}), ("/v3/memories/search/", {"query": "tea", "threshold": 0})):
            answer = await client.post(path, json={"filters": filters, **more}, headers=headers)
            assert [one["id"] for one in answer.json()["results"]] == [found["alice-1"]], (path, filters)
    for path in ("/v1/memories/?user_id=*", "/v1/memories/user/bob/"):
        assert found["bob"] not in (await client.get(path, headers=headers)).text


async def test_what_is_outside_of_the_pins_does_not_exist(
    client: httpx.AsyncClient, pinned: tuple[dict[str, str], dict[str, str]]
) -> None:
    headers, found = pinned
    before = (await client.get(f"/v1/memories/{found['bob']}/")).json()
    for user, expected in (("bob", 404), ("alice-1", 200)):
        one = f"/v1/memories/{found[user]}/"
        for method, path, body in (
            ("GET", one, None),
            ("GET", f"{one}history/", None),
            ("PUT", one, {"metadata": {"a": 1}}),
            ("PUT", "/v1/batch/", {"memories": [{"memory_id": found[user], "text": f"{user} likes coffee."}]}),
            ("POST", "/v1/feedback/", {"memory_id": found[user], "feedback": "POSITIVE"}),
            ("GET", f"/v2/entities/user/{user}/", None),
        ):
            answer = await client.request(method, path, json=body, headers=headers)
            assert answer.status_code == expected, (method, path, answer.text)
    for path in (f"/v1/memories/{found['bob']}/", f"/v1/memories/{found['bob']}/?delete_linked=true"):
        assert (await client.delete(path, headers=headers)).status_code == 404
    both = {"memories": [{"memory_id": found["alice-1"]}, {"memory_id": found["bob"]}]}
    assert (await client.request("DELETE", "/v1/batch/", json=both, headers=headers)).status_code == 404
    assert (await client.delete("/v2/entities/user/bob/", headers=headers)).status_code == 403
    assert (await client.get(f"/v1/memories/{found['bob']}/")).json() == before


async def test_pinned_key_empties_its_own_owners_only(
    client: httpx.AsyncClient, pinned: tuple[dict[str, str], dict[str, str]]
) -> None:
    headers, found = pinned
    everything = "user_id=*&agent_id=*&app_id=*&run_id=*"
    assert (await client.delete(f"/v1/memories/?{everything}", headers=headers)).status_code == 200
    assert (await client.get(f"/v1/memories/{found['alice-1']}/")).status_code == 404
    assert (await client.get(f"/v1/memories/{found['bob']}/")).status_code == 200


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize(
    ("owners", "status"),
    [
        ({"user_id": "alice-9"}, 200),
        ({"user_id": "alice-9", "app_id": "shop"}, 200),
        ({"user_id": "bob"}, 403),
        ({"agent_id": "alice"}, 403),
    ],
)
async def test_pinned_key_adds_for_its_own_owners_only(
    client: httpx.AsyncClient, make: Any, conn: Conn, owners: dict[str, str], status: int, infer: bool
) -> None:
    headers = await make(pin={"user_id": ["alice*"]})
    sent = {**owners, "messages": [{"role": "user", "content": "I like tea."}], "infer": infer}
    answer = await client.post("/v3/memories/add/", json=sent, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 403:
        assert await conn.fetchval("SELECT count(*) FROM events") == 0
        assert await conn.fetchval("SELECT count(*) FROM scopes") == 0
    else:
        event = await client.get(f"/v1/event/{answer.json()['event_id']}/", headers=headers)
        assert event.status_code == 200


async def test_facts_of_an_agent_do_not_leave_the_pins_through_a_split(client: httpx.AsyncClient, make: Any) -> None:
    """With a user and an agent, the agent's own facts would be stored under the agent alone."""
    headers = await make(pin={"user_id": ["alice*"]})
    sent = {"user_id": "alice", "agent_id": "bot", "messages": "I like tea."}
    answer = await client.post("/v3/memories/add/", json=sent, headers=headers)
    assert answer.status_code == 403
    assert "agent_id=bot" in answer.json()["detail"]


async def test_pinned_key_sees_no_event_of_others(client: httpx.AsyncClient, make: Any) -> None:
    headers = await make(pin={"user_id": ["alice*"]})
    other = (await client.post("/v3/memories/add/", json={"user_id": "bob", "messages": "I like tea."})).json()
    assert (await client.get(f"/v1/event/{other['event_id']}/", headers=headers)).status_code == 404
    for path in ("/v1/events/", "/v1/entities/", "/v1/stats/", "/v1/memories/events/", KEYS):
        assert (await client.get(path, headers=headers)).status_code == 403, path
