"""Organizations, projects, their settings and their members, over HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.domain import access, tenancy
from app.model import Project, ProjectSettings
from app.runtime import Runtime
from app.store import orgs
from app.store.db import Conn
from tests import factories

ORGS = "/api/v1/orgs/organizations/"


def path(project: Project, *, members: bool = False) -> str:
    tail = "members/" if members else ""
    return f"{ORGS}{project.organization_public_id}/projects/{project.public_id}/{tail}"


@contextmanager
def using(client: httpx.AsyncClient, secret: str) -> Iterator[None]:
    """Let the client use another key."""
    former = client.headers["Authorization"]
    client.headers["Authorization"] = f"Token {secret}"
    yield
    client.headers["Authorization"] = former


@pytest.fixture
async def member_key(runtime: Runtime, project: Project) -> str:
    _, secret = await access.create_key(runtime, project, name="plain", role="member")
    return secret


@pytest.fixture
async def stranger(conn: Conn) -> Project:
    """A project of another organization."""
    return await factories.make_project(conn)


async def ok(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


# Projects


async def test_project_shows_every_documented_field(client: httpx.AsyncClient, project: Project) -> None:
    shown = await ok(await client.get(path(project)))
    assert shown["project_id"] == project.public_id
    assert (shown["custom_categories"], shown["custom_instructions"], shown["enable_graph"]) == (None, None, False)
    assert (shown["is_default"], shown["user_role"], shown["multilingual"], shown["decay"]) == (
        True,
        "OWNER",
        True,
        False,
    )
    for name in ("usecase", "inclusion_prompt", "exclusion_prompt", "update_custom_instructions", "expiration_date",
                 "summary_custom_instructions", "summary_max_tokens", "active_prompt_profile", "memory_depth"):  # fmt: skip
        assert shown[name] is None
    assert isinstance(shown["summary_batch_size"], int)
    assert isinstance(shown["version"], str)


async def test_settings_are_read_back_as_they_were_written(client: httpx.AsyncClient, project: Project) -> None:
    sent = {
        "name": "renamed",
        "description": "what for",
        "custom_instructions": " Keep plans.\n",
        "agent_custom_instructions": "Keep tools.",
        "multilingual": False,
        "decay": True,
        "memory_depth": "deep",
        "usecase_setting": {"kind": 1},
        "enable_graph": True,
        "version": "v2",
        "inclusion_prompt": "in",
        "exclusion_prompt": "out",
        "retrieval_criteria": [{"name": "joy"}],
        "expiration_date": "2031-02-03",
        "summary_batch_size": 3,
    }
    answer = await client.patch(path(project), json=sent)
    assert await ok(answer) == {"message": "Project updated successfully"}
    shown = await ok(await client.get(path(project)))
    assert {name: shown[name] for name in sent} == sent


async def test_clients_may_repeat_the_ids_in_the_body(client: httpx.AsyncClient, project: Project) -> None:
    sent = {"org_id": "org_x", "project_id": "proj_x", "custom_instructions": "Short."}
    await ok(await client.patch(path(project), json=sent))
    assert (await ok(await client.get(path(project))))["custom_instructions"] == "Short."


async def test_instructions_come_as_a_text_or_as_lines(client: httpx.AsyncClient, project: Project) -> None:
    await ok(await client.patch(path(project), json={"custom_instructions": ["One.", "Two."]}))
    assert (await ok(await client.get(path(project))))["custom_instructions"] == "One.\nTwo."


@pytest.mark.parametrize("empty", ["", [], None])
async def test_empty_instructions_clear(client: httpx.AsyncClient, project: Project, empty: Any) -> None:
    for name in ("custom_instructions", "agent_custom_instructions"):
        await ok(await client.patch(path(project), json={name: "Short."}))
        await ok(await client.patch(path(project), json={name: empty}))
        assert (await ok(await client.get(path(project))))[name] is None


@pytest.mark.parametrize(
    "categories",
    [
        [{"workLifeBalance": "d"}, {"work_life": "d"}, {"AIResearch": "d"}],
        ["bareName", "other name"],
        [],
        None,
        [{"unbeschrieben": None}],
    ],
)
async def test_custom_categories_are_kept_exactly(client: httpx.AsyncClient, project: Project, categories: Any) -> None:
    await ok(await client.patch(path(project), json={"custom_categories": categories}))
    assert (await ok(await client.get(path(project))))["custom_categories"] == categories


async def test_compatibility_sets_the_others_and_each_can_be_set_by_itself(
    client: httpx.AsyncClient, project: Project
) -> None:
    async def now() -> tuple[Any, ...]:
        shown = await ok(await client.get(path(project)))
        return shown["implicit_null_scoping"], shown["raw_roles"], shown["default_top_k"], shown["split_by_attribution"]

    assert await now() == (True, ["user"], 20, True)
    await ok(await client.patch(path(project), json={"compatibility": "hosted"}))
    assert await now() == (False, ["user", "assistant"], 10, True)
    own = {"implicit_null_scoping": True, "raw_roles": ["assistant"], "default_top_k": 7, "split_by_attribution": False}
    await ok(await client.patch(path(project), json=own))
    assert await now() == (True, ["assistant"], 7, False)
    await ok(
        await client.patch(
            path(project), json={"implicit_null_scoping": None, "raw_roles": None, "default_top_k": None}
        )
    )
    assert await now() == (False, ["user", "assistant"], 10, False)


async def test_a_change_is_in_force_at_once(client: httpx.AsyncClient, project: Project) -> None:
    add = {"messages": [{"role": "assistant", "content": "Noted."}], "user_id": "alice", "infer": False}
    assert (await ok(await client.post("/v3/memories/add/", json=add)))["results"] == []
    await ok(await client.patch(path(project), json={"compatibility": "hosted"}))
    assert len((await ok(await client.post("/v3/memories/add/", json=add)))["results"]) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"decay": "yes"},
        {"multilingual": 1},
        {"name": " "},
        {"name": "a" * 256},
        {"compatibility": "other"},
        {"raw_roles": []},
        {"raw_roles": ["system"]},
        {"raw_roles": [["user"]]},
        {"default_top_k": 0},
        {"default_top_k": 1001},
        {"default_top_k": True},
        {"expiration_date": "tomorrow"},
        {"custom_instructions": 7},
        {"custom_instructions": ["a", 1]},
        {"custom_categories": "food"},
        {"custom_categories": [1]},
        {"custom_categories": [{}]},
        {"custom_categories": [""]},
        {"custom_categories": [{"food": 1}]},
        {"custom_categories": ["x" * 70_000]},
        {"usecase_setting": "x" * 70_000},
        {"summary_batch_size": -1},
    ],
)
async def test_wrong_setting_is_named_and_changes_nothing(
    client: httpx.AsyncClient, project: Project, wrong: dict[str, Any]
) -> None:
    before = await ok(await client.get(path(project)))
    refused = await ok(await client.patch(path(project), json={"description": "new", **wrong}), 400)
    assert refused["message"] == refused["detail"]
    if "usecase_setting" not in wrong:
        assert next(iter(wrong)) in refused["detail"]
    assert await ok(await client.get(path(project))) == before


async def test_a_change_of_nothing_is_refused(client: httpx.AsyncClient, project: Project) -> None:
    for body in ({}, {"custom_instruction": "misspelt"}, {"project_id": project.public_id}, {"decay": None}):
        assert (await client.patch(path(project), json=body)).status_code == 400


async def test_fields_narrow_the_project(client: httpx.AsyncClient, project: Project) -> None:
    async def names(query: str) -> set[str]:
        return set(await ok(await client.get(path(project) + query)))

    assert await names("?fields=decay") == {"decay"}
    assert await names("?fields=decay&fields=custom_categories&fields=nonsense") == {"decay", "custom_categories"}
    assert await names("?fields=decay,name&org_id=x") == {"decay", "name"}
    assert len(await names("?fields=nonsense")) > 20
    assert len(await names("?")) > 20


async def test_only_the_documented_method_changes_a_project(client: httpx.AsyncClient, project: Project) -> None:
    for method in ("PUT", "POST"):
        assert (await client.request(method, path(project), json={"decay": True})).status_code == 405


async def test_owner_makes_lists_and_deletes_projects(client: httpx.AsyncClient, project: Project) -> None:
    base = f"{ORGS}{project.organization_public_id}/projects/"
    made = await ok(await client.post(base, json={"name": " travel ", "description": "trips"}))
    assert made["message"] == "Project created successfully."
    shown = await ok(await client.get(f"{base}{made['project_id']}/"))
    assert (shown["name"], shown["description"], shown["is_default"]) == ("travel", "trips", False)
    assert shown["members"] == [{"username": "admin", "role": "OWNER", "email": "admin@localhost"}]
    assert [one["project_id"] for one in await ok(await client.get(base))] == [project.public_id, made["project_id"]]
    deleted = await ok(await client.delete(f"{base}{made['project_id']}"))
    assert deleted["message"] == "Project and related data deleted successfully."
    assert (await client.get(f"{base}{made['project_id']}/")).status_code == 404


async def test_new_project_follows_the_setting_of_the_service(runtime: Runtime, project: Project) -> None:
    hosted = replace(runtime, settings=runtime.settings.model_copy(update={"compatibility": "hosted"}))
    made = await tenancy.create_project(hosted, None, project.organization_public_id, name="new")
    assert made.settings.compatibility == "hosted"


async def test_project_without_a_name_is_refused(client: httpx.AsyncClient, project: Project) -> None:
    base = f"{ORGS}{project.organization_public_id}/projects/"
    for body in ({}, {"name": ""}, {"name": 3}, {"name": "a\tb"}, {"name": "x", "description": 1}):
        refused = await ok(await client.post(base, json=body), 400)
        assert refused["message"] == refused["detail"]
    assert len(await ok(await client.get(base))) == 1


async def test_last_project_of_the_first_organization_stays(client: httpx.AsyncClient, project: Project) -> None:
    refused = await ok(await client.delete(path(project)), 409)
    assert "last project" in refused["message"]
    await ok(await client.get("/v1/ping/"))


async def test_deleting_the_own_project_ends_its_keys_and_leaves_no_row(
    client: httpx.AsyncClient, project: Project, conn: Conn
) -> None:
    await ok(await client.post(f"{ORGS}{project.organization_public_id}/projects/", json={"name": "heir"}))
    add = {"messages": [{"role": "user", "content": "Tea at Bob's."}], "user_id": "alice", "infer": False}
    await ok(await client.post("/v3/memories/add/", json=add))
    hook = {"name": "n", "url": "https://203.0.114.1/", "event_types": ["memory_add"]}
    await ok(await client.post(f"/api/v1/webhooks/projects/{project.public_id}/", json=hook), 201)
    await ok(await client.delete(path(project)))
    assert (await client.get("/v1/ping/")).status_code == 401
    tables = await conn.fetch(
        "SELECT table_name FROM information_schema.columns WHERE column_name = 'project_id' AND table_schema = 'public'"
        " AND table_name <> 'audit_log'"  # which tells of the end of projects
    )
    assert len(tables) > 12
    for row in tables:
        left = await conn.fetchval(f"SELECT count(*) FROM {row['table_name']} WHERE project_id = $1", project.id)
        assert left == 0, row["table_name"]


# What a key reaches


async def test_plain_key_changes_its_own_project_and_makes_none(
    client: httpx.AsyncClient, project: Project, member_key: str, conn: Conn
) -> None:
    sibling = await orgs.insert_project(conn, project.organization_id, name="sibling", settings=ProjectSettings())
    base = f"{ORGS}{project.organization_public_id}/"
    with using(client, member_key):
        refused = await ok(await client.post(base + "projects/", json={"name": "x"}), 403)
        assert refused["message"] == refused["detail"] == "Unauthorized to create projects in this organization."
        assert (await ok(await client.delete(path(project)), 403))["message"] == "Unauthorized to modify this project."
        assert (await client.post(ORGS, json={"name": "x"})).status_code == 403
        assert (await client.delete(base)).status_code == 403
        assert (await client.post(base + "members/", json={"email": "a@b.c", "role": "OWNER"})).status_code == 403
        assert (await client.get(path(sibling))).status_code == 404
        assert (await client.patch(path(sibling), json={"decay": True})).status_code == 404
        assert [one["project_id"] for one in await ok(await client.get(base + "projects/"))] == [project.public_id]
        await ok(await client.patch(path(project), json={"decay": True}))
        await ok(await client.post(path(project, members=True), json={"email": "a@b.c", "role": "OWNER"}))
        shown = await ok(await client.get(base))
        assert (shown["user_role"], shown["is_owner"]) == ("READER", False)
    assert not (await orgs.get_project(conn, sibling.id)).settings.decay
    assert len(await orgs.list_projects(conn, project.organization_id)) == 2


async def test_owner_reaches_the_other_projects_of_its_organization(
    client: httpx.AsyncClient, project: Project, conn: Conn
) -> None:
    sibling = await orgs.insert_project(conn, project.organization_id, name="sibling", settings=ProjectSettings())
    await ok(await client.patch(path(sibling), json={"decay": True}))
    assert (await ok(await client.get(path(sibling))))["decay"] is True


async def test_other_organizations_and_unknown_ones_look_the_same(
    client: httpx.AsyncClient, project: Project, stranger: Project, conn: Conn
) -> None:
    calls = [
        ("GET", "", None), ("DELETE", "", None),
        ("GET", "members/", None), ("POST", "members/", {"email": "a@b.c", "role": "OWNER"}),
        ("PUT", "members/", {"email": "a@b.c", "role": "OWNER"}), ("DELETE", "members/", {"email": "a@b.c"}),
        ("GET", "projects/", None), ("POST", "projects/", {"name": "x"}),
        ("GET", "projects/{}/", None), ("PATCH", "projects/{}/", {"decay": True}), ("DELETE", "projects/{}/", None),
        ("GET", "projects/{}/members/", None), ("POST", "projects/{}/members/", {"email": "a@b.c", "role": "OWNER"}),
        ("PUT", "projects/{}/members/", {"email": "a@b.c", "role": "OWNER"}),
        ("DELETE", "projects/{}/members/?email=a@b.c", None),
    ]  # fmt: skip
    before = await orgs.get_project(conn, stranger.id)
    for method, tail, body in calls:
        bodies = set()
        for org_id, project_id in (
            (stranger.organization_public_id, stranger.public_id),
            ("org_nobody", "proj_nobody"),
            ("%00", "%0A"),
            ("a" * 3000, "..%2F"),
        ):
            url = f"{ORGS}{org_id}/{tail.format(project_id)}"
            answer = await client.request(method, url, json=body) if body else await client.request(method, url)
            bodies.add(answer.text)
            assert answer.status_code == 404, (method, tail)
        assert len(bodies) == 1
    for method, body in (("GET", None), ("PATCH", {"decay": True}), ("DELETE", None)):  # its own organization
        url = f"{ORGS}{project.organization_public_id}/projects/{stranger.public_id}/"
        answer = await client.request(method, url, json=body) if body else await client.request(method, url)
        assert (answer.status_code, answer.json()["message"]) == (404, "Organization or project not found")
    assert await orgs.get_project(conn, stranger.id) == before


# Organizations


async def test_organization_shows_every_documented_field(client: httpx.AsyncClient, project: Project) -> None:
    shown = await ok(await client.get(f"{ORGS}{project.organization_public_id}"))
    assert shown.pop("created_at")
    assert shown.pop("updated_at")
    assert shown == {
        "org_id": project.organization_public_id, "name": "Test", "members": [], "is_default": True,
        "byok_enabled": False, "invitations": [], "owner_pricing_plan": "self-hosted", "is_owner": True,
        "user_role": "OWNER",
    }  # fmt: skip


async def test_owner_makes_an_organization_with_projects_and_deletes_it(
    client: httpx.AsyncClient, project: Project, stranger: Project, runtime: Runtime, member_key: str
) -> None:
    made = await ok(await client.post(ORGS, json={"name": "Acme"}), 201)
    assert made["message"] == "Organization created successfully."
    base = f"{ORGS}{made['org_id']}/"
    inside = await ok(await client.post(base + "projects/", json={"name": "one"}))
    listed = await ok(await client.get(ORGS))
    assert [one["org_id"] for one in listed] == [project.organization_public_id, made["org_id"]]
    assert [one["is_default"] for one in listed] == [True, False]
    with using(client, await factories.make_key(runtime, stranger)):
        assert (await client.get(base)).status_code == 404
    with using(client, member_key):
        assert (await client.get(base)).status_code == 404
        assert len(await ok(await client.get(ORGS))) == 1
    assert (await ok(await client.delete(base)))["message"] == "Organization deleted successfully!"
    assert (await client.get(base)).status_code == 404
    assert (await client.get(f"{base}projects/{inside['project_id']}/")).status_code == 404


async def test_first_organization_cannot_be_deleted(client: httpx.AsyncClient, project: Project) -> None:
    assert (await client.delete(f"{ORGS}{project.organization_public_id}/")).status_code == 409


async def test_organization_without_a_name_is_refused_by_field(client: httpx.AsyncClient) -> None:
    for body in ({}, {"name": ""}, {"name": ["x"]}, {"name": "x" * 256}):
        refused = await ok(await client.post(ORGS, json=body), 400)
        assert refused["errors"] == {"name": [refused["detail"]]}


# Members


async def test_members_of_an_organization_come_change_and_go(client: httpx.AsyncClient, project: Project) -> None:
    url = f"{ORGS}{project.organization_public_id}/members/"
    bob = {"email": "Bob@Example.com", "role": "READER"}
    assert await ok(await client.post(url, json=bob), 201) == {"message": "User added to the organization."}
    assert (await ok(await client.get(url)))["members"] == [{**bob, "user_id": bob["email"], "username": "Bob"}]
    again = await ok(await client.post(url, json={"email": "bob@example.com", "role": "OWNER"}), 400)
    assert list(again["errors"]) == ["email"]
    changed = await ok(await client.put(url, json={"email": "bob@example.COM", "role": "OWNER"}))
    assert changed == {"message": "User role updated successfully"}
    assert [one["role"] for one in (await ok(await client.get(url)))["members"]] == ["OWNER"]
    gone = await ok(await client.request("DELETE", url, json={"email": "bob@example.com"}))
    assert gone == {"message": "User removed from organization."}
    assert (await client.request("DELETE", url, json={"email": "bob@example.com"})).status_code == 404
    assert (await client.put(url, json=bob)).status_code == 404


async def test_members_of_a_project_come_change_and_go(client: httpx.AsyncClient, project: Project) -> None:
    url = path(project, members=True)
    bob = {"email": "bob@example.com", "role": "READER"}
    assert await ok(await client.post(url, json=bob)) == {"message": "User added to the project successfully."}
    assert (await ok(await client.get(url)))["members"] == [{**bob, "username": "bob"}]
    assert (await ok(await client.get(path(project))))["members"] == [{**bob, "username": "bob"}]
    assert (await client.post(url, json=bob)).status_code == 400
    changed = await ok(await client.put(url, json={**bob, "role": "OWNER"}))
    assert changed == {"message": "User role updated successfully."}
    gone = await ok(await client.delete(url, params={"email": "bob@example.com"}))
    assert gone == {"message": "Member removed from the project"}
    assert (await client.delete(url, params={"email": "bob@example.com"})).status_code == 404
    assert (await client.put(url, json=bob)).status_code == 404
    assert (await ok(await client.get(url)))["members"] == []


@pytest.mark.parametrize("role", ["ADMIN", "reader", "", None, 1, ["OWNER"]])
async def test_there_are_two_roles(client: httpx.AsyncClient, project: Project, role: Any) -> None:
    body = {"email": "a@b.c", "role": role}
    of_org = f"{ORGS}{project.organization_public_id}/members/"
    for method in ("POST", "PUT"):
        assert list((await ok(await client.request(method, of_org, json=body), 400))["errors"]) == ["role"]
        assert (
            "role" in (await ok(await client.request(method, path(project, members=True), json=body), 400))["message"]
        )


@pytest.mark.parametrize("email", ["", "nobody", "a@b@c", "a b@c.d", "a@\u0007b", None, 1, "a" * 251 + "@b.c"])
async def test_a_member_has_an_address(client: httpx.AsyncClient, project: Project, email: Any) -> None:
    body = {"email": email, "role": "READER"}
    of_org = f"{ORGS}{project.organization_public_id}/members/"
    assert list((await ok(await client.post(of_org, json=body), 400))["errors"]) == ["email"]
    assert (await client.post(path(project, members=True), json=body)).status_code == 400
    assert (await client.request("DELETE", of_org, json={"email": email})).status_code == 400


async def test_removing_nobody_is_refused(client: httpx.AsyncClient, project: Project) -> None:
    assert (await client.delete(path(project, members=True))).status_code == 400


# Keys


async def test_no_answer_holds_a_key_or_its_digest(
    client: httpx.AsyncClient, project: Project, member_key: str
) -> None:
    secret = client.headers["Authorization"].split()[1]
    digests = [hashlib.sha256(key.encode()).hexdigest() for key in (secret, member_key)]
    for url in (ORGS, f"{ORGS}{project.organization_public_id}/", path(project), path(project, members=True)):
        text = (await client.get(url)).text
        assert not any(part in text for part in (secret, member_key, *digests))


async def test_both_slash_forms_are_served(client: httpx.AsyncClient, project: Project) -> None:
    for url in (ORGS, path(project), path(project, members=True), f"{ORGS}{project.organization_public_id}/members/"):
        assert (await client.get(url.rstrip("/"))).text == (await client.get(url)).text


async def test_without_a_key_nothing_is_said(client: httpx.AsyncClient, project: Project) -> None:
    del client.headers["Authorization"]
    for url in (ORGS, path(project), f"/api/v1/webhooks/projects/{project.public_id}/"):
        refused = await ok(await client.get(url), 401)
        assert set(refused) == {"detail"}
