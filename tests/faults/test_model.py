"""A model and an embedder that err in every way: nothing ends as an empty success, and search goes on."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from app.store import db as databases
from app.store import events
from tests.faults import brain, faults
from tests.faults.history import History
from tests.faults.world import World, eventually
from tests.model_stub import Reply

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SEARCH_S = 3.0  # on a busy machine


@pytest.mark.parametrize(
    "reply", faults.REPLIES, ids=lambda reply: f"{reply.status}-{reply.fault or str(reply.body)[-30:]}"
)
def test_a_failing_model_is_asked_again_and_search_does_not_wait(world: World, history: History, reply: Reply) -> None:
    failed: list[Any] = []

    def err(asked: dict[str, Any]) -> Reply:
        failed.append(asked)
        return reply

    world.brain.chat = err
    history.adds(range(4))
    eventually(lambda: len(failed) >= 4)
    with world.client() as client:
        began = time.monotonic()
        body = {"query": "what is there to remember", "filters": {"user_id": f"{history.name}-0"}}
        assert client.post("/v3/memories/search/", json=body).status_code == 200
        assert time.monotonic() - began < SEARCH_S
    assert world.value("SELECT count(*) FROM events WHERE status = 'SUCCEEDED' AND payload::text LIKE $1",
                       f"%mark-{history.name}-%") == 0  # fmt: skip
    world.brain.behave()
    history.check()


def _with_nan(texts: list[str]) -> bytes:
    answer = brain.embeddings(texts)
    answer["data"][0]["embedding"][0] = float("nan")
    return json.dumps(answer).encode()


BAD_VECTORS = {
    "other dimensions": lambda texts: brain.embeddings(texts, dims=7),
    "too few": lambda texts: brain.embeddings(texts[:-1]),
    "not a number": _with_nan,
    "nothing": lambda _texts: {"object": "list", "data": []},
}


@pytest.mark.parametrize("kind", BAD_VECTORS)
def test_a_wrong_vector_is_a_clear_failure_and_a_retry_asks_no_model_again(
    world: World, history: History, kind: str
) -> None:
    world.brain.embed = lambda asked: Reply(body=BAD_VECTORS[kind](asked["input"])) if " said " in str(asked) else None
    ack = history.add(0)
    assert ack is not None
    history.check(failed=frozenset({ack.mark}))
    world.brain.behave()
    assert world.run(_reopen_all(world)) == 1
    history.check()
    assert world.brain.asked[ack.mark] == 1


async def _reopen_all(world: World) -> int:
    db = await databases.Database.open(world.postgres.dsn, pool_size=1, statement_cache=0)
    count = 0
    for row in world_ids(await _projects(db)):
        async with db.transaction(row) as conn:
            count += await events.reopen_failed(conn, row)
    await db.close()
    return count


async def _projects(db: databases.Database) -> list[Any]:
    async with db.acquire(None) as conn:
        return list(await conn.fetch("SELECT id FROM projects"))


def world_ids(rows: list[Any]) -> list[int]:
    return [row["id"] for row in rows]
