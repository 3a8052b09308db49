"""A text is stored once in a scope, and a repeat changes nothing."""

from __future__ import annotations

import pytest

from app.store.db import Conn
from tests.field.conftest import ADD, LIST, Service


async def test_repeat_leaves_the_first_as_it_was(service: Service) -> None:
    (memory_id,) = await service.add("A")
    before = await service.get(memory_id)
    assert await service.add("A", metadata={"k": "v"}, timestamp=1_600_000_000) == []
    assert await service.get(memory_id) == before
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in await service.history(memory_id)] == [
        ("ADD", None, "A")
    ]
    assert await service.search("A") == ["A"]


async def test_repeats_within_one_request_are_stored_once(service: Service) -> None:
    assert len(await service.add("A", "A", "B")) == 2
    assert sorted(await service.list()) == ["A", "B"]


@pytest.mark.parametrize("infer", [True, False])
async def test_event_of_a_repeat_names_no_memory_that_is_not_there(service: Service, infer: bool) -> None:
    for _ in range(2):
        event = await service.tell("I moved to Lisbon in May.", infer=infer)
        assert event["status"] == "SUCCEEDED"
    assert event["results"] == []
    listed = await service.client.get("/v1/events/")
    named = [result["id"] for item in listed.json()["results"] for result in item["results"]]
    assert len(named) == 1
    assert (await service.get(named[0]))["user_id"] == "u1"


async def test_texts_are_compared_byte_by_byte(service: Service) -> None:
    assert len(await service.add("same line", "Same line", "same line ", "same  line", "same\nline")) == 5


async def test_same_text_lives_once_in_each_scope_and_project(service: Service, conn: Conn) -> None:
    assert len(await service.add("A")) == 1
    assert len(await service.add("A", user_id="u1", run_id="r1")) == 1
    async with service.of(conn):
        assert len(await service.add("A")) == 1


async def test_deleted_text_can_be_added_again(service: Service) -> None:
    (first,) = await service.add("A")
    await service.client.delete(f"/v1/memories/{first}/")
    (second,) = await service.add("A")
    assert first != second
    assert await service.list() == ["A"]


@pytest.mark.parametrize("bad", ["bad \x00 one", "  ", ""])
async def test_odd_message_does_not_take_the_good_ones_with_it(service: Service, bad: str) -> None:
    await service.add("good one", bad, "good two")
    found = await service.list()
    assert {"good one", "good two"} <= set(found)
    assert all(text.strip() and "\0" not in text for text in found)


async def test_messages_without_text_never_become_memories(service: Service) -> None:
    for messages in (
        [],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": " \n\t"}],
        "",
        "\u200b\ufeff ",
    ):
        answer = await service.client.post(ADD, json={"user_id": "u1", "infer": False, "messages": messages})
        assert answer.status_code in (200, 400)
    answer = await service.client.post(LIST, json={"filters": {"user_id": "u1"}})
    assert [memory["memory"] for memory in answer.json()["results"] if not memory["memory"].strip()] == []
