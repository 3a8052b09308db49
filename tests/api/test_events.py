"""GET /v1/event/{id}/ and GET /v1/events/."""

from __future__ import annotations

from uuid import uuid4

import httpx
import pytest

ADD = "/v3/memories/add/"


async def add(client: httpx.AsyncClient, *, infer: bool = False) -> str:
    answer = await client.post(ADD, json={"messages": "I like tea.", "user_id": "u1", "infer": infer})
    return answer.json()["event_id"]


@pytest.mark.parametrize("event_id", [str(uuid4()), "evt-1", "a%2Fb", "%00"])
async def test_event_that_is_none_is_404(client: httpx.AsyncClient, event_id: str) -> None:
    for path in ("/v1/event/", "/v1/events/"):
        answer = await client.get(f"{path}{event_id}/")
        assert answer.status_code == 404
        assert answer.json()["error"] == "Event not found or you don't have permission to access it."


async def test_list_is_newest_first_in_an_envelope(client: httpx.AsyncClient) -> None:
    made = [await add(client) for _ in range(3)]
    body = (await client.get("/v1/events/?page_size=2")).json()
    assert (body["count"], [event["id"] for event in body["results"]]) == (3, [made[2], made[1]])
    rest = (await client.get(body["next"])).json()
    assert ([event["id"] for event in rest["results"]], rest["next"]) == ([made[0]], None)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("event_type=ADD", 2), ("event_type=add", 2), ("event_type=SEARCH", 0), ("status=PENDING", 1),
        ("status=SUCCEEDED", 1), ("start_date=2020-01-01", 2), ("end_date=2020-01-01", 0), ("start_date=2999-01-01", 0),
        ("unknown=1", 2),
    ],
)  # fmt: skip
async def test_list_is_narrowed_by_kind_state_and_day(client: httpx.AsyncClient, query: str, count: int) -> None:
    await add(client)
    await add(client, infer=True)
    assert (await client.get(f"/v1/events/?{query}")).json()["count"] == count


@pytest.mark.parametrize("query", ["status=DONE", "page=0", "page_size=101", "start_date=soon", "end_date=2020-02-30"])
async def test_what_cannot_be_honoured_is_400(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/v1/events/?{query}")
    assert (answer.status_code, query.split("=")[0] in answer.json()["error"]) == (400, True)


async def test_page_past_the_end_is_404(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/events/?page=2")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Invalid page."})
