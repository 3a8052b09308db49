"""The checker itself: it finds what was lost, doubled, misplaced or left behind."""

from __future__ import annotations

import pytest

from tests.faults.history import History
from tests.faults.world import World

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

DAMAGES = {
    "lost": ("DELETE FROM events WHERE id = $1::text::uuid", "is lost"),
    "no effect": ("DELETE FROM memories WHERE event_id = $1::text::uuid", "0 memories"),
    "another's": ("UPDATE memories SET user_id = 'eve' WHERE event_id = $1::text::uuid", "belongs to"),
    "no vector": (
        "DELETE FROM memory_vectors WHERE memory_id IN (SELECT id FROM memories WHERE event_id = $1::text::uuid)",
        "without exactly one vector",
    ),
    "twice": (
        "WITH one AS (SELECT * FROM memories WHERE event_id = $1::text::uuid)"
        " INSERT INTO memories (project_id, id, scope_id, user_id, text, hash, event_id)"
        " SELECT project_id, gen_random_uuid(), scope_id, user_id, text || '!', md5(text || '!'), event_id FROM one",
        "2 memories",
    ),
    "overtaken": (
        "UPDATE events SET completed_at = completed_at + interval '1 hour' WHERE id = $1::text::uuid",
        "overtaken",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_it_finds(world: World, history: History, damage: str) -> None:
    history.adds(range(12), threads=1)
    history.check()
    sql, words = DAMAGES[damage]
    rows = world.rows("SELECT * FROM events WHERE id = $1::text::uuid", history.acks[0].event_id)
    world.rows(sql, history.acks[0].event_id)
    with pytest.raises(AssertionError, match=words):
        history.check()
    # The next test wants a world without contradictions.
    for table in ("memories", "events", "scopes", "terms", "history"):
        world.rows(f"DELETE FROM {table}")
    assert rows
