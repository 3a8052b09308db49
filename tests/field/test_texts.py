"""Any text can be stored, comes back as it was, and is found."""

from __future__ import annotations

import random

import pytest

from app.store.db import Conn
from tests.field.conftest import SEARCH, Service


@pytest.mark.parametrize(
    "text",
    ["<|fim_prefix|>", "<|endoftext|><|im_start|>", "{}{0}{user}", "%(x)s $HOME", "[[[[", "🙂", "e\u0301", "שלום\u200f!", "\u202e", "a\\b"],
)  # fmt: skip
async def test_text_is_kept_and_found_by_itself(service: Service, text: str) -> None:
    await service.add(text, "has a red bike")
    assert set(await service.search(text)) == {text, "has a red bike"}


async def test_text_is_found_by_an_address_in_it(service: Service) -> None:
    row = "contact is Jane Roe <jane@mail.example>, https://a.example/x?y=1#z, +00 (0)1 234-5, /etc/имя/путь"
    await service.add(row, "has a red bike", "works at a bakery")
    for query in ("Jane Roe <jane@mail.example>", "https://a.example/x?y=1#z", "+00 (0)1 234-5", "/etc/имя/путь"):
        assert (await service.search(query))[0] == row


async def test_long_text_is_whole_and_found_by_its_beginning(service: Service) -> None:
    rng = random.Random(1)
    words = ["river", "stone", "lamp", "garden", "window", "paper", "cloud", "silver", "morning", "quiet"]
    first = "Marguerite keeps bees behind the old observatory."
    text = first
    while len(text) < 40_000:
        text += " " + " ".join(rng.choices(words, k=9)).capitalize() + "."
    text = text[:40_000].rstrip().ljust(40_000, ".")
    await service.add(text)
    await service.add(*(f"{rng.choice(words)} {number}" for number in range(20)))
    assert await service.list({"AND": [{"user_id": "u1"}, {"keywords": {"contains": first}}]}) == [text]
    assert (await service.search(first))[0] == text


async def test_largest_text_breaks_nothing(service: Service, conn: Conn) -> None:
    text = " ".join(f"w{number:x}" for number in range(2**20 // 7))[: 2**20]
    await service.add(text)
    await service.add("has a red bike")
    assert (await service.search("red bike"))[0] == "has a red bike"
    assert (await service.search("w1a2b w5"))[0] == text
    assert set(await service.list()) == {text, "has a red bike"}
    await conn.execute("SET LOCAL ROLE NONE")  # indexes are the business of their owner
    for row in await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        await conn.execute(f"REINDEX TABLE {row['tablename']}")
    assert (await service.search("w1a2b w5"))[0] == text


@pytest.mark.parametrize(
    "owner",
    [
        "7f3e1c9a-0000-4000-8000-000000000001",
        "team:a.b@x.example+1",
        "a/b",
        "main",
        "\u200b7",
        "u\u200bu",
        "👩‍👩‍👧",
        "\u202eabc",
        "a\u00a0b",
        "É",
        "E\u0301",
        "ß",
        "ﬁ",
        "*x",
        "%",
        "null",
        "None",
        "0",
    ],
)
async def test_odd_owner_is_an_owner_like_any_other(service: Service, owner: str) -> None:
    await service.add("mine", user_id=owner)
    await service.add("theirs", user_id="somebody")
    assert await service.list({"user_id": owner}) == ["mine"]
    assert await service.search("mine", {"user_id": owner}) == ["mine"]
    answer = await service.client.delete("/v1/memories/", params={"user_id": owner})
    assert answer.status_code == 200
    assert await service.list({"user_id": owner}) == []
    assert await service.list({"user_id": "somebody"}) == ["theirs"]


@pytest.mark.parametrize("owner", ["ab\bc", "a\nb", "a\tb", "\x7f", "a\x85b", "a\0b"])
async def test_owner_with_a_control_character_is_refused_everywhere(service: Service, owner: str) -> None:
    await service.add("theirs", user_id="somebody")
    bodies = {
        "/v3/memories/add/": {"messages": "A", "user_id": owner, "infer": False},
        "/v3/memories/": {"filters": {"user_id": owner}},
        SEARCH: {"query": "A", "filters": {"user_id": owner}},
    }
    for path, body in bodies.items():
        assert (await service.client.post(path, json=body)).status_code == 400, path
    assert (await service.client.delete("/v1/memories/", params={"user_id": owner})).status_code == 400
    assert await service.list({"user_id": "somebody"}) == ["theirs"]


async def test_identical_events_of_odd_texts_can_be_read(service: Service) -> None:
    event = await service.tell("I like \u2028 tea \u0000 and 👩‍👩‍👧.", metadata={"a": {"bc": ["x\u0000y"]}})
    assert event["status"] == "SUCCEEDED"
    assert "\u0000" not in str(event["payload"])
