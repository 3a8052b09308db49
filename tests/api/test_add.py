"""POST /v3/memories/add/."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.runtime import Runtime
from tests import fakes

ADD = "/v3/memories/add/"


async def add(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post(ADD, json={"messages": "I like tea.", "user_id": "u1", **body})


async def listed(client: httpx.AsyncClient, **owners: str) -> list[dict[str, Any]]:
    answer = await client.post("/v3/memories/", json={"filters": owners or {"user_id": "u1"}})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


async def test_add_is_accepted_and_its_event_tells_the_outcome(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    answer = await add(client, messages=[{"role": "user", "content": "I moved to Lisbon in May."}])
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "PENDING"
    assert [str(event_id) for event_id in queue.rung] == [body["event_id"]]
    event = (await client.get(f"/v1/event/{body['event_id']}/")).json()
    assert (event["status"], event["event_type"], event["latency"]) == ("PENDING", "ADD", None)
    await queue.drain(runtime)
    event = (await client.get(f"/v1/event/{body['event_id']}/")).json()
    assert event["status"] == "SUCCEEDED"
    assert event["latency"] > 0
    (memory,) = await listed(client)
    assert event["results"] == [
        {
            "id": memory["id"],
            "event": "ADD",
            "memory": memory["memory"],
            "data": {"memory": memory["memory"]},
            "user_id": "u1",
        }
    ]
    assert "Lisbon" in memory["memory"]


async def test_direct_import_is_done_at_once(client: httpx.AsyncClient) -> None:
    answer = await add(client, infer=False, metadata={"a": 1})
    body = answer.json()
    assert (body["message"], body["status"], body["skipped"]) == ("Memories stored successfully", "SUCCEEDED", [])
    (memory,) = await listed(client)
    assert body["results"] == [
        {
            "id": memory["id"],
            "event": "ADD",
            "memory": "I like tea.",
            "data": {"memory": "I like tea."},
            "user_id": "u1",
            "agent_id": None,
            "app_id": None,
            "run_id": None,
        }
    ]
    event = (await client.get(f"/v1/events/{body['event_id']}/")).json()
    assert event["status"] == "SUCCEEDED"


async def test_direct_import_says_what_it_left_out(client: httpx.AsyncClient) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "has a red bike"}, {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]},
        {"role": "user", "content": {"type": "image_url", "image_url": {"url": "https://files.example/a.png"}}},
        {"role": "agent", "content": "Nice!"},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "  "},
    ]  # fmt: skip
    answer = await add(client, infer=False, messages=messages)
    assert answer.status_code == 200
    assert [result["memory"] for result in answer.json()["results"]] == ["has a red bike"]
    assert [(entry["index"], entry["role"]) for entry in answer.json()["skipped"]] == [
        (0, "user"), (1, "user"), (2, "assistant"), (3, "system"), (4, "user"),
    ]  # fmt: skip


async def test_second_identical_direct_import_adds_nothing(client: httpx.AsyncClient) -> None:
    first = await add(client, infer=False)
    second = await add(client, infer=False)
    assert (second.json()["status"], second.json()["results"]) == ("SUCCEEDED", [])
    assert [memory["id"] for memory in await listed(client)] == [first.json()["results"][0]["id"]]


@pytest.mark.parametrize(
    "messages",
    [
        "I like tea.",
        {"role": "user", "content": "I like tea."},
        ["I like tea."],
        [{"role": "USER", "content": "I like tea."}],
    ],
)
async def test_messages_may_be_a_text_one_message_or_a_list(client: httpx.AsyncClient, messages: Any) -> None:
    answer = await add(client, infer=False, messages=messages)
    assert [result["memory"] for result in answer.json()["results"]] == ["I like tea."]


@pytest.mark.parametrize(
    "owners",
    [
        {"user_id": "x"},
        {"userId": "x"},
        {"filters": {"user_id": "x"}},
        {"filters": {"userId": "x"}},
        {"user_id": "x", "filters": {"user_id": "y"}},
        {"user_id": " x "},
        {"user_id": None, "filters": {"user_id": "x"}},
    ],
)
async def test_owner_may_stand_at_the_top_or_in_filters_and_the_top_wins(
    client: httpx.AsyncClient, owners: dict[str, Any]
) -> None:
    answer = await client.post(ADD, json={"messages": "A", "infer": False, **owners})
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"][0]["user_id"] == "x"


async def test_number_becomes_the_text_of_an_owner(client: httpx.AsyncClient) -> None:
    assert (await add(client, infer=False, user_id=42)).json()["results"][0]["user_id"] == "42"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "user_id"),
        ({"messages": "A"}, "user_id"),
        ({"user_id": "u"}, "messages is required"),
        ({"user_id": "u", "messages": []}, "messages"),
        ({"user_id": "u", "messages": None}, "messages is required"),
        ({"user_id": "u", "messages": ""}, "text"),
        ({"user_id": "u", "messages": [{"role": "user", "content": " "}]}, "text"),
        ({"user_id": "u", "messages": 5}, "messages"),
        ({"user_id": "u", "messages": [5]}, "messages[0]"),
        ({"user_id": "u", "messages": [{"content": "A"}]}, "messages[0].role is required"),
        ({"user_id": "u", "messages": [{"role": "tool", "content": "A"}]}, "messages[0].role"),
        ({"user_id": "u", "messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"user_id": "u", "messages": [{"role": "user", "content": "A", "name": 5}]}, "messages[0].name"),
        ({"user_id": "", "messages": "A"}, "user_id must not be blank"),
        ({"user_id": "  ", "messages": "A"}, "user_id must not be blank"),
        ({"user_id": "ab\b", "messages": "A"}, "user_id holds a control character"),
        ({"user_id": "x" * 256, "messages": "A"}, "user_id"),
        ({"user_id": True, "messages": "A"}, "user_id"),
        ({"user_id": {"eq": "x"}, "messages": "A"}, "user_id"),
        ({"user_id": "*", "messages": "A"}, "user_id"),
        ({"filters": {"user_id": {"eq": "x"}}, "messages": "A"}, "filters"),
        ({"filters": {"user_id": "x", "metadata": {}}, "messages": "A"}, "filters"),
        ({"filters": "x", "messages": "A"}, "filters"),
        ({"user_id": "u", "messages": "A", "metadata": "x"}, 'Expected a dictionary of items but got type "str".'),
        ({"user_id": "u", "messages": "A", "metadata": [1]}, "metadata"),
        ({"user_id": "u", "messages": "A", "infer": "maybe"}, "infer"),
        ({"user_id": "u", "messages": "A", "infer": 2}, "infer"),
        ({"user_id": "u", "messages": "A", "expiration_date": "2099-02-30"}, "expiration_date"),
        ({"user_id": "u", "messages": "A", "expiration_date": "12/31/2099"}, "expiration_date"),
        ({"user_id": "u", "messages": "A", "expiration_date": "2099-12-31T23:00:00"}, "expiration_date"),
        ({"user_id": "u", "messages": "A", "timestamp": 1609459200000}, "milliseconds"),
        ({"user_id": "u", "messages": "A", "timestamp": "soon"}, "timestamp"),
        ({"user_id": "u", "messages": "A", "timestamp": True}, "timestamp"),
        ({"user_id": "u", "messages": "A", "timezone": "Mars/Base"}, "timezone"),
        ({"user_id": "u", "messages": "A", "observation_date": "yesterday"}, "observation_date"),
        ({"user_id": "u", "messages": "A", "custom_categories": ["travel"]}, "custom_categories"),
        ({"user_id": "u", "messages": "A", "custom_instructions": 5}, "custom_instructions"),
    ],
)
async def test_what_cannot_be_added_is_refused_by_name(client: httpx.AsyncClient, body: Any, words: str) -> None:
    answer = await client.post(ADD, json=body)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert answer.json()["error"] == "400 Bad Request"
    assert answer.json()["details"] == {"message": answer.json()["detail"]}
    assert (await client.get("/v1/events/")).json()["count"] == 0


async def test_fields_of_other_clients_are_ignored_and_never_kept(client: httpx.AsyncClient) -> None:
    answer = await add(
        client, apiKey="m0-secret", host="x", source="CLI", enable_graph=True, output_format="v1.1", version="v2",
        async_mode=False, org_id="o", project_id="p", tags=["x"], deduced_memories=["y"], structured_data_schema=None,
    )  # fmt: skip
    assert answer.status_code == 200
    event = await client.get(f"/v1/event/{answer.json()['event_id']}/")
    assert event.json()["payload"] == {
        "messages": [{"role": "user", "content": "I like tea."}], "user_id": "u1", "infer": True,
    }  # fmt: skip
    assert "m0-secret" not in event.text


async def test_timestamp_becomes_created_at(client: httpx.AsyncClient) -> None:
    await add(client, infer=False, timestamp=1609459200)
    (memory,) = await listed(client)
    assert memory["created_at"] == "2021-01-01T00:00:00Z"
    assert memory["structured_attributes"] == {
        "year": 2021, "month": 1, "day": 1, "hour": 0, "minute": 0, "day_of_week": "friday", "week_of_year": 53,
        "day_of_year": 1, "quarter": 1, "is_weekend": False,
    }  # fmt: skip


async def test_metadata_comes_back_as_it_was_given(client: httpx.AsyncClient) -> None:
    metadata = {"camelCase": {"snake_case": [1, 2.5, None, True, "周"]}, "": {}, "user_id": "mine"}
    await add(client, infer=False, metadata=metadata)
    (memory,) = await listed(client)
    assert memory["metadata"] == metadata


@pytest.mark.parametrize(
    "text",
    [
        "周末吃夜宵",
        "e\u0301 vs \u00e9",
        "👩‍👩‍👧 at 3",
        "שלום\u200f!",
        "<|fim_prefix|>",
        "{}{0}{user}",
        "%(x)s $HOME",
        " padded ",
    ],
)
async def test_direct_import_keeps_every_code_point(client: httpx.AsyncClient, text: str) -> None:
    await add(client, infer=False, messages=text)
    (memory,) = await listed(client)
    assert memory["memory"] == text


async def test_metadata_beyond_its_limits_is_refused(client: httpx.AsyncClient) -> None:
    big = await add(client, metadata={"a": "x" * 65_536})
    assert (big.status_code, "MEMORYD_MAX_METADATA_BYTES" in big.json()["detail"]) == (400, True)
    deep: Any = 1
    for _ in range(32):
        deep = [deep]
    too_deep = await add(client, metadata={"a": deep})
    assert (too_deep.status_code, "MEMORYD_MAX_METADATA_DEPTH" in too_deep.json()["detail"]) == (400, True)
    assert (await add(client, metadata={"a": deep[0]})).status_code == 200


async def test_message_beyond_its_limit_is_refused(client: httpx.AsyncClient) -> None:
    answer = await add(client, messages="x" * (2**20 + 1))
    assert (answer.status_code, "MEMORYD_MAX_MESSAGE_BYTES" in answer.json()["detail"]) == (400, True)
    assert (await add(client, messages="x" * 2**20)).status_code == 200


@pytest.mark.parametrize("infer", [True, False])
async def test_same_key_and_body_give_the_same_answer(client: httpx.AsyncClient, infer: bool) -> None:
    headers = {"Idempotency-Key": "once"}
    body = {"messages": "I like tea.", "user_id": "u1", "infer": infer}
    first = await client.post(ADD, json=body, headers=headers)
    second = await client.post(ADD, json=dict(reversed(body.items())), headers=headers)
    assert first.json() == second.json()
    assert (await client.get("/v1/events/")).json()["count"] == 1


async def test_same_key_with_another_body_is_422(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "once"}
    await client.post(ADD, json={"messages": "A", "user_id": "u1"}, headers=headers)
    answer = await client.post(ADD, json={"messages": "B", "user_id": "u1"}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"] == "422 Unprocessable Content"


async def test_key_longer_than_255_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post(ADD, json={"messages": "A", "user_id": "u1"}, headers={"Idempotency-Key": "x" * 256})
    assert (answer.status_code, "dempotency" in answer.json()["detail"]) == (400, True)


async def test_silent_embedder_makes_a_direct_import_503(
    client: httpx.AsyncClient, embedder: fakes.FakeEmbedder
) -> None:
    from app import errors

    embedder.failures = [errors.EmbedderUnavailable(retry_after_s=7)]
    answer = await add(client, infer=False)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert await listed(client) == []


async def test_direct_import_of_more_than_a_request_can_wait_for_is_refused(client: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "content": f"line {n}"} for n in range(2001)]
    answer = await client.post("/v3/memories/add/", json={"messages": messages, "user_id": "u1", "infer": False})
    assert answer.status_code == 400
    assert "MEMORYD_MAX_RAW_MESSAGES" in answer.json()["detail"]
