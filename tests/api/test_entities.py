"""Users, agents, apps and runs: list, make, delete; the paths beside those of memories; a project's numbers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from app.model import Project
from app.runtime import Runtime
from app.store import owners
from app.store.db import Conn
from tests import factories, fakes

ENTITIES = "/v1/entities/"
ODD = [
    "a/b",
    "a b",
    "50%",
    "a%2Fb",
    "team:a.b@x.example+1",
    "中文/名字",
    "ümlaut",
    "a?b#c",
    "history",
    "filters",
    "*a",
    "a/",
    "x//y",
]


async def add(client: httpx.AsyncClient, text: str = "A", **body: Any) -> str:
    owners = {} if {"user_id", "agent_id", "app_id", "run_id"} & set(body) else {"user_id": "u1"}
    answer = await client.post("/v3/memories/add/", json={"messages": text, "infer": False, **owners, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"][0]["id"]


async def listed(client: httpx.AsyncClient, query: str = "") -> dict[str, Any]:
    answer = await client.get(ENTITIES + query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def names(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    return [(item["type"], item["name"]) for item in (await listed(client))["results"]]


async def texts(client: httpx.AsyncClient, filters: dict[str, Any]) -> list[str]:
    answer = await client.post("/v3/memories/", json={"filters": {"OR": [filters]}})
    return [memory["memory"] for memory in answer.json()["results"]]


# List


async def test_entities_appear_with_their_first_add_and_count_their_memories(client: httpx.AsyncClient) -> None:
    await add(client, "A", user_id="u1")
    await add(client, "B", user_id="u1", run_id="r1")
    await add(client, "C", agent_id="bot", app_id="shop")
    answer = await listed(client)
    found = {(item["type"], item["name"]): item["total_memories"] for item in answer["results"]}
    assert found == {("user", "u1"): 2, ("run", "r1"): 1, ("agent", "bot"): 1, ("app", "shop"): 1}
    assert [answer[f"total_{kind}s"] for kind in ("user", "agent", "app", "run")] == [1, 1, 1, 1]
    assert (answer["count"], answer["next"], answer["previous"]) == (4, None, None)
    item = next(item for item in answer["results"] if item["name"] == "u1")
    assert item["id"].isdigit()
    assert (item["owner"], item["metadata"]) == ("admin", None)


async def test_pages_of_entities_have_neighbours(client: httpx.AsyncClient) -> None:
    for number in range(5):
        await add(client, user_id=f"u{number}")
    first = await listed(client, "?page=1&page_size=2")
    assert [item["name"] for item in first["results"]] == ["u4", "u3"]
    assert first["next"] == "http://memoryd.test/v1/entities/?page=2&page_size=2"
    last = (await client.get("http://memoryd.test/v1/entities/?page=3&page_size=2")).json()
    assert ([item["name"] for item in last["results"]], last["total_users"]) == (["u0"], 5)
    assert (await client.get(ENTITIES + "?page=4&page_size=2")).json() == {"detail": "Invalid page."}
    assert (await client.get(ENTITIES + "?page_size=1001")).status_code == 400


async def test_one_page_holds_more_entities_than_clients_that_read_only_the_first_have(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    for number in range(201):
        await owners.put(conn, project.id, "user", f"u{number}", title=None, metadata=None)
    answer = await listed(client)
    assert (len(answer["results"]), answer["next"]) == (201, None)


async def test_project_without_entities_lists_none(client: httpx.AsyncClient) -> None:
    assert (await listed(client))["results"] == []


async def test_filters_name_what_can_be_asked(client: httpx.AsyncClient) -> None:
    await add(client, user_id="u1")
    answer = (await client.get("/v1/entities/filters/")).json()
    assert answer["users"] == ["u1"]
    assert "DELETE_USER" in answer["event_type"]
    assert "travel" in answer["categories"]


# One


@pytest.mark.parametrize("name", ODD)
async def test_entity_with_any_name_is_read_and_deleted_by_its_encoded_name(
    client: httpx.AsyncClient, name: str
) -> None:
    await add(client, "mine", user_id=name)
    await add(client, "other", user_id="other")
    path = f"/v2/entities/user/{quote(name, safe='')}/"
    assert [item["name"] for item in (await client.get(path)).json()] == [name]
    assert [
        item["memory"] for item in (await client.get(f"/v1/memories/user/{quote(name, safe='')}/")).json()["results"]
    ] == ["mine"]
    answer = await client.delete(path)
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"] == "Delete in progress. This may take some time."
    assert await names(client) == [("user", "other")]
    assert await texts(client, {"user_id": "*"}) == ["other"]


@pytest.mark.parametrize("name", ["a/b", "a b", "ümlaut", "中文", "a@b+c", "a/b/c"])
async def test_entity_is_deleted_by_its_name_pasted_as_it_is(client: httpx.AsyncClient, name: str) -> None:
    await add(client, "mine", agent_id=name)
    assert (await client.delete(f"/v2/entities/agent/{name}/?source=CLI")).status_code == 200
    assert await names(client) == []


@pytest.mark.parametrize("slash", ["", "/"])
async def test_both_slash_forms_are_served(client: httpx.AsyncClient, slash: str) -> None:
    await add(client)
    assert (await client.get(f"/v2/entities/user/u1{slash}")).status_code == 200
    assert (await client.get(f"/v1/memories/user/u1{slash}")).status_code == 200
    assert (await client.delete(f"/v2/entities/user/u1{slash}")).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_unknown_entity_and_unknown_kind_are_told_apart(client: httpx.AsyncClient, method: str) -> None:
    await add(client)
    unknown = await client.request(method, "/v2/entities/user/nobody/")
    assert (unknown.status_code, unknown.json()["message"]) == (404, "Entity not found")
    assert (await client.request(method, "/v2/entities/agent/u1/")).status_code == 404
    wrong = await client.request(method, "/v2/entities/users/u1/")
    assert (wrong.status_code, wrong.json()["message"]) == (400, "Invalid entity type")


async def test_star_is_a_name_that_nobody_has_and_deletes_nothing(client: httpx.AsyncClient) -> None:
    await add(client)
    assert (await client.delete("/v2/entities/user/*/")).status_code == 404
    assert await texts(client, {"user_id": "u1"}) == ["A"]


@pytest.mark.parametrize(
    "path",
    ["/v2/entities/user/%00/", "/v2/entities/user/%FF/", f"/v2/entities/user/{'x' * 256}/", "/v2/entities/user/%20/"],
)
async def test_name_that_no_entity_can_have_is_refused(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.delete(path)).status_code == 400


# Delete


async def test_delete_takes_every_memory_that_names_the_entity_and_no_other(client: httpx.AsyncClient) -> None:
    alone = await add(client, "alone", user_id="u1")
    await add(client, "shared", user_id="u1", run_id="r1")
    await add(client, "of the run", run_id="r1")
    await add(client, "of another", user_id="u2")
    event_id = (await client.delete("/v2/entities/user/u1/")).json()["event_id"]
    assert sorted(await texts(client, {"OR": [{"user_id": "*"}, {"run_id": "*"}]})) == ["of another", "of the run"]
    assert await names(client) == [("user", "u2"), ("run", "r1")]
    event = (await client.get(f"/v1/event/{event_id}/")).json()
    assert (event["event_type"], event["status"]) == ("DELETE_USER", "SUCCEEDED")
    assert (event["metadata"]["deleted"], event["metadata"]["cancelled_adds"]) == (2, 0)
    assert (await client.get(f"/v1/memories/{alone}/history/")).status_code == 404


async def test_add_that_was_accepted_before_stores_nothing(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    body = {"messages": "I moved to Lisbon.", "user_id": "u1"}
    event_id = (await client.post("/v3/memories/add/", json=body)).json()["event_id"]
    assert (await client.delete("/v2/entities/user/u1/")).status_code == 200
    await queue.drain(runtime)
    event = (await client.get(f"/v1/event/{event_id}/")).json()
    assert (event["status"], event["results"]) == ("SUCCEEDED", [])
    assert await names(client) == []


async def test_what_was_said_is_forgotten_with_the_entity(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    await add(client, "secret")
    await client.delete("/v2/entities/user/u1/")
    assert await conn.fetchval("SELECT count(*) FROM messages WHERE project_id = $1", project.id) == 0


async def test_entity_that_was_deleted_comes_back_with_a_later_add(client: httpx.AsyncClient) -> None:
    await add(client)
    await client.delete("/v2/entities/user/u1/")
    await add(client, "A")
    assert (await listed(client))["results"][0]["total_memories"] == 1


async def test_entity_that_was_deleted_between_acceptance_and_storing_is_restored(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    scope = await factories.make_scope(conn, project, user_id="u1", run_id="r1")
    await owners.delete(conn, project.id, "user", "u1")
    await factories.make_memory(conn, scope, "late")
    assert sorted(await names(client)) == [("run", "r1"), ("user", "u1")]


async def test_entity_of_another_project_stays(client: httpx.AsyncClient, conn: Conn) -> None:
    other = await factories.make_project(conn)
    await factories.make_memory(conn, await factories.make_scope(conn, other, user_id="u1"), "theirs")
    found = await owners.find(conn, other.id, "user", "u1")
    assert found is not None
    assert (await client.delete("/v2/entities/user/u1/")).status_code == 404
    assert (await client.delete(f"/v1/entities/user/{found.id}/")).status_code == 404
    assert (await owners.find(conn, other.id, "user", "u1")) == found


async def test_repeated_key_deletes_once(client: httpx.AsyncClient) -> None:
    await add(client)
    headers = {"Idempotency-Key": "k"}
    first = await client.delete("/v2/entities/user/u1/", headers=headers)
    await add(client, "new")
    assert (await client.delete("/v2/entities/user/u1/", headers=headers)).json() == first.json()
    assert await texts(client, {"user_id": "u1"}) == ["new"]


async def test_entity_is_deleted_by_its_number(client: httpx.AsyncClient) -> None:
    await add(client)
    number = (await listed(client))["results"][0]["id"]
    assert (await client.delete(f"/v1/entities/agent/{number}/")).status_code == 404
    assert (await client.delete(f"/v1/entities/user/{number}/")).status_code == 200
    assert await names(client) == []


@pytest.mark.parametrize("number", ["u1", "1.5", "-1", "%D9%A1", "9" * 30, "%20"])
async def test_number_that_is_none_is_refused_in_known_words(client: httpx.AsyncClient, number: str) -> None:
    answer = await client.delete(f"/v1/entities/user/{number}/")
    assert (answer.status_code, answer.json()["error"]) == (400, "Invalid entity ID. Must be an integer.")


async def test_number_of_no_kind_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.delete("/v1/entities/users/1/")
    assert (answer.status_code, answer.json()["error"]) == (400, "Invalid entity type")


# Make


@pytest.mark.parametrize("kind", ["user", "agent", "app", "run"])
async def test_entity_can_be_made_before_its_first_memory(client: httpx.AsyncClient, kind: str) -> None:
    body = {f"{kind}_id": " x ", "metadata": {"a": 1}} | ({} if kind == "user" else {"name": "The X"})
    answer = await client.post(f"/v1/{kind}s/", json=body)
    assert answer.status_code == 201
    made = answer.json()
    assert made[f"{kind}_id"] == "x"
    assert made.get("name") == (None if kind == "user" else "The X")
    assert (made["metadata"], made["is_deleted"], made["graph_entities"]) == ({"a": 1}, False, None)
    shown = (await client.get(f"/v2/entities/{kind}/x/")).json()[0]
    assert (shown["id"], shown["metadata"], shown["total_memories"]) == (str(made["id"]), {"a": 1}, 0)
    again = await client.post(f"/v1/{kind}s/", json={**body, "metadata": None})
    assert (again.status_code, again.json()["id"], again.json()["metadata"]) == (201, made["id"], {"a": 1})


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/users/", {}, "user_id is required"),
        ("/v1/users/", {"user_id": " "}, "user_id must not be blank"),
        ("/v1/users/", {"user_id": "*"}, "user_id"),
        ("/v1/users/", {"user_id": "x", "metadata": "y"}, "Expected a dictionary"),
        ("/v1/users/", {"user_id": "x", "metadata": {"a": "b" * 70_000}}, "MEMORYD_MAX_METADATA_BYTES"),
        ("/v1/agents/", {"agent_id": "x"}, "name is required"),
        ("/v1/apps/", {"name": "x"}, "app_id is required"),
        ("/v1/runs/", {"run_id": "x", "name": ""}, "name must not be blank"),
    ],
)
async def test_entity_that_cannot_be_made_is_refused_by_field(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], words: str
) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


# Paths beside those of memories


async def test_memories_of_an_entity_show_what_they_were_made_from(client: httpx.AsyncClient) -> None:
    one = await add(client, "A", user_id="u1", run_id="r1")
    await add(client, "B", user_id="u1", expiration_date="2001-01-01")
    before = (await client.get("/v1/memories/user/u1/")).json()["results"]
    assert [(item["memory"], item["is_updated"], item["input"]) for item in before] == [
        ("A", False, [{"role": "user", "content": "A"}])
    ]
    await client.put(f"/v1/memories/{one}/", json={"text": "A2"})
    (after,) = (await client.get("/v1/memories/run/r1/")).json()["results"]
    assert (after["memory"], after["is_updated"], after["input"]) == ("A2", True, [{"role": "user", "content": "A"}])


async def test_memories_of_an_entity_come_in_pages_of_a_hundred(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    scope = await factories.make_scope(conn, project, user_id="u1")
    for number in range(101):
        await factories.make_memory(conn, scope, f"text {number}")
    first = (await client.get("/v1/memories/user/u1/")).json()
    assert (first["count"], len(first["results"])) == (101, 100)
    assert len((await client.get(first["next"])).json()["results"]) == 1
    assert (await client.get("/v1/memories/user/u1/?page=3")).json() == {"detail": "Invalid page."}


async def test_paths_that_look_alike_are_told_apart(client: httpx.AsyncClient) -> None:
    one = await add(client, user_id="history")
    assert isinstance((await client.get(f"/v1/memories/{one}/history/")).json(), list)
    assert (await client.get("/v1/memories/user/history/")).json()["count"] == 1
    assert (await client.get("/v1/memories/events/")).json()["count"] == 1
    answer = await client.get("/v1/memories/users/u1/")
    assert (answer.status_code, answer.json()["error"]) == (400, "Invalid entity type")
    for path in ("user", "search", "xyz", "xyz/history"):
        answer = await client.get(f"/v1/memories/{path}/")
        assert (answer.status_code, answer.json()["error"]) == (400, "memory_id should be a valid UUID")
    assert (await client.get(f"/v1/memories/{uuid4()}/")).status_code == 404


async def test_changes_of_all_memories_are_listed_newest_first(client: httpx.AsyncClient) -> None:
    one = await add(client, "A")
    await client.put(f"/v1/memories/{one}/", json={"text": "B"})
    await client.delete(f"/v1/memories/{one}/")
    answer = (await client.get("/v1/memories/events/?page=1&limit=2")).json()
    assert [item["event"] for item in answer["results"]] == ["DELETE", "UPDATE"]
    assert [item["event"] for item in (await client.get(answer["next"])).json()["results"]] == ["ADD"]
    assert (await client.get("/v1/memories/events/?limit=201")).json()["error"] == "limit must be <= 200"


# Another project's ids


@pytest.mark.parametrize("path", ["/v1/entities/", "/v1/stats/", "/v2/entities/user/u1/", "/v1/memories/user/u1/"])
async def test_ids_of_the_ping_are_taken_and_others_refused(client: httpx.AsyncClient, path: str) -> None:
    await add(client)
    ping = (await client.get("/v1/ping/")).json()
    own = {"org_id": ping["org_id"], "project_id": ping["project_id"]}
    assert (await client.get(path, params=own)).status_code == 200
    assert (await client.get(path, params={"org_id": "", "project_id": ""})).status_code == 200
    for name in own:
        answer = await client.get(path, params={**own, name: "other"})
        assert answer.status_code == 403
        assert answer.json()["detail"].startswith("You don't have access to this project")


# Numbers


async def test_stats_count_memories_owners_adds_and_reads(client: httpx.AsyncClient) -> None:
    one = await add(client, "A", user_id="u1")
    await add(client, "B", user_id="u1", run_id="r1")
    await add(client, "C", user_id="u2")
    await client.get(f"/v1/memories/{one}/")
    await client.post("/v3/memories/", json={"filters": {"user_id": "u1"}})
    await client.get(f"/v1/memories/{uuid4()}/")  # shows nothing, and does not count
    await client.get("/v1/memories/", params={"user_id": "u1"})
    stats = (await client.get("/v1/stats/")).json()
    assert {name: stats[name] for name in ("total_memories", "total_add_events", "total_retrieval_events")} == {
        "total_memories": 3, "total_add_events": 3, "total_retrieval_events": 3,
    }  # fmt: skip
    assert (stats["total_users_with_memories"], stats["memories_per_user"]) == (2, 2)
    assert (stats["total_agents_with_memories"], stats["memories_per_agent"]) == (0, 0)
    assert (stats["total_runs_with_memories"], stats["memories_per_run"]) == (1, 1)
