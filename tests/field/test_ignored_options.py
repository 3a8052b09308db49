"""Nothing is ignored in silence: what the README lists as without effect has none, and it lists what clients send."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.field.conftest import ADD, LIST, SEARCH, Service, said

README = (Path(__file__).parents[2] / "README.md").read_text()
ODD = (True, False, "x", "", 5, [], {"a": 1}, None)
UNSTABLE = {"id", "created_at", "updated_at", "user_id", "event_id", "structured_attributes"}


def listed() -> dict[str, list[str]]:
    """Return what the README lists, by request."""
    table = README.split("<!-- ignored -->")[1].split("<!-- /ignored -->")[0]
    rows = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    return {re.findall(r"`([^`]+)`", where)[0]: re.findall(r"`([^`]+)`", options) for where, options in rows}


IGNORED = listed()


def of(where: str) -> list[tuple[str, Any]]:
    """Return each option with each odd value; a documented flag only with what a flag can be."""
    return [(name, value) for name in IGNORED[where] for value in (ODD[:2] if name == "rerank" else ODD)]


def stable(memories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in memory.items() if name not in UNSTABLE} for memory in memories]


def test_every_request_with_such_options_is_listed() -> None:
    assert set(IGNORED) == {
        f"POST {ADD}",
        f"POST {LIST}",
        f"POST {SEARCH}",
        "PUT /v1/memories/ID/",
        "DELETE /v1/memories/",
    }
    assert all(len(set(names)) == len(names) > 0 for names in IGNORED.values())


async def test_options_without_effect_change_no_add(service: Service) -> None:
    body = said("I moved to Lisbon in May.") | {"infer": False}
    await service.tell(**body, user_id="plain")
    expected = stable(await service.find(LIST, {"user_id": "plain"}))
    assert len(expected) == 1
    names = IGNORED[f"POST {ADD}"]
    together = [dict.fromkeys(names, value) for value in ODD]
    for number, given in enumerate([*together, *({name: True} for name in names)]):
        user = f"user {number}"
        event = await service.tell(**body, user_id=user, **given)
        assert stable(await service.find(LIST, {"user_id": user})) == expected, given
        assert not given.keys() & event["payload"].keys()


async def test_options_without_effect_change_no_extraction(service: Service) -> None:
    found = []
    for user, given in {"plain": {}, "all": dict.fromkeys(IGNORED[f"POST {ADD}"], "x")}.items():
        event = await service.tell("I moved to Lisbon in May.", user_id=user, **given)
        assert set(event["payload"]) == {"messages", "user_id", "infer"}
        found.append(stable(await service.find(LIST, {"user_id": user})))
    assert found[0] == found[1] != []


@pytest.mark.parametrize("path", [LIST, SEARCH])
async def test_options_without_effect_change_no_selection(service: Service, path: str) -> None:
    await service.add("likes green tea", "has a red bike", "works at a bakery")
    body = {"filters": {"user_id": "u1"}} | ({"query": "green tea"} if path == SEARCH else {})
    expected = (await service.client.post(path, json=body)).json()
    assert expected["results"]
    for name, value in of(f"POST {path}"):
        answer = await service.client.post(path, json={**body, name: value})
        assert (answer.status_code, answer.json()) == (200, expected), (name, value)


async def test_options_without_effect_change_no_change(service: Service) -> None:
    (memory_id,) = await service.add("A")
    for number, (name, value) in enumerate(of("PUT /v1/memories/ID/")):
        answer = await service.client.put(f"/v1/memories/{memory_id}/", json={"text": f"B {number}", name: value})
        assert answer.json()["memory"] == f"B {number}", (name, value)
        alone = await service.client.put(f"/v1/memories/{memory_id}/", json={name: value})
        assert alone.status_code == 400, (name, value)


async def test_options_without_effect_neither_widen_nor_narrow_a_delete(service: Service) -> None:
    await service.add("B", user_id="u2")
    for name in IGNORED["DELETE /v1/memories/"]:
        await service.add("A", user_id="u1")
        assert (await service.client.delete("/v1/memories/", params={name: "x"})).status_code == 400
        assert (await service.client.delete("/v1/memories/", params={name: "x", "user_id": "u1"})).status_code == 200
        assert await service.list() == []
    assert await service.list({"user_id": "u2"}) == ["B"]


async def test_unknown_fields_of_memory_routes_are_ignored_and_unknown_filters_are_not(service: Service) -> None:
    (memory_id,) = await service.add("A", tpo_k=3, nonsense={"a": 1})
    for path in (LIST, SEARCH):
        body = {"query": "A", "filters": {"user_id": "u1"}, "threshold": 0, "nonsense": 1}
        answer = await service.client.post(path, json=body)
        assert [memory["id"] for memory in answer.json()["results"]] == [memory_id]
        answer = await service.client.post(path, json={**body, "filters": {"user_id": "u1", "nonsense": 1}})
        assert answer.status_code == 400
    assert (await service.client.delete("/v1/memories/?user_id=u1&nonsense=1")).status_code == 400
    assert await service.list() == ["A"]
