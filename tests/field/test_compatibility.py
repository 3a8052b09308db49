"""One switch, two positions: what the architecture says, and what the hosted platform of July 2026 does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.store.db import Conn
from tests.field.conftest import ADD, LIST, SEARCH, Service

POSITIONS = ("architecture", "hosted")


@pytest.fixture(params=POSITIONS)
async def placed(service: Service, conn: Conn, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Service, bool]]:
    """Return the service as a project of this position, and whether that is the hosted one."""
    async with service.of(conn, compatibility=request.param):
        yield service, request.param == "hosted"


async def root(service: Service) -> str:
    ping = (await service.client.get("/v1/ping/")).json()
    return f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"


async def change(service: Service, **settings: Any) -> None:
    answer = await service.client.patch(await root(service), json=settings)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("POST", LIST, {"filters": {"user_id": "u1"}}),
        ("POST", SEARCH, {"query": "A", "filters": {"user_id": "u1"}, "threshold": 0}),
        ("POST", "/v2/memories/", {"filters": {"user_id": "u1"}}),
        ("POST", "/v2/memories/search/", {"query": "A", "filters": {"user_id": "u1"}, "threshold": 0}),
        ("POST", "/v1/memories/search/", {"query": "A", "user_id": "u1"}),
        ("GET", "/v1/memories/?user_id=u1", None),
    ],
)
async def test_owners_that_are_not_named_are_null_or_anything(
    placed: tuple[Service, bool], method: str, path: str, sent: Any
) -> None:
    service, hosted = placed
    await service.add("in a session", user_id="u1", run_id="r1")
    await service.add("alone", user_id="u1")
    answer = (await service.client.request(method, path, json=sent)).json()
    found = {memory["memory"] for memory in (answer if isinstance(answer, list) else answer["results"])}
    assert found == ({"in a session", "alone"} if hosted else {"alone"})


async def test_what_names_everything_is_the_same_in_both(placed: tuple[Service, bool]) -> None:
    service, _ = placed
    await service.add("in a session", user_id="u1", run_id="r1")
    await service.add("alone", user_id="u1")
    assert await service.list({"AND": [{"user_id": "u1"}, {"run_id": "r1"}]}) == ["in a session"]
    assert set(await service.list({"OR": [{"user_id": "u1"}]})) == {"in a session", "alone"}
    assert await service.list({"AND": [{"user_id": "u1"}, {"run_id": {"exists": False}}]}) == ["alone"]


async def test_direct_import_stores_the_user_or_both_sides(placed: tuple[Service, bool]) -> None:
    service, hosted = placed
    messages = [
        {"role": "user", "content": "asks"},
        {"role": "assistant", "content": "answers"},
        {"role": "system", "content": "rules"},
    ]
    answer = await service.client.post(ADD, json={"messages": messages, "user_id": "u1", "infer": False})
    assert set(await service.list()) == ({"asks", "answers"} if hosted else {"asks"})
    assert [entry["index"] for entry in answer.json()["skipped"]] == ([2] if hosted else [1, 2])
    assert all(entry["reason"] for entry in answer.json()["skipped"])


@pytest.mark.parametrize("path", [SEARCH, "/v1/memories/search/", "/v2/memories/search/"])
async def test_search_that_names_no_number_gives_twenty_or_ten(placed: tuple[Service, bool], path: str) -> None:
    service, hosted = placed
    await service.add(*(f"tea number {number}" for number in range(30)))
    owners = {"user_id": "u1"} if "v1" in path else {"filters": {"user_id": "u1"}}
    body = {"query": "tea", "threshold": 0, **owners}
    answer = (await service.client.post(path, json=body)).json()
    found = answer if isinstance(answer, list) else answer["results"]
    expected = 10 if hosted or path != SEARCH else 20  # older routes keep the number of their time
    assert len(found) == expected
    answer = (await service.client.post(path, json={**body, "top_k": 15})).json()
    assert len(answer if isinstance(answer, list) else answer["results"]) == 15


async def test_facts_of_user_and_agent_are_kept_apart_in_both(placed: tuple[Service, bool]) -> None:
    service, _ = placed
    await service.tell("I moved to Lisbon in May.", user_id="u1", agent_id="a1")
    (memory,) = await service.find(LIST, {"OR": [{"user_id": "u1"}]})
    assert (memory["user_id"], memory["agent_id"]) == ("u1", None)


async def test_bulk_delete_is_never_null_scoped(placed: tuple[Service, bool]) -> None:
    service, _ = placed
    await service.add("in a session", user_id="u1", run_id="r1")
    await service.add("alone", user_id="u1")
    await service.client.delete("/v1/memories/", params={"user_id": "u1"})
    assert await service.list({"OR": [{"user_id": "*"}]}) == []


@pytest.mark.parametrize("position", POSITIONS)
async def test_switch_works_on_what_is_stored_already_and_back(service: Service, position: str) -> None:
    await service.add("in a session", user_id="u1", run_id="r1")
    for chosen in (position, "hosted", "architecture"):
        await change(service, compatibility=chosen)
        assert (await service.client.get(await root(service))).json()["compatibility"] == chosen
        assert await service.list() == (["in a session"] if chosen == "hosted" else [])


@pytest.mark.parametrize("position", POSITIONS)
async def test_each_part_of_the_switch_can_be_set_by_itself_and_taken_back(service: Service, position: str) -> None:
    hosted = position == "hosted"
    await change(service, compatibility=position)
    await change(service, implicit_null_scoping=hosted, raw_roles=["assistant"], default_top_k=3)
    messages = [{"role": "user", "content": "asks"}, *({"role": "assistant", "content": f"tea {n}"} for n in range(5))]
    await service.add(messages=messages, user_id="u1", run_id="r1")
    filters = {"AND": [{"user_id": "u1"}, {"run_id": "r1"}]}
    assert sorted(await service.list(filters)) == [f"tea {n}" for n in range(5)]
    assert len(await service.list()) == (0 if hosted else 5)
    body = {"query": "tea", "threshold": 0, "filters": filters}
    assert len((await service.client.post(SEARCH, json=body)).json()["results"]) == 3
    await change(service, implicit_null_scoping=None, raw_roles=None, default_top_k=None)
    assert len(await service.list()) == (5 if hosted else 0)
    assert len((await service.client.post(SEARCH, json=body)).json()["results"]) == 5
    await service.add("asks again", user_id="u2")
    assert await service.list({"user_id": "u2"}) == ["asks again"]
