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
    "nothing in the event": ("UPDATE events SET results = '[]' WHERE id = $1::text::uuid", "0 results"),
    "not asked for": (
        "UPDATE memories SET text = replace(text, 'mark-', 'mark-x') WHERE event_id = $1::text::uuid",
        "0 memories",
    ),
    "a number nobody sent": (
        "UPDATE memories SET text = regexp_replace(text, '-[0-9]+ ', '-999 ') WHERE event_id = $1::text::uuid",
        "nobody asked for",
    ),
    "of another event": (
        "UPDATE memories SET event_id = gen_random_uuid() WHERE event_id = $1::text::uuid",
        "came of event",
    ),
    "failed": (
        "UPDATE events SET status = 'FAILED', error_code = 'x', error = 'y' WHERE id = $1::text::uuid",
        "FAILED x y",
    ),
    "no history": (
        "DELETE FROM history WHERE memory_id IN (SELECT id FROM memories WHERE event_id = $1::text::uuid)",
        "without exactly one ADD",
    ),
    "a wrong count": (
        "UPDATE scopes SET memory_count = memory_count + 1 WHERE id IN"
        " (SELECT scope_id FROM events WHERE id = $1::text::uuid)",
        "count wrong",
    ),
    "two at the same time": (
        "UPDATE events SET started_at = started_at - interval '1 hour', created_at = created_at - interval '2 hours'"
        " WHERE scope_id = (SELECT scope_id FROM events WHERE id = $1::text::uuid)",
        "ran beside",
    ),
    "overtaken": (
        "UPDATE events SET completed_at = completed_at + interval '1 hour' WHERE id = $1::text::uuid",
        "overtaken",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_it_finds(world: World, history: History, damage: str) -> None:
    history.adds(range(10), threads=1)
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


def test_it_finds_an_event_that_never_ends(world: World, history: History) -> None:
    for worker in world.workers:
        worker.kill()
    history.add(0)
    with pytest.raises(AssertionError, match="have not ended"):
        history.check(within_s=1)
    world.heal()
    history.check()


def test_it_finds_an_event_that_two_workers_say_they_finished(world: World, history: History) -> None:
    history.add(0)
    history.check()
    line = next(
        line for line in world.workers[0].history + world.workers[1].history if history.acks[0].event_id in line
    )
    with world.workers[0].child.log.open("a", encoding="utf-8") as log:
        log.write(line + "\n")
    with pytest.raises(AssertionError, match="finished by 2 workers"):
        history.check()


def test_it_finds_an_answer_that_no_fault_excuses(world: World, history: History) -> None:
    secret = dict(world.projects)
    world.projects.update(dict.fromkeys(secret, "m0-wrong"))
    history.add(0, patience_s=0)
    world.projects.update(secret)
    with pytest.raises(AssertionError, match="401"):
        history.check()
