"""List and search mean the same by a filter, and both mean what is written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.field.conftest import LIST, SEARCH, Service

both = pytest.mark.parametrize("path", [LIST, SEARCH], ids=["list", "search"])
U1 = {"user_id": "u1"}


def meta(**wanted: Any) -> dict[str, Any]:
    return {"metadata": wanted}


@pytest.fixture
async def tagged(service: Service) -> Service:
    """Three memories of u1: one tagged a, one tagged b, one without metadata; and one of u2 tagged a."""
    await service.add("A", metadata={"t": "a"})
    await service.add("B", metadata={"t": "b"})
    await service.add("C")
    await service.add("X", metadata={"t": "a"}, user_id="u2")
    return service


@both
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({**U1, **meta(t="a")}, "A"),
        ({"AND": [U1, meta(t="a")]}, "A"),
        ({"AND": [U1, {"OR": [meta(t="a")]}]}, "A"),
        ({"AND": [U1, {"OR": [meta(t="a"), meta(t="b")]}]}, "AB"),
        ({"OR": [{"AND": [U1, meta(t="a")]}, {"AND": [U1, meta(t="b")]}]}, "AB"),
        ({"AND": [U1, {"NOT": meta(t="a")}]}, "BC"),
        ({"AND": [U1, meta(t={"ne": "a"})]}, "BC"),
        ({"AND": [U1, {"NOT": [meta(t="a")]}]}, "BC"),
        ({"AND": [U1, {"NOT": {"OR": [meta(t="a"), meta(t="b")]}}]}, "C"),
        ({"AND": [U1, {"NOT": {"AND": [meta(t="a"), meta(t="b")]}}]}, "ABC"),
        ({"AND": [U1, {"NOT": {"NOT": meta(t="a")}}]}, "A"),
        ({"AND": [U1, meta(t="*")]}, "AB"),
        ({"AND": [U1], "OR": [meta(t="a"), meta(t="b")]}, "AB"),
        ({"AND": [U1, meta(t="a")], "NOT": [meta(t="a")]}, ""),
    ],
)
async def test_metadata_counts_wherever_it_stands(tagged: Service, path: str, filters: Any, found: str) -> None:
    assert {memory["memory"] for memory in await tagged.find(path, filters)} == set(found)


@both
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (3, {"number"}),
        ("3", {"text"}),
        (True, {"flag"}),
        ({"a": [1]}, {"nested"}),
        ({"a": []}, set()),
        (3.0, {"number"}),
    ],
)
async def test_values_of_metadata_have_a_type(service: Service, path: str, wanted: Any, found: set[str]) -> None:
    for text, value in {"number": 3, "text": "3", "flag": True, "nested": {"a": [1]}}.items():
        await service.add(text, metadata={"n": value})
    filters = {"AND": [U1, meta(n={"eq": wanted})]}
    assert {memory["memory"] for memory in await service.find(path, filters)} == found


@both
async def test_siblings_are_and_of_each(service: Service, path: str) -> None:
    await service.add("both", user_id="u1", agent_id="a1")
    await service.add("user", user_id="u1")
    await service.add("agent", agent_id="a1")
    flat = await service.find(path, {"user_id": "u1", "agent_id": "a1"})
    assert [memory["memory"] for memory in flat] == ["both"]
    assert flat == await service.find(path, {"AND": [{"user_id": "u1"}, {"agent_id": "a1"}]})


@both
async def test_key_that_is_no_field_is_refused_with_those_that_are(service: Service, path: str) -> None:
    answer = await service.client.post(path, json={"query": "x", "filters": {"user_id": "u1", "bogus_key": "z"}})
    assert answer.status_code == 400
    assert all(word in answer.json()["detail"] for word in ("AND, OR, NOT, user_id", "metadata", "keywords"))


@both
async def test_categories_may_be_missing(service: Service, path: str) -> None:
    await service.add("A")
    assert await service.find(path, {"AND": [U1, {"categories": {"in": ["finance"]}}]}) == []
    assert await service.find(path, {"AND": [U1, {"categories": {"contains": "fin"}}]}) == []
    assert len(await service.find(path, {"AND": [U1, {"NOT": {"categories": {"in": ["finance"]}}}]})) == 1


@both
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ({"contains": "invoice"}, 1),
        ({"contains": "Invoice"}, 0),
        ({"contains": "Paid the ÄRZTE"}, 1),
        ({"icontains": "INVOICE"}, 1),
        ({"icontains": "ärzte"}, 1),
        ({"icontains": "bill"}, 0),
    ],
)
async def test_keywords_are_parts_of_the_text(service: Service, path: str, condition: Any, count: int) -> None:
    await service.add("Paid the ÄRZTE invoice", "has a red bike")
    assert len(await service.find(path, {"AND": [U1, {"keywords": condition}]}, query="bill")) == count


@both
@pytest.mark.parametrize(
    "condition",
    [
        {"created_at": {"gte": "2021-06-18", "lte": "2021-06-25"}},
        {"timestamp": {"gt": "2021-06-17"}},
        {"updated_at": {"gte": "2020-01-01"}},
        {"expiration_date": {"gt": "2098-01-01"}},
        {"memory_ids": ["{id}"]},
        {"memory_ids": {"in": ["{id}"]}},
        {"text": "the one"},
        {"text": {"contains": "one"}},
        {"keywords_search": "one"},
        {"metadata": {"k": {"contains": "v"}}},
        {"metadata": {"k": {"exists": True}}},
        {"run_id": {"exists": False}},
        {"run_id": {"ne": "r1"}},
        {"categories": {"exists": False}},
        {"user_id": {"in": ["u1", "u2"]}},
        {"user_id": {"nin": ["u2"]}},
    ],
    ids=lambda condition: next(iter(condition)) + str(next(iter(condition.values()))),
)
async def test_every_field_is_known_to_list_and_search(service: Service, path: str, condition: dict[str, Any]) -> None:
    (memory_id,) = await service.add(
        "the one", timestamp=1_624_000_000, expiration_date="2099-01-01", metadata={"k": "v"}
    )
    if "memory_ids" in condition:
        condition = {"memory_ids": [memory_id] if isinstance(condition["memory_ids"], list) else {"in": [memory_id]}}
    (found,) = await service.find(path, {"AND": [U1, condition]})
    assert found["id"] == memory_id
    assert await service.find(path, {"AND": [U1, {"NOT": condition}]}) == []


@both
@pytest.mark.parametrize("owner", ["", "  ", None, [], {}, True])
async def test_blank_owner_never_means_everybody(service: Service, path: str, owner: Any) -> None:
    await service.add("A", user_id="somebody")
    for filters in ({"user_id": owner}, {"AND": [{"user_id": owner}]}, {"OR": [{"user_id": owner}, {"user_id": "u1"}]}):
        answer = await service.client.post(path, json={"query": "x", "filters": filters})
        assert answer.status_code == 400
        assert "user_id" in answer.json()["detail"]


@both
@pytest.mark.parametrize(
    "filters",
    [
        {"NOT": {"user_id": "u1"}},
        {"user_id": {"ne": "u1"}},
        {"metadata": {"t": "a"}},
        {"AND": [{"NOT": [{"user_id": "u1"}]}, {"metadata": {"t": "a"}}]},
        {"NOT": {"OR": [{"user_id": "u1"}, {"agent_id": "a1"}]}},
    ],
)
async def test_filters_without_a_named_owner_are_refused_by_the_rule(
    service: Service, path: str, filters: dict[str, Any]
) -> None:
    answer = await service.client.post(path, json={"query": "x", "filters": filters})
    assert answer.status_code == 400
    assert "user_id, agent_id, app_id, run_id" in answer.json()["detail"]


@both
async def test_any_owner_is_a_named_owner(service: Service, path: str) -> None:
    await service.add("A")
    await service.add("B", agent_id="a1")
    assert [memory["memory"] for memory in await service.find(path, {"OR": [{"user_id": "*"}]})] == ["A"]


async def test_bulk_delete_empties_lists_searches_and_reads_at_once(service: Service) -> None:
    (memory_id,) = await service.add("parks the blue van on level 3")
    await service.add("drives a blue van", user_id="u2")
    await service.client.delete("/v1/memories/", params={"user_id": "u1"})
    assert await service.search("blue van") == []
    assert await service.list() == []
    assert (await service.client.get(f"/v1/memories/{memory_id}/")).status_code == 404
    assert await service.search("blue van", {"user_id": "u2"}) == ["drives a blue van"]


async def test_owners_that_look_alike_when_joined_stay_apart(service: Service) -> None:
    for joint in ("_", ":", "|", "/", ","):
        tuples = [(f"a{joint}b", "c"), ("a", f"b{joint}c")]
        for user_id, run_id in tuples:
            assert len(await service.add("A", user_id=user_id, run_id=run_id)) == 1
        for user_id, run_id in tuples:
            assert await service.list({"AND": [{"user_id": user_id}, {"run_id": run_id}]}) == ["A"]
