"""Batches: all or nothing. Feedback."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from app import errors
from app.domain import batch
from tests import fakes

BATCH = "/v1/batch/"


async def add(client: httpx.AsyncClient, text: str, **body: Any) -> str:
    answer = await client.post("/v3/memories/add/", json={"messages": text, "infer": False, "user_id": "u1", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"][0]["id"]


async def text_of(client: httpx.AsyncClient, memory_id: str) -> str:
    return (await client.get(f"/v1/memories/{memory_id}/")).json()["memory"]


async def update(client: httpx.AsyncClient, *memories: dict[str, Any], **headers: str) -> httpx.Response:
    return await client.put(BATCH, json={"memories": list(memories)}, headers=headers)


async def delete(client: httpx.AsyncClient, *ids: str, **headers: str) -> httpx.Response:
    body = {"memories": [{"memory_id": memory_id} for memory_id in ids]}
    return await client.request("DELETE", BATCH, json=body, headers=headers)


# Update


async def test_update_changes_each_and_embeds_all_texts_together(
    client: httpx.AsyncClient, embedder: fakes.FakeEmbedder
) -> None:
    one, two, three = [await add(client, text) for text in ("A", "B", "C")]
    embedder.batches.clear()
    answer = await update(
        client,
        {"memory_id": one, "text": "likes tea"},
        {"memory_id": two, "text": "likes rye", "metadata": {"a": 1}},
        {"memory_id": three, "metadata": {"b": 2}, "source": "CLI"},
    )
    assert (answer.status_code, answer.json()) == (200, {"message": "Successfully updated 3 memories"})
    assert embedder.batches == [["likes tea", "likes rye"]]
    assert [await text_of(client, memory_id) for memory_id in (one, two, three)] == ["likes tea", "likes rye", "C"]
    changes = (await client.get(f"/v1/memories/{two}/history/")).json()
    assert [(change["event"], change["old_memory"]) for change in changes] == [("ADD", None), ("UPDATE", "B")]


async def test_update_replaces_metadata_as_a_single_update_does(client: httpx.AsyncClient) -> None:
    one = await add(client, "A", metadata={"a": 1, "b": 2})
    await update(client, {"memory_id": one, "metadata": {"b": 3}})
    assert (await client.get(f"/v1/memories/{one}/")).json()["metadata"] == {"b": 3}


async def test_update_can_clear_a_date_and_set_a_time(client: httpx.AsyncClient) -> None:
    one = await add(client, "A", expiration_date="2099-01-01")
    await update(client, {"memory_id": one, "expiration_date": None, "timestamp": 1_600_000_000})
    shown = (await client.get(f"/v1/memories/{one}/")).json()
    assert (shown["expiration_date"], shown["created_at"]) == (None, "2020-09-13T12:26:40Z")


@pytest.mark.parametrize(
    ("entry", "status", "words"),
    [
        ({"memory_id": str(uuid4()), "text": "new"}, 404, "Memory not found!"),
        ({"memory_id": "0198f3a2", "text": "new"}, 400, "memories[1].memory_id should be a valid UUID"),
        ({"memory_id": 5, "text": "new"}, 400, "memories[1].memory_id should be a valid UUID"),
        ({"text": "new"}, 400, "memories[1].memory_id is required"),
        ({"memory_id": "{two}"}, 400, "memories[1] Nothing to change"),
        ({"memory_id": "{two}", "text": " "}, 400, "memories[1]"),
        ({"memory_id": "{two}", "metadata": 5}, 400, "memories[1].metadata"),
        ({"memory_id": "{one}", "text": "again"}, 400, "given twice"),
        ({"memory_id": "{fixed}", "text": "new"}, 400, "immutable"),
        ({"memory_id": "{two}", "text": "new A"}, 409, "has this text already"),
        ("x", 400, "memories[1]"),
    ],
)
async def test_one_entry_that_cannot_be_done_leaves_all_as_they_were(
    client: httpx.AsyncClient, entry: Any, status: int, words: str
) -> None:
    ids = {
        "one": await add(client, "A"),
        "two": await add(client, "B"),
        "fixed": await add(client, "C", immutable=True),
    }
    if isinstance(entry, dict) and isinstance(entry.get("memory_id"), str):
        entry = {**entry, "memory_id": entry["memory_id"].format(**ids)}
    answer = await update(client, {"memory_id": ids["one"], "text": "new A"}, entry)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert [await text_of(client, memory_id) for memory_id in ids.values()] == ["A", "B", "C"]


async def test_failing_embedder_changes_nothing(client: httpx.AsyncClient, embedder: fakes.FakeEmbedder) -> None:
    one = await add(client, "A")
    embedder.failures.append(errors.EmbedderUnavailable())
    answer = await update(client, {"memory_id": one, "text": "B", "metadata": {"a": 1}})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert await text_of(client, one) == "A"


async def test_repeated_key_changes_nothing_and_answers_the_same(client: httpx.AsyncClient) -> None:
    one = await add(client, "A")
    first = await update(client, {"memory_id": one, "text": "B"}, **{"Idempotency-Key": "k1"})
    await update(client, {"memory_id": one, "text": "C"})
    again = await update(client, {"memory_id": one, "text": "B"}, **{"Idempotency-Key": "k1"})
    assert again.json() == first.json()
    assert await text_of(client, one) == "C"
    other = await update(client, {"memory_id": one, "text": "D"}, **{"Idempotency-Key": "k1"})
    assert other.status_code == 422


# Delete


async def test_delete_takes_a_body_and_removes_each_once(client: httpx.AsyncClient) -> None:
    one, two, kept = [await add(client, text) for text in ("A", "B", "C")]
    answer = await delete(client, one, two, one)
    assert (answer.status_code, answer.json()) == (200, {"message": "Successfully deleted 2 memories"})
    assert (await client.get(f"/v1/memories/{one}/")).status_code == 404
    assert (await client.get(f"/v1/memories/{one}/history/")).json()[-1]["event"] == "DELETE"
    assert await text_of(client, kept) == "C"


@pytest.mark.parametrize(("bad", "status"), [(str(uuid4()), 404), ("0198f3a2", 400), ("*", 400)])
async def test_one_unknown_id_deletes_nothing(client: httpx.AsyncClient, bad: str, status: int) -> None:
    one = await add(client, "A")
    answer = await delete(client, one, bad)
    assert answer.status_code == status
    assert await text_of(client, one) == "A"


async def test_memories_of_another_project_are_unknown(client: httpx.AsyncClient, conn: Any) -> None:
    from tests import factories

    other = await factories.make_project(conn)
    foreign = await factories.make_memory(conn, await factories.make_scope(conn, other), "theirs")
    assert (await delete(client, str(foreign.id))).status_code == 404
    assert (await update(client, {"memory_id": str(foreign.id), "text": "mine"})).status_code == 404


async def test_deleted_batch_is_deleted_again_under_its_key(client: httpx.AsyncClient) -> None:
    one = await add(client, "A")
    for _ in range(2):
        answer = await delete(client, one, **{"Idempotency-Key": "k2"})
        assert (answer.status_code, answer.json()) == (200, {"message": "Successfully deleted 1 memories"})


# Both


@pytest.mark.parametrize(("method", "done"), [("PUT", "updated"), ("DELETE", "deleted")])
async def test_more_than_a_thousand_are_refused_in_known_words(
    client: httpx.AsyncClient, method: str, done: str
) -> None:
    entry = {"memory_id": str(uuid4()), "text": "x"}
    answer = await client.request(method, BATCH, json={"memories": [entry] * (batch.LIMIT + 1)})
    assert answer.status_code == 400
    assert answer.json()["error"] == f"Maximum of 1000 memories can be {done} in a single request"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_batch_of_nothing_is_done_at_once(client: httpx.AsyncClient, method: str) -> None:
    answer = await client.request(method, BATCH, json={"memories": []})
    assert answer.status_code == 200
    assert " 0 memories" in answer.json()["message"]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"memories": {}}', b'{"memories": "x"}'])
async def test_batch_without_memories_is_refused(client: httpx.AsyncClient, method: str, body: bytes) -> None:
    answer = await client.request(method, BATCH, content=body)
    assert answer.status_code == 400
    assert answer.json()["detail"] == answer.json()["error"]


async def test_thousand_memories_are_changed_and_deleted(client: httpx.AsyncClient) -> None:
    said = [{"role": "user", "content": f"fact number {number}"} for number in range(1000)]
    answer = await client.post("/v3/memories/add/", json={"messages": said, "infer": False, "user_id": "u1"})
    ids = [item["id"] for item in answer.json()["results"]]
    answer = await update(client, *({"memory_id": one, "text": f"new {place}"} for place, one in enumerate(ids)))
    assert answer.json() == {"message": "Successfully updated 1000 memories"}
    assert (await delete(client, *ids)).json() == {"message": "Successfully deleted 1000 memories"}
    left = await client.post("/v3/memories/", json={"filters": {"user_id": "u1"}})
    assert left.json()["count"] == 0


# Feedback


async def give(client: httpx.AsyncClient, memory_id: Any, **body: Any) -> httpx.Response:
    return await client.post("/v1/feedback/", json={"memory_id": memory_id, **body})


async def test_feedback_is_set_replaced_and_taken_back(client: httpx.AsyncClient, conn: Any, project: Any) -> None:
    from uuid import UUID

    from app.store import feedback

    one = await add(client, "A")
    answer = await give(client, one, feedback="POSITIVE", feedback_reason="true")
    assert answer.json() == {"id": one, "feedback": "POSITIVE", "feedback_reason": "true"}
    assert (await give(client, one, feedback="very_negative")).json()["feedback"] == "VERY_NEGATIVE"
    assert await feedback.find(conn, project.id, UUID(one)) == ("VERY_NEGATIVE", None)
    answer = await give(client, one, feedback=None, feedback_reason=None)
    assert answer.json() == {"id": one, "feedback": None, "feedback_reason": None}
    assert await feedback.find(conn, project.id, UUID(one)) is None
    assert (await give(client, one)).status_code == 200  # nothing to take back


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"memory_id": "x", "feedback": "POSITIVE"}, 400, "Invalid memory_id"),
        ({"memory_id": None, "feedback": "POSITIVE"}, 400, "Invalid memory_id"),
        ({"feedback": "POSITIVE"}, 400, "Invalid memory_id"),
        ({"memory_id": str(uuid4()), "feedback": "POSITIVE"}, 404, "Memory not found!"),
        ({"memory_id": str(uuid4()), "feedback": None}, 404, "Memory not found!"),
        (
            {"memory_id": "{one}", "feedback": "GREAT"},
            400,
            "feedback must be POSITIVE, NEGATIVE, VERY_NEGATIVE or null.",
        ),
        ({"memory_id": "{one}", "feedback": 1}, 400, "feedback must be"),
        ({"memory_id": "{one}", "feedback": "POSITIVE", "feedback_reason": 5}, 400, "feedback_reason"),
    ],
)
async def test_feedback_that_cannot_be_kept_is_refused(
    client: httpx.AsyncClient, body: dict[str, Any], status: int, text: str
) -> None:
    one = await add(client, "A")
    if isinstance(body.get("memory_id"), str):
        body = {**body, "memory_id": body["memory_id"].format(one=one)}
    answer = await client.post("/v1/feedback/", json=body)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(text)


async def test_feedback_goes_with_its_memory(client: httpx.AsyncClient) -> None:
    one = await add(client, "A")
    await give(client, one, feedback="POSITIVE")
    assert (await client.delete(f"/v1/memories/{one}/")).status_code == 200
    assert (await give(client, one, feedback="POSITIVE")).status_code == 404
