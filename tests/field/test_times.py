"""Instants are true and in UTC; days are whole; dates are real."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.field.conftest import ADD, LIST, SEARCH, Service

both = pytest.mark.parametrize("path", [LIST, SEARCH], ids=["list", "search"])


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


async def test_memory_knows_when_it_was_made(service: Service) -> None:
    (memory_id,) = await service.add("A")
    memory = await service.get(memory_id)
    for name in ("created_at", "updated_at"):
        assert memory[name].endswith("Z")
        assert abs(datetime.now(UTC) - datetime.fromisoformat(memory[name])) < timedelta(minutes=2)


@both
@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({"gte": "2021-06-18", "lte": "2021-06-25"}, "BC"),
        ({"gte": "2021-06-18", "lte": "2021-06-24"}, "BC"),  # an upper bound has its whole day
        ({"gt": "2021-06-18"}, "C"),
        ({"lt": "2021-06-18"}, "A"),
        ({"lte": "2021-06-18"}, "AB"),
        ({"gte": "2021-06-18T00:00:01Z"}, "C"),
        ({"gte": "2021-06-18T02:00:00+02:00"}, "BC"),
    ],
)
async def test_day_as_a_bound_is_the_whole_day_in_utc(
    service: Service, path: str, bounds: dict[str, str], found: str
) -> None:
    for text, moment in {"A": "2021-06-15T05:01:37Z", "B": "2021-06-18T00:00:00Z", "C": "2021-06-24T12:00:00Z"}.items():
        await service.add(text, timestamp=seconds(moment))
    memories = await service.find(path, {"AND": [{"user_id": "u1"}, {"created_at": bounds}]})
    assert {memory["memory"] for memory in memories} == set(found)


@pytest.mark.parametrize(
    ("timestamp", "created_at"),
    [
        (1_609_459_200, "2021-01-01T00:00:00Z"),
        (1_609_459_200.0, "2021-01-01T00:00:00Z"),
        ("2021-01-01", "2021-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (0, "1970-01-01T00:00:00Z"),
    ],
)
async def test_time_of_an_add_is_the_time_of_its_memories(service: Service, timestamp: Any, created_at: str) -> None:
    (memory_id,) = await service.add("A", timestamp=timestamp)
    assert (await service.get(memory_id))["created_at"] == created_at


@pytest.mark.parametrize("timestamp", [1_609_459_200_000, -(10**15), 10**30, "soon", "1609459200", True, [], {}])
async def test_time_that_is_none_is_refused_by_name(service: Service, timestamp: Any) -> None:
    answer = await service.client.post(
        ADD, json={"messages": "A", "user_id": "u1", "infer": False, "timestamp": timestamp}
    )
    assert answer.status_code == 400
    assert "timestamp" in answer.json()["detail"]
    assert await service.list() == []


@both
async def test_last_day_is_a_day_of_life(service: Service, path: str) -> None:
    today = datetime.now(UTC).date()
    await service.add("today", expiration_date=str(today))
    (gone,) = await service.add("yesterday", expiration_date=str(today - timedelta(days=1)), metadata={"a": 1})
    assert [memory["memory"] for memory in await service.find(path)] == ["today"]
    await service.client.put(f"/v1/memories/{gone}/", json={"expiration_date": None})
    assert len(await service.find(path)) == 2
    memory = await service.get(gone)
    assert (memory["memory"], memory["metadata"], memory["expiration_date"]) == ("yesterday", {"a": 1}, None)


@pytest.mark.parametrize("value", ["2099-02-30", "12/31/2099", "2099-12-31T23:00:00", 4_102_444_800, True, "2099-1-1"])
async def test_change_to_a_day_that_is_none_is_refused(service: Service, value: Any) -> None:
    (memory_id,) = await service.add("A")
    answer = await service.client.put(f"/v1/memories/{memory_id}/", json={"expiration_date": value})
    assert answer.status_code == 400
    assert "expiration_date" in answer.json()["detail"]
    assert (await service.get(memory_id))["expiration_date"] is None
