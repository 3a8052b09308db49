"""How memories fade: the published bands, and what starts the clock of one that was never found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from app.domain import decay
from app.model import Hit, Memory, Owners, State
from app.store.lifecycle import KEPT_ACCESSES, Standing

NOW = datetime(2026, 5, 6, 12, tzinfo=UTC)
UPDATED = Standing(State.ACTIVE, None, None, None, NOW, ())


def found(*ages: timedelta) -> Standing:
    return replace(UPDATED, accessed_at=tuple(NOW - age for age in ages))


@pytest.mark.parametrize(
    ("age", "low", "high"),
    [
        (timedelta(0), 1.49, 1.5),
        (timedelta(minutes=5), 1.47, 1.5),
        (timedelta(hours=3), 1.2, 1.4),
        (timedelta(hours=8), 1.2, 1.4),
        (timedelta(days=1), 0.95, 1.05),
        (timedelta(days=2), 0.6, 1.0),
        (timedelta(days=5), 0.6, 1.0),
        (timedelta(days=8), 0.4, 0.6),
        (timedelta(days=25), 0.4, 0.6),
        (timedelta(days=90), 0.3, 0.35),
        (timedelta(days=4000), 0.3, 0.31),
    ],
)
def test_one_access_gives_the_published_bands(age: timedelta, low: float, high: float) -> None:
    assert low <= decay.factor(found(age), NOW) <= high
    assert decay.factor(replace(UPDATED, updated_at=NOW - age), NOW) == decay.factor(found(age), NOW)


def test_more_accesses_keep_a_memory_longer_and_nothing_leaves_the_bounds() -> None:
    month = timedelta(days=30)
    many = [month + timedelta(hours=hour) for hour in range(KEPT_ACCESSES)]
    assert decay.factor(found(month), NOW) < decay.factor(found(*many), NOW) <= 1.5
    assert decay.factor(found(*[timedelta(0)] * KEPT_ACCESSES), NOW) <= 1.5
    assert decay.factor(found(-timedelta(days=1)), NOW) <= 1.5  # a clock that runs ahead


def test_what_was_never_found_fades_from_what_it_tells() -> None:
    old = replace(UPDATED, happened_from=NOW - timedelta(days=365))
    assert decay.factor(old, NOW) < 0.35
    assert decay.factor(replace(UPDATED, happened_from=NOW + timedelta(days=9)), NOW) == decay.TO_COME
    again = replace(old, accessed_at=(NOW,))
    assert decay.factor(again, NOW) > 1.49


def test_the_order_counts_what_is_beyond_one_and_the_score_ends_there() -> None:
    first, second, third = uuid4(), uuid4(), uuid4()
    standings = {first: found(timedelta(days=400)), second: found(timedelta(0)), third: found(timedelta(hours=1))}
    hits = decay.faded([hit(first, 0.9), hit(second, 0.8), hit(third, 0.79)], standings, NOW)
    assert [found.memory.id for found in hits] == [second, third, first]
    assert [found.score for found in hits][:2] == [1.0, 1.0]
    assert 0.27 <= hits[2].score <= 0.29


def test_three_times_as_many_are_looked_at() -> None:
    assert [decay.pool(top_k) for top_k in (1, 16, 17, 100)] == [50, 50, 51, 300]


def hit(memory_id: UUID, score: float, *, text: str = "x", created_at: datetime = NOW, **changes: object) -> Hit:
    memory = Memory(
        1, memory_id, 1, Owners("u"), text, "h", None, None, None, None, False, None, State.ACTIVE, None, False, None, 0,
        None, None, created_at, created_at,
    )  # fmt: skip
    return Hit(replace(memory, **changes), score, 0.0, 0.0, 0.0)
