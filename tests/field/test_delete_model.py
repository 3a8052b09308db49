"""A delete of many never deletes more than it was asked for, whatever its parameters look like; against a model."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx
import pytest

from tests import filter_model
from tests.field.conftest import LIST, Service

NAMES = ("user_id", "agent_id", "app_id", "run_id")
OWNERS = ("alice", "bob", "a b", "ä/b", "None")
METADATA = ({"t": "a"}, {"t": "b"}, {"t": "a", "n": 1}, {"n": True}, {"t": None}, {}, None)
EVERYBODY = {"OR": [{name: "*"} for name in NAMES]}
#: What clients send beside the filters, and what looks like a filter and is none.
BESIDE = (("source", "CLI"), ("org_id", ""), ("project_id", ""))
NO_FILTERS = (
    "userid",
    "user",
    "userId",
    "id",
    "memory_id",
    "page",
    "filter",
    "delete_linked",
    "AND",
    "metadata.t",
    "USER_ID",
    "x",
)
UNREADABLE = (
    "",
    " ",
    "{",
    "[]",
    "{}",
    "null",
    "user_id",
    "u1",
    "'alice'",
    "{'user_id': open}",
    "{1: 2}",
    "[1]",
    "true",
)
#: Objects that are no filters.
UNKNOWN = (
    "{'AND': []}",
    "{'bogus': 1}",
    "{'user_id': ''}",
    "{'user_id': {'like': '%'}}",
    "{'NOT': 5}",
    '{"user_id": [1]}',
)


def owners(rng: random.Random) -> dict[str, str]:
    chosen = rng.sample(NAMES, rng.choice((1, 1, 2, 4)))
    return {name: rng.choice(OWNERS) for name in chosen}


def condition(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Return a valid filter over owners and metadata."""
    kind = rng.randrange(8 if depth else 5)
    name = rng.choice(NAMES)
    if kind == 0:
        return {name: rng.choice((*OWNERS, "*"))}
    if kind == 1:
        return {name: {rng.choice(("eq", "ne")): rng.choice(OWNERS)}}
    if kind == 2:
        return {name: {rng.choice(("in", "nin")): rng.sample(OWNERS, 2)}}
    if kind == 3:
        return {"metadata": {"t": rng.choice(("a", "b", "*", {"ne": "a"}, {"eq": "b"}))}}
    if kind == 4:
        return {"metadata": {"n": rng.choice((1, True, "1"))}}
    if kind == 5:
        return {"NOT": condition(rng, depth - 1)}
    if kind == 6:
        return {**condition(rng, depth - 1), **condition(rng, depth - 1)}
    return {rng.choice(("AND", "OR")): [condition(rng, depth - 1) for _ in range(rng.randint(1, 3))]}


def written(rng: random.Random, value: dict[str, Any]) -> str:
    """Return an object as clients send it: JSON, or what Python prints."""
    return rng.choice((json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), f" {value!r} "))


def request(rng: random.Random) -> tuple[list[tuple[str, str]], list[dict[str, Any]] | None]:
    """Return query parameters, and the filters that they mean together; None: they mean nothing and must be refused."""
    query: list[tuple[str, str]] = []
    meant: list[dict[str, Any]] = []
    for name in rng.sample(NAMES, rng.choice((0, 1, 1, 2))):
        value = rng.choice((*OWNERS, "*", "nobody"))
        query.append((name, rng.choice((value, f" {value} ")) if value != "*" else value))
        meant.append({name: value})
    if rng.random() < 0.4:
        filters = condition(rng)
        query.append(("filters", written(rng, filters)))
        meant.append(filters)
    if rng.random() < 0.3:
        metadata = {"t": rng.choice(("a", "b", {"ne": "a"}))}
        query.append(("metadata", written(rng, metadata)))
        meant.append({"metadata": metadata})
    if rng.random() < 0.3:
        query.append(rng.choice(BESIDE))
    refused = not meant
    if rng.random() < 0.3:
        refused = True
        odd = rng.randrange(4)
        if odd == 0:
            query.append((rng.choice(NO_FILTERS), "alice"))
        elif odd == 1:
            query.append((rng.choice(NAMES), rng.choice(("", " ", "\t", "a\0b", "x" * 256))))
        elif odd == 2:
            name = rng.choice(("filters", "metadata"))
            query.append((name, rng.choice(UNREADABLE if name == "metadata" else (*UNREADABLE, *UNKNOWN))))
        elif query:
            query.append(rng.choice([pair for pair in query if pair[0] not in dict(BESIDE)] or [("filters", "{")]))
    rng.shuffle(query)
    return query, None if refused else meant


async def rows(service: Service) -> dict[str, dict[str, Any]]:
    """Return every memory by its id, as the model reads it."""
    found = await service.find(LIST, EVERYBODY, page_size=200)
    return {memory["id"]: {**memory, "text": memory["memory"]} for memory in found}


@pytest.mark.parametrize("seed", range(3))
async def test_bulk_delete_takes_what_all_its_parameters_mean_and_no_more(service: Service, seed: int) -> None:
    rng = random.Random(seed)
    done = refused = deleted = 0
    for turn in range(20):
        for number in range(4):
            await service.add(f"text {turn} {number}", metadata=rng.choice(METADATA), **owners(rng))
        before = await rows(service)
        query, meant = request(rng)
        answer = await service.client.delete("/v1/memories/", params=httpx.QueryParams(query))
        after = await rows(service)
        assert after.items() <= before.items()
        gone = before.keys() - after.keys()
        if meant is None:
            assert (answer.status_code, gone) == (400, set()), query
            refused += 1
            continue
        assert answer.status_code == 200, (query, answer.text)
        wanted = {key for key, row in before.items() if all(filter_model.matches(part, row) for part in meant)}
        assert gone == wanted, query
        done, deleted = done + 1, deleted + len(gone)
    assert done >= 4
    assert refused >= 2
    assert deleted >= 2


@pytest.mark.parametrize("name", ["org_id", "project_id"])
@pytest.mark.parametrize("value", ["", "own", "other", "*", " "])
async def test_ids_of_a_project_neither_widen_nor_stand_alone(service: Service, name: str, value: str) -> None:
    await service.add("A", user_id="u1")
    await service.add("B", user_id="u2")
    if value == "own":
        value = (await service.client.get("/v1/ping/")).json()[name]
    alone = await service.client.delete("/v1/memories/", params={name: value})
    assert alone.status_code in (400, 403)
    assert len(await rows(service)) == 2
    beside = await service.client.delete("/v1/memories/", params={name: value, "user_id": "u1"})
    assert beside.status_code in (200, 400, 403)
    left = {row["memory"] for row in (await rows(service)).values()}
    assert left == ({"B"} if beside.status_code == 200 else {"A", "B"})


async def test_only_all_four_stars_empty_a_project(service: Service) -> None:
    for name in NAMES:
        await service.add("A", **{name: "x"})
    await service.add("all", **dict.fromkeys(NAMES, "x"))
    for number in (2, 3):
        await service.client.delete("/v1/memories/", params=dict.fromkeys(NAMES[:number], "*"))
        await service.add("all", **dict.fromkeys(NAMES, "x"))
        assert len(await rows(service)) == 5
    await service.client.delete("/v1/memories/", params=dict.fromkeys(NAMES, "*"))
    assert await rows(service) == {}


async def test_padded_star_is_nobody(service: Service) -> None:
    await service.add("A", user_id="u1")
    await service.client.delete("/v1/memories/", params={"user_id": " * "})
    assert len(await rows(service)) == 1
