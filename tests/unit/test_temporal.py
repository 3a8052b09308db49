"""Words of time in a query: what they lift, and that nothing is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from app.domain import question, temporal
from app.model import Hit, State
from app.store.lifecycle import Standing
from tests.unit.test_decay import hit

NOW = datetime(2025, 6, 18, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def ordered(query: str, hits: list[Hit], standings: dict | None = None) -> list[str]:
    asked = question.read(query, now=NOW)
    intent = temporal.read(asked, now=NOW)
    result = temporal.order(hits, asked, intent, standings or {})
    assert len(result) == len(hits)
    scores = [found.score for found in result]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    return [found.memory.text for found in result]


def made(text: str, score: float, **changes: object) -> Hit:
    return hit(uuid4(), score, text=text, **changes)


@pytest.mark.parametrize(
    ("query", "upcoming", "current", "as_of"),
    [
        ("upcoming trips", True, False, False),
        ("即将到来的旅行", True, False, False),
        ("what are my plans", True, False, False),
        ("where do I currently live", False, True, False),
        ("my job right now", False, True, False),
        ("我现在住在哪里", False, True, False),
        ("where did I live as of March 2025", False, False, True),
        ("截至2025年3月我住在哪里", False, False, True),
        ("what is my cat called", False, False, False),
    ],
)
def test_words_of_time_are_read(query: str, upcoming: bool, current: bool, as_of: bool) -> None:
    intent = temporal.read(question.read(query, now=NOW), now=NOW)
    assert (intent.upcoming, intent.current, intent.as_of is not None) == (upcoming, current, as_of)


@pytest.mark.parametrize("query", ["what did I do yesterday", "昨天我做了什么"])
def test_what_happened_in_the_time_asked_for_is_lifted(query: str) -> None:
    day = datetime(2025, 6, 17, tzinfo=UTC)
    hits = [
        made("told yesterday, no time", 0.50),
        made("spring", 0.45, happened_from=day - 60 * DAY, happened_to=day - 30 * DAY),
        made("yesterday", 0.40, happened_from=day, happened_to=day + DAY),
    ]
    assert ordered(query, hits) == ["yesterday", "told yesterday, no time", "spring"]


def test_the_lift_grows_with_the_part_that_overlaps_and_ends_at_a_fifth() -> None:
    asked = question.read("what happened last week", now=NOW)
    (window,) = asked.windows
    intent = temporal.read(asked, now=NOW)
    lifts = []
    for days in (7, 14, 70):
        item = made("x", 0.5, happened_from=window[1] - days * DAY, happened_to=window[1])
        lifts.append(temporal.order([item], asked, intent, {})[0].score - 0.5)
    assert lifts == pytest.approx([0.2, 0.1, 0.02])


def test_what_is_still_to_come_is_lifted_and_the_nearest_most() -> None:
    hits = [
        made("past", 0.5, happened_from=NOW - 30 * DAY, happened_to=NOW - 29 * DAY),
        made("far", 0.5, happened_from=NOW + 300 * DAY, happened_to=NOW + 301 * DAY),
        made("near", 0.5, happened_from=NOW + 3 * DAY, happened_to=NOW + 4 * DAY),
    ]
    assert ordered("upcoming events", hits) == ["near", "far", "past"]
    assert ordered("events", hits) == ["past", "far", "near"]


def test_currently_prefers_what_stands_and_the_latest() -> None:
    hits = [
        made("replaced", 0.6, state=State.SUPERSEDED, replaced_by=uuid4(), created_at=NOW - 50 * DAY),
        made("old", 0.55, created_at=NOW - 40 * DAY),
        made("new", 0.53, created_at=NOW - DAY),
    ]
    assert ordered("where do I live currently", hits) == ["new", "old", "replaced"]


def test_as_of_prefers_what_stood_then() -> None:
    berlin, munich = (
        made("Berlin", 0.5, state=State.SUPERSEDED, created_at=datetime(2025, 1, 1, tzinfo=UTC)),
        made("Munich", 0.55, created_at=datetime(2025, 5, 1, tzinfo=UTC)),
    )
    standings = {
        berlin.memory.id: Standing(
            State.SUPERSEDED, munich.memory.id, munich.memory.created_at, None, NOW, ()
        ),
        munich.memory.id: Standing(State.ACTIVE, None, None, None, NOW, ()),
    }  # fmt: skip
    assert ordered("where did I live as of March 2025", [munich, berlin], standings) == ["Berlin", "Munich"]
    assert ordered("where did I live as of June 2025", [berlin, munich], standings) == ["Munich", "Berlin"]


def test_a_replacement_stands_before_what_it_replaced() -> None:
    third = made("third", 0.3, created_at=NOW)
    second = made("second", 0.5, state=State.SUPERSEDED, replaced_by=third.memory.id, created_at=NOW - DAY)
    first = made("first", 0.7, state=State.SUPERSEDED, replaced_by=second.memory.id, created_at=NOW - 2 * DAY)
    assert ordered("where", [first, second, made("other", 0.4), third]) == ["third", "second", "other", "first"]


@pytest.mark.parametrize(
    ("older", "newer", "query"),
    [
        ("office is on floor 2", "office is on floor 5", "which floor is the office on"),
        ("会议室在二楼左边", "会议室在五楼左边", "会议室在哪里"),
    ],
)
def test_of_two_statements_of_a_kind_the_newer_stands_first(older: str, newer: str, query: str) -> None:
    hits = [made(older, 0.52, created_at=NOW - 400 * DAY), made("x", 0.51), made(newer, 0.5)]
    assert ordered(query, hits) == [newer, "x", older]


def test_a_word_that_is_asked_for_makes_the_difference() -> None:
    hits = [made("likes strong green tea", 0.9, created_at=NOW - 400 * DAY), made("likes strong black tea", 0.3)]
    assert ordered("who likes green tea", hits) == ["likes strong green tea", "likes strong black tea"]
