from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from app.domain import dates

BASE = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)  # a Monday


def found(text: str, base: datetime = BASE) -> list[tuple[str, str]]:
    """What is found: the words, and their absolute form."""
    return [(text[s.start : s.end], s.text) for s in dates.find(text, base=base)]


@pytest.mark.parametrize(
    ("text", "words", "absolute"),
    [
        ("I went there yesterday.", "yesterday", "7 May 2023"),
        ("I'll call tomorrow morning", "tomorrow morning", "9 May 2023"),
        ("We met the day before yesterday", "the day before yesterday", "6 May 2023"),
        ("We moved last week.", "last week", "1–7 May 2023"),
        ("It starts next month", "next month", "June 2023"),
        ("I painted it last year", "last year", "2022"),
        ("We had cake last Friday", "last Friday", "5 May 2023"),
        ("See you next Tuesday", "next Tuesday", "16 May 2023"),
        ("I'll see the doctor on Friday", "on Friday", "12 May 2023"),
        ("I saw the doctor on Friday", "on Friday", "5 May 2023"),
        ("She left two days ago", "two days ago", "6 May 2023"),
        ("We leave in 3 weeks", "in 3 weeks", "around 29 May 2023"),
        ("It rained two weekends ago", "two weekends ago", "29–30 April 2023"),
        ("I started a few months ago", "a few months ago", "around 8 February 2023"),
        ("That was 4 years ago", "4 years ago", "2019"),
        ("We hiked last summer", "last summer", "summer 2022"),
        ("I was born on May 7", "May 7", "7 May 2023"),
        ("The defence was on the 3rd of June", "the 3rd of June", "3 June 2022"),
        ("I signed up for the race on 18 June.", "18 June", "18 June 2023"),
        ("They moved the date to 20 July.", "20 July", "20 July 2023"),
        ("We were there in March", "in March", "March 2023"),
        ("It will be ready in March", "in March", "March 2024"),
        ("Pay by the 14th", "by the 14th", "14 May 2023"),
        ("Due by the end of the month", "the end of the month", "end of May 2023"),
        ("I have been painting for seven years", "been painting for seven years", "since 2016"),
        ("We were in Rome last Christmas", "last Christmas", "25 December 2022"),
        ("Signed 25/12/2022", "25/12/2022", "25 December 2022"),
        ("I slept badly last night", "last night", "7 May 2023"),
        ("Mail the draft by Wednesday", "by Wednesday", "10 May 2023"),
        ("我昨天去了医院", "昨天", "2023年5月7日"),
        ("前天刚到", "前天", "2023年5月6日"),
        ("上周五下午开会了", "上周五下午", "2023年5月5日"),
        ("我下个月去上海", "下个月", "2023年6月"),
        ("三天前刚回来", "三天前", "2023年5月5日"),
        ("我们去年结婚了", "去年", "2022年"),
        ("今年春天很冷", "今年春天", "2023年春天"),
        ("5月20日要考试", "5月20日", "2023年5月20日"),
        ("国庆去了北京", "国庆", "2022年10月1日至7日"),
        ("下周三要体检", "下周三", "2023年5月17日"),
        ("两个月后搬家", "两个月后", "2023年7月"),
    ],
)  # fmt: skip
def test_a_relative_time_gets_its_date(text: str, words: str, absolute: str) -> None:
    assert found(text) == [(words, absolute)]


@pytest.mark.parametrize(
    "text",
    [
        "I may go",
        "We have 3 cats",
        "March on!",
        "I work from home on Fridays",
        "every Monday morning we meet",
        "The office is on the 5th floor",
        "I sat in the sun",
        "He is 45 years old",
        "31/31/2023",
        "我每周三游泳",
        "我养了三只猫",
    ],
)
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text", ["on 7 May 2023", "May 7th, 2023", "2023-05-07", "in May 2023", "since 2019", "2022年3月", "2021年12月25日"]
)
def test_a_full_date_is_found_and_not_explained(text: str) -> None:
    (span,) = dates.find(text, base=BASE)
    assert span.absolute
    assert dates.resolve(text, base=BASE) == text


def test_bounds_are_aware_and_end_exclusively() -> None:
    (span,) = dates.find("What did she do in May 2023?", base=BASE)
    assert (span.from_, span.to) == (datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC))
    (span,) = dates.find("上周我说了什么", base=BASE)
    assert (span.from_, span.to) == (datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 5, 8, tzinfo=UTC))
    (span,) = dates.find("I ran yesterday evening", base=BASE)
    assert (span.from_, span.to) == (datetime(2023, 5, 7, 18, tzinfo=UTC), datetime(2023, 5, 8, tzinfo=UTC))


def test_the_day_is_that_of_the_speakers_zone() -> None:
    late = datetime(2023, 5, 7, 20, tzinfo=UTC).astimezone(ZoneInfo("Asia/Shanghai"))  # 04:00 on the 8th there
    (span,) = dates.find("today", base=late)
    assert span.text == "8 May 2023"
    assert span.from_ == datetime(2023, 5, 7, 16, tzinfo=UTC)


def test_last_winter_said_in_january_is_the_one_that_ended() -> None:
    assert found("last winter", datetime(2023, 1, 9, tzinfo=UTC)) == [("last winter", "winter 2021/22")]


def test_resolving_twice_changes_nothing_more() -> None:
    for text in ("I ran yesterday and last week.", "我昨天和上周都去了"):
        once = dates.resolve(text, base=BASE)
        assert once != text
        assert dates.resolve(once, base=BASE) == once


def test_resolved_text_keeps_every_word() -> None:
    assert (
        dates.resolve("We moved last week, in the rain.", base=BASE)
        == "We moved last week (1–7 May 2023), in the rain."
    )
    assert dates.resolve("我昨天去了上海。", base=BASE) == "我昨天（2023年5月7日）去了上海。"


def test_the_last_day_of_february_and_the_ends_of_the_calendar_do_no_harm() -> None:
    leap = datetime(2024, 2, 29, tzinfo=UTC)
    assert found("a year ago", leap) == [("a year ago", "around 28 February 2023")]
    assert dates.find("on February 29", base=BASE)[0].from_.year == 2024
    edge = datetime(9999, 12, 31, tzinfo=UTC)
    for text in ("tomorrow", "next year", "next week", "in 999 years", "明年", "下周", "next summer"):
        dates.find(text, base=edge)
    start = datetime(1, 1, 1, tzinfo=UTC)
    for text in (
        "yesterday",
        "last year",
        "999 years ago",
        "去年",
        "last summer",
        "in May",
        "on the 5th",
        "last Christmas",
    ):
        dates.find(text, base=start)
