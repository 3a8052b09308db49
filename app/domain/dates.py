"""Dates in running text, English and Chinese: found, resolved against the day of speaking, written out beside the words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from app.domain import dates_en, dates_zh, days, sentences
from app.domain.days import Period, Tense

_TENSE_WITHIN = 2000  #: characters; a longer text has no one tense


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The part `[start, end)` of a text that names a time, and the time: from `from_` up to and without `to`."""

    start: int
    end: int
    from_: datetime  # aware, in the zone of the base
    to: datetime  # aware, exclusive
    text: str  # the time in absolute words, such as "7 May 2023"
    absolute: bool = False  # the words in the text say as much already


def find(text: str, *, base: datetime) -> list[TimeSpan]:
    """Return what `text`, said at `base` (aware), tells of times, in order and without overlaps.

    A form without a year or week ("in May", "on Friday") is read with the tense of the text. Times of the clock and
    habits ("every Monday") are left out.
    """
    today = base.date()
    taken: list[tuple[int, int, Period, Callable[[Period], str]]] = []
    for start, end, period in dates_en.matches(text, today, _tense_en(text)):
        taken.append((start, end, period, days.english))
    if sentences.is_chinese(text):
        taken += [(s, e, p, days.chinese) for s, e, p in dates_zh.matches(text, today, _tense_zh(text))]
    spans: list[TimeSpan] = []
    for start, end, period, write in sorted(taken, key=lambda t: (t[0], -t[1])):
        if not spans or start >= spans[-1].end:
            low, high = _bounds(period, base)
            spans.append(TimeSpan(start, end, low, high, write(period), period.absolute))
    return spans


def resolve(text: str, *, base: datetime) -> str:
    """Return `text` with the absolute date in brackets behind every relative one. Safe to repeat."""
    return annotate(text, find(text, base=base))


def annotate(text: str, spans: list[TimeSpan]) -> str:
    """Return `text` with the words of `spans`, which were found in it, in brackets behind each relative one."""
    said: set[str] = set()
    parts, at = [], 0
    for span in spans:
        if span.absolute or span.text in said or text[span.end : span.end + 2].lstrip()[:1] in ("(", "（"):
            continue
        said.add(span.text)
        brackets = "（{}）" if "\u4e00" <= span.text[-1] <= "\u9fff" else " ({})"
        parts += [text[at : span.end], brackets.format(span.text)]
        at = span.end
    return "".join([*parts, text[at:]])


def _bounds(period: Period, base: datetime) -> tuple[datetime, datetime]:
    zone = base.tzinfo
    if period.hours is None:
        return _midnight(period.start, zone), _midnight(period.end, zone)
    start = _midnight(period.start, zone)
    low, high = period.hours
    return start + timedelta(hours=low), start + timedelta(hours=high)


def _midnight(d: date, zone: object) -> datetime:
    return datetime.combine(d, time(), tzinfo=zone)  # type: ignore[arg-type]


def _tense_en(text: str) -> Tense:
    text = text[:_TENSE_WITHIN]
    past, future = dates_en.PAST.search(text) is not None, dates_en.FUTURE.search(text) is not None
    if past == future:
        return 0
    if future:
        return 1
    return -2 if dates_en.WAS.search(text) else -1


def _tense_zh(text: str) -> Tense:
    text = text[:_TENSE_WITHIN]
    past, future = dates_zh.PAST.search(text) is not None, dates_zh.FUTURE.search(text) is not None
    return 0 if past == future else (-1 if past else 1)
