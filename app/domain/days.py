"""Stretches of the calendar and how they are written. Weeks begin on Monday; ends are exclusive."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}  #: first month, northern half
_SEASONS_ZH = {3: "春天", 6: "夏天", 9: "秋天", 12: "冬天"}
_DAY = timedelta(days=1)

Grain = Literal["days", "month", "season", "year", "around", "before", "now", "since", "end"]
Tense = Literal[-2, -1, 0, 1]  #: surely past, past, unknown, future


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` to `end` (exclusive); `grain` says how it is written."""

    start: date
    end: date
    grain: Grain = "days"
    anchor: date | None = None  # the day that an inexact wording names
    hours: tuple[int, int] | None = None  # of the first day, when a part of the day is named; the second may pass 24
    absolute: bool = False  # the text names it in full already


def day(d: date, hours: tuple[int, int] | None = None) -> Period:
    """Return one day, or the part of it between two hours."""
    return Period(d, d + _DAY, hours=hours)


def week(d: date, shift: int = 0) -> Period:
    """Return the week of `d`, `shift` weeks on."""
    monday = d - timedelta(days=d.weekday()) + timedelta(weeks=shift)
    return Period(monday, monday + timedelta(days=7))


def weekend(d: date, shift: int = 0) -> Period:
    """Return Saturday and Sunday of the week of `d`, `shift` weeks on."""
    monday = week(d, shift).start
    return Period(monday + timedelta(days=5), monday + timedelta(days=7))


def month(year: int, number: int) -> Period:
    """Return a month. `number` may run past 12 or below 1, into the neighbouring years."""
    year, number = year + (number - 1) // 12, (number - 1) % 12 + 1
    start = date(year, number, 1)
    return Period(start, start + timedelta(days=monthrange(year, number)[1]), "month")


def year(number: int) -> Period:
    """Return a year."""
    return Period(date(number, 1, 1), date(number + 1, 1, 1), "year")


def season(start_year: int, first_month: int) -> Period:
    """Return three months from `first_month`, which may run into the next year."""
    return Period(month(start_year, first_month).start, month(start_year, first_month + 2).end, "season")


def around(d: date, slack: int) -> Period:
    """Return the days near `d`, `slack` on each side."""
    return Period(d - timedelta(days=slack), d + timedelta(days=slack + 1), "around", d)


def add_months(d: date, count: int) -> date:
    """Return `d` moved by months; a day that the month lacks becomes its last one."""
    first = month(d.year, d.month + count).start
    return first.replace(day=min(d.day, monthrange(first.year, first.month)[1]))


#: A day without a year is rarely further away: "I signed up for the race on 18 May", said in March, means the coming May
#: although the sentence is in the past tense.
_YEARLESS_REACH = timedelta(days=270)


def choose(candidates: list[Period], base: date, tense: Tense) -> Period:
    """Return the candidate that a speaker on `base` means: the last one past, the next one to come, or the nearest."""
    nearest = min(candidates, key=lambda p: min(abs((p.start - base).days), abs((p.end - base).days)))
    if tense == 0:
        return nearest
    fitting = [p for p in candidates if (p.start <= base if tense < 0 else p.end > base)]
    if not fitting:
        return nearest
    meant = max(fitting, key=lambda p: p.start) if tense < 0 else min(fitting, key=lambda p: p.start)
    far = tense > -2 and meant.grain == "days" and abs(meant.start - base) > _YEARLESS_REACH
    return nearest if far else meant


def english(p: Period) -> str:
    """Write a period the way "7 May 2023", "1–7 May 2023", "May 2023" or "around 7 May 2023" do."""
    s, last = p.start, p.end - _DAY
    match p.grain:
        case "year":
            return str(s.year)
        case "month":
            return f"{MONTHS[s.month - 1]} {s.year}"
        case "season":
            name = next(n for n, m in SEASONS.items() if m == s.month)
            return f"{name} {s.year}/{last.year % 100:02d}" if last.year != s.year else f"{name} {s.year}"
        case "around":
            return "around " + _english_day(p.anchor or s)
        case "before":
            return "shortly before " + _english_day(p.anchor or last)
        case "now":
            return "as of " + _english_day(p.anchor or s)
        case "since":
            return f"since {MONTHS[s.month - 1]} {s.year}" if (last - s).days < 700 else f"since {s.year}"
        case "end":
            return f"end of {MONTHS[last.month - 1]} {last.year}" if (last - s).days < 40 else f"end of {last.year}"
    if s == last:
        return _english_day(s)
    if (last - s).days > 45:
        return f"{MONTHS[s.month - 1]} {s.year} – {MONTHS[last.month - 1]} {last.year}"
    if (s.year, s.month) == (last.year, last.month):
        return f"{s.day}–{_english_day(last)}"
    if s.year == last.year:
        return f"{s.day} {MONTHS[s.month - 1]} – {_english_day(last)}"
    return f"{_english_day(s)} – {_english_day(last)}"


def chinese(p: Period) -> str:
    """Write a period the way 2023年5月7日, 2023年5月1日至7日, 2023年5月 or 2023年5月7日前后 do."""
    s, last = p.start, p.end - _DAY
    match p.grain:
        case "year":
            return f"{s.year}年"
        case "month":
            return f"{s.year}年{s.month}月"
        case "season":
            return f"{s.year}年{_SEASONS_ZH[s.month]}"
        case "around":
            return _chinese_day(p.anchor or s) + "前后"
        case "before":
            return _chinese_day(p.anchor or last) + "前不久"
        case "now":
            return "截至" + _chinese_day(p.anchor or s)
        case "since":
            return f"自{s.year}年{s.month}月起" if (last - s).days < 700 else f"自{s.year}年起"
        case "end":
            return f"{last.year}年{last.month}月底" if (last - s).days < 40 else f"{last.year}年底"
    if s == last:
        return _chinese_day(s)
    if (last - s).days > 45:
        return f"{s.year}年{s.month}月至{last.year}年{last.month}月"
    if (s.year, s.month) == (last.year, last.month):
        return f"{_chinese_day(s)}至{last.day}日"
    if s.year == last.year:
        return f"{_chinese_day(s)}至{last.month}月{last.day}日"
    return f"{_chinese_day(s)}至{_chinese_day(last)}"


def _english_day(d: date) -> str:
    return f"{d.day} {MONTHS[d.month - 1]} {d.year}"


def _chinese_day(d: date) -> str:
    return f"{d.year}年{d.month}月{d.day}日"
