"""Chinese wordings of time. Every pattern is bounded, so that no text makes it slow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from app.domain import days
from app.domain.days import Period, Tense

Reader = Callable[[re.Match[str], date, Tense], Period | None]

PAST = re.compile(r"了|过|刚|曾|已经|上[周个次]|昨|前天|去年|以前|当时|那时")
FUTURE = re.compile(r"要|会|将|打算|计划|准备|下[周个次]|明[天年早晚]|后天|之前|截止|到期|预约|即将|想")

_DIGITS = {"零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_NUM = r"(?:\d{1,3}|[一二两三四五六七八九十]{1,3})"
_N = rf"(?P<n>{_NUM}|几|好几|半)"
_WD = r"(?P<weekday>[一二三四五六日天末]|[1-7](?!\d))"
_PART = r"(?:的?(?P<part>早上|早晨|清晨|凌晨|上午|中午|下午|傍晚|晚上|夜里|晚|早))?"
_PARTS = {"早": (5, 12), "清": (5, 9), "凌": (0, 6), "上": (8, 12), "中": (11, 14), "下": (12, 18), "傍": (17, 20),
          "晚": (18, 30), "夜": (20, 30)}  # fmt: skip
_YEAR = r"(?P<year>(?:19|20)\d\d|[二一][〇零九][〇零一二三四五六七八九]{2})\s?年"
_YEAR_WORD = r"(?P<year_word>大前年|前年|去年|今年|明年|后年|上一年)"
_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "上一年": -1, "今年": 0, "明年": 1, "后年": 2}
_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3, "当": 0}
_SEASON = r"(?P<season>[春夏秋冬])(?:天|季)"
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
_SPRING_FESTIVAL = ("2020-01-25", "2021-02-12", "2022-02-01", "2023-01-22", "2024-02-10", "2025-01-29", "2026-02-17",
                    "2027-02-06", "2028-01-26", "2029-02-13", "2030-02-03")  # fmt: skip
_DRAGON_BOAT = ("2020-06-25", "2021-06-14", "2022-06-03", "2023-06-22", "2024-06-10", "2025-05-31", "2026-06-19",
                "2027-06-09", "2028-05-28", "2029-06-16", "2030-06-05")  # fmt: skip
_MID_AUTUMN = ("2020-10-01", "2021-09-21", "2022-09-10", "2023-09-29", "2024-09-17", "2025-10-06", "2026-09-25",
               "2027-09-15", "2028-10-03", "2029-09-22", "2030-09-12")  # fmt: skip
_MOON = {"春节": _SPRING_FESTIVAL, "过年": _SPRING_FESTIVAL, "端午": _DRAGON_BOAT, "中秋": _MID_AUTUMN}
_FIXED = {"国庆": (10, 1, 7), "元旦": (1, 1, 1), "五一": (5, 1, 5), "劳动": (5, 1, 5), "圣诞": (12, 25, 1),
          "平安夜": (12, 24, 1), "情人": (2, 14, 1), "双十一": (11, 11, 1), "儿童": (6, 1, 1)}  # fmt: skip


def matches(text: str, today: date, tense: Tense) -> Iterator[tuple[int, int, Period]]:
    """Yield what each pattern finds; matches of different patterns may overlap."""
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            try:
                period = read(match, today, tense)
            except (ValueError, OverflowError):  # no such day, or beyond the calendar
                continue
            if period is not None:
                yield match.start(), match.end(), period


def number(word: str) -> int:
    """Return the value of a number up to 999 in digits, or up to 99 in Chinese numerals."""
    if word.isdigit():
        return int(word)
    tens, ten, ones = word.rpartition("十")
    if not ten:
        return _DIGITS[word[-1]]
    return (_DIGITS[tens[-1]] if tens else 1) * 10 + (_DIGITS[ones[0]] if ones else 0)


def _group(match: re.Match[str], name: str) -> str:
    return match.groupdict().get(name) or ""


def _hours(match: re.Match[str]) -> tuple[int, int] | None:
    return _PARTS.get(_group(match, "part")[:1])


def _year_number(match: re.Match[str], today: date) -> int | None:
    if word := _group(match, "year_word"):
        return today.year + _YEARS[word]
    written = _group(match, "year")
    if not written:
        return None
    return int("".join(c if c.isdigit() and c.isascii() else str(_DIGITS[c]) for c in written))


def _with_year(match: re.Match[str], make: Callable[[int], Period], today: date, tense: Tense) -> Period:
    year = _year_number(match, today)
    if year is not None:
        return make(year)
    return days.choose([make(today.year + shift) for shift in (-1, 0, 1)], today, tense)


def _named_day(match: re.Match[str], today: date, tense: Tense) -> Period:
    return days.day(today + timedelta(days=_DAYS[match["which"]]), _hours(match))


def _which(match: re.Match[str]) -> int:
    word = _group(match, "which")
    size = len(word)
    return -size if word.startswith("上") else size if word.startswith("下") else 0


def _week(match: re.Match[str], today: date, tense: Tense) -> Period:
    return days.week(today, _which(match))


def _weekday(match: re.Match[str], today: date, tense: Tense) -> Period | None:
    word, shift = match["weekday"], _which(match)
    if not _group(match, "which") and tense == 0:
        return None  # a habit, not a date
    if word == "末":
        return days.weekend(today, shift)
    index = 6 if word in "日天" else number(word) - 1
    found = days.week(today, shift).start + timedelta(days=index)
    if not _group(match, "which"):
        if tense > 0 and found < today:
            found += timedelta(days=7)
        if tense < 0 and found > today:
            found -= timedelta(days=7)
    return days.day(found, _hours(match))


def _which_month(match: re.Match[str], today: date, tense: Tense) -> Period:
    whole = days.month(today.year, today.month + _which(match))
    if written := _group(match, "day"):
        return days.day(whole.start.replace(day=number(written)), _hours(match))
    if _group(match, "third") in ("底", "末"):
        return Period(whole.end - timedelta(days=7), whole.end, "end")
    return whole


def _year(match: re.Match[str], today: date, tense: Tense) -> Period:
    value = _year_number(match, today)
    whole = days.year(value if value is not None else today.year)
    if _group(match, "third"):
        return Period(whole.end - timedelta(days=61), whole.end, "end")
    return Period(whole.start, whole.end, "year", absolute=bool(_group(match, "year")))


def _month(match: re.Match[str], today: date, tense: Tense) -> Period:
    absolute, part = bool(_group(match, "year")), _group(match, "third")

    def make(year: int) -> Period:
        whole = days.month(year, number(match["month"]))
        if part in ("底", "末"):
            return Period(whole.end - timedelta(days=7), whole.end, "end", absolute=absolute)
        return Period(whole.start, whole.end, "month", absolute=absolute)

    return _with_year(match, make, today, tense)


def _date(match: re.Match[str], today: date, tense: Tense) -> Period:
    absolute, last = bool(_group(match, "year")), _group(match, "last")

    def make(year: int) -> Period:
        start = date(year, number(match["month"]), number(match["day"]))
        end = start.replace(day=number(last)) if last else start
        return Period(start, end + timedelta(days=1), hours=_hours(match), absolute=absolute)

    return _with_year(match, make, today, tense)


def _season(match: re.Match[str], today: date, tense: Tense) -> Period:
    absolute = bool(_group(match, "year"))

    def make(year: int) -> Period:
        whole = days.season(year, _SEASONS[match["season"]])
        return Period(whole.start, whole.end, "season", absolute=absolute)

    return _with_year(match, make, today, tense)


def _distance(match: re.Match[str], today: date, tense: Tense) -> Period | None:
    word, unit = match["n"], match["unit"][-1]
    sign = -1 if match["side"].endswith("前") else 1
    vague = "几" in word
    count = 3 if vague else 0 if word == "半" else number(word)
    if unit == "年":
        if word == "半":
            there = days.add_months(today, sign * 6)
            return days.month(there.year, there.month)
        return days.around(today.replace(day=1), 700) if vague else days.year(today.year + sign * count)
    if unit == "月":
        if word == "半":
            return days.around(today + timedelta(days=15 * sign), 3)
        there = days.add_months(today, sign * count)
        return days.around(there, 40) if vague else days.month(there.year, there.month)
    if word == "半":
        return None
    if unit in "周期拜":
        return days.around(today + timedelta(weeks=sign * count), 7 if vague else 3)
    there = today + timedelta(days=sign * count)
    return days.around(there, 2) if vague else days.day(there)


def _stretch(match: re.Match[str], today: date, tense: Tense) -> Period | None:
    word, unit = match["n"], match["unit"][-1]
    count = 3 if "几" in word else number(word) if word != "半" else 0
    months = {"年": 12 * count or 6, "月": count}.get(unit)
    span = {"周": 7, "期": 7, "拜": 7, "天": 1, "日": 1}.get(unit, 1)
    there = days.add_months(today, -months) if months is not None else today - timedelta(days=count * span)
    return Period(there, today + timedelta(days=1))


def _festival(match: re.Match[str], today: date, tense: Tense) -> Period:
    name = match["festival"]
    if table := _MOON.get(name):
        found = [days.day(date.fromisoformat(text)) for text in table]
        year = _year_number(match, today)
        return next((p for p in found if p.start.year == year), None) or days.choose(found, today, tense)
    month, first, count = _FIXED[name]

    def make(year: int) -> Period:
        return Period(date(year, month, first), date(year, month, first) + timedelta(days=count))

    return _with_year(match, make, today, tense)


def _recently(match: re.Match[str], today: date, tense: Tense) -> Period:
    return Period(today - timedelta(days=14), today + timedelta(days=1), "before", today)


def _now(match: re.Match[str], today: date, tense: Tense) -> Period:
    return Period(today, today + timedelta(days=1), "now", today)


_ANY_YEAR = rf"(?:{_YEAR}|{_YEAR_WORD})"
_RULES: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"(?P<which>大前|大后|前|昨|今|明|后|当)(?:天|日|(?=早上|晚上|早|晚)){_PART}(?!后|之后|以后)", _named_day),
        (r"(?P<which>上{1,2}|下{1,2}|这|本)(?:一)?(?:个)?(?:周|星期|礼拜)(?![一二三四五六日天末1-7])", _week),
        (rf"(?P<which>上{{1,2}}|下{{1,2}}|这|本)?(?:个)?(?<!每)(?:周|星期|礼拜){_WD}(?!岁|年|以上){_PART}", _weekday),
        (rf"(?P<which>上{{1,2}}|下{{1,2}}|这|本)(?:个)?月(?:(?P<day>[1-3]?\d|[一二三]?十?[一二三四五六七八九十])(?:号|日)|(?P<third>初|底|末|中旬))?{_PART}", _which_month),
        (rf"{_YEAR_WORD}(?P<third>年?底|年末)?", _year),
        (rf"{_YEAR}(?P<third>底|末)?", _year),
        (rf"(?:{_ANY_YEAR}\s?)?(?<!\d)(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])\s?月\s?(?P<day>[1-3]?\d|[一二三]?十?[一二三四五六七八九十])\s?(?:[日号]\s?)?(?:[到至\-–~]\s?(?P<last>[1-3]?\d)\s?)?[日号]{_PART}", _date),
        (rf"{_ANY_YEAR}\s?(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])\s?月(?:份)?(?P<third>初|底|末|中旬)?(?!\s?[\d一二三十])", _month),
        (r"(?<![\d个])(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])\s?月(?:份(?P<third>)|(?P<third2>初|底|末|中旬))(?!\s?\d)", _month),
        (rf"(?:{_ANY_YEAR}\s?的?)?{_SEASON}(?=[^装的]|$)", lambda m, t, k: _season(m, t, k) if _group(m, "year") or _group(m, "year_word") else None),
        (rf"{_N}\s?(?P<unit>天|日|周|个?星期|个?礼拜|个月|年)(?P<side>之?前|以前|之?后|以后)(?!辈|端)", _distance),
        (rf"(?:最近|过去|近)(?:这|的)?{_N}\s?(?P<unit>天|周|个?星期|个月|年)", _stretch),
        (rf"(?:{_ANY_YEAR}\s?的?)?(?P<festival>国庆|元旦|五一|劳动(?=节)|春节|过年|端午|中秋|圣诞|平安夜|情人(?=节)|双十一|儿童(?=节))(?:节)?", _festival),
        (r"最近(?!的|这|\s?[几一二两三四五六七八九十\d])|前几天|前不久|前阵子|这几天", _recently),
        (r"目前|现在|眼下", _now),
    )
)  # fmt: skip
