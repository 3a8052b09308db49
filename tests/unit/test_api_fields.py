"""Single values of a request."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from app import errors
from app.api import fields


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("alice", "alice"),
        ("  alice\n", "alice"),
        (42, "42"),
        ("a/b", "a/b"),
        ("team:a.b@x.example+1", "team:a.b@x.example+1"),
        ("Ä周\u200b", "Ä周\u200b"),
        ("x" * 255, "x" * 255),
        (None, None),
    ],
)
def test_owner_is_trimmed_text(given: object, read: str | None) -> None:
    assert fields.new_owner(given) == read


@pytest.mark.parametrize("given", ["", "  ", "x" * 256, "ab\bc", "a\nb", "a\tb", True, [], {"eq": "x"}, "*"])
def test_owner_that_cannot_be_addressed_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        fields.new_owner(given)


@pytest.mark.parametrize("given", ["2099-02-30", "12/31/2099", "2099-12-31T23:00:00", "2099-1-1", 20991231, "", True])
def test_only_a_real_calendar_date_is_a_day(given: object) -> None:
    with pytest.raises(ValueError, match="calendar date"):
        fields.day(given)


def test_day_is_read() -> None:
    assert fields.day("2099-02-28") == date(2099, 2, 28)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (1609459200, datetime(2021, 1, 1, tzinfo=UTC)),
        (1609459200.5, datetime(2021, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2021-01-01", datetime(2021, 1, 1, tzinfo=UTC)),
        ("2021-01-01T05:00:00+05:00", datetime(2021, 1, 1, tzinfo=UTC)),
        ("2021-01-01T00:00:00Z", datetime(2021, 1, 1, tzinfo=UTC)),
    ],
)
def test_instant_is_read(given: object, read: datetime) -> None:
    assert fields.instant(given) == read


@pytest.mark.parametrize(
    "given", [1609459200000, -1e300, "soon", True, "", "20210101", "2021-13-01", "0001-01-01T00:00:00+10:00", [], {}]
)
def test_instant_that_is_none_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        fields.instant(given)


@pytest.mark.parametrize("given", ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"])
def test_time_zone_is_known(given: str) -> None:
    assert fields.zone(given) == given


@pytest.mark.parametrize("given", ["Mars/Base", "../etc/passwd", "/etc/passwd", "Europe", "", 3, "a\0b", "x" * 500])
def test_time_zone_that_is_none_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="time zone"):
        fields.zone(given)


@pytest.mark.parametrize(
    ("given", "text", "unread"),
    [
        ("hello", "hello", ()),
        (None, "", ()),
        ({"type": "text", "text": "hello"}, "hello", ()),
        ([{"type": "text", "text": "a"}, "b", {"type": "audio", "audio": {}}], "a\nb", ("audio",)),
        ({"type": "video_url", "video_url": {"url": "x"}}, "", ("video_url",)),
        ([], "", ()),
    ],
)
def test_content_is_joined_from_its_texts(given: object, text: str, unread: tuple[str, ...]) -> None:
    assert fields.content(given) == fields.Content(text, unread=unread)


@pytest.mark.parametrize(
    "given", [5, True, {}, [5], [{"text": "x"}], {"type": 3}, {"type": "text"}, {"type": "text", "text": 3}]
)
def test_content_of_another_shape_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        fields.content(given)


@pytest.mark.parametrize("given", [["travel"], "travel", {"travel": "x"}, [{}], [{"travel": 3}], [{" ": "x"}]])
def test_categories_without_descriptions_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        fields.categories(given)


def test_categories_keep_their_names() -> None:
    given = [{"workLifeBalance": "d"}, {"work_life": "d"}]
    assert fields.categories(given) == given


@pytest.mark.parametrize("given", ["a%2Fb", "%C3%A4", "a%252Fb"])
def test_segment_is_decoded_once(given: str) -> None:
    assert fields.segment(given) == {"a%2Fb": "a/b", "%C3%A4": "ä", "a%252Fb": "a%2Fb"}[given]


def test_segment_that_is_no_text_is_refused() -> None:
    with pytest.raises(errors.InvalidRequest):
        fields.segment("%ff%fe")


@pytest.mark.parametrize(
    "given",
    [
        "0198f3a2",
        "0198f3a27c417d3e9b1f2a6d1c0e5f77",
        "{0198f3a2-7c41-7d3e-9b1f-2a6d1c0e5f77}",
        "0198f3a2-7c41-7d3e-9b1f-2a6d1c0e5f77x",
        "",
    ],
)
def test_shortened_or_padded_uuid_is_none(given: str) -> None:
    assert fields.uuid(given) is None


@pytest.mark.parametrize("given", [("0",), (-1,), ("x",), (True,), (1.5,), ("１",), ([],)])
def test_number_that_is_no_page_is_refused(given: tuple[Any]) -> None:
    with pytest.raises(errors.InvalidRequest, match="page"):
        fields.number("page", *given, default=1, most=200)


def test_first_number_given_wins() -> None:
    assert fields.number("page", None, "7", 3, default=1, most=200) == 7
    assert fields.number("page", None, None, default=1, most=200) == 1
