"""English wordings of time. Every pattern is bounded, so that no text makes it slow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from app.domain import days
from app.domain.days import Period, Tense

Reader = Callable[[re.Match[str], date, Tense], Period | None]

PAST = re.compile(
    r"\b(?:was|were|did|didn't|had|went|got|took|made|came|saw|met|bought|left|began|started|ran|won|lost|told|said|gave|"
    r"found|felt|spent|flew|drove|wrote|ate|held|sold|taught|thought|became|ago|last|since|[A-Za-z]{2,18}[^e\W]ed)\b",
    re.I,
)
WAS = re.compile(r"\b(?:was|were)\b", re.I)  #: the day itself lies behind, not only the deed that the sentence tells of
FUTURE = re.compile(
    r"\b(?:will|won't|shall|going\s(?:to|on)|gonna|plan(?:s|ning)?|upcoming|due|deadline|next|hope|hoping|want(?:s)?|need(?:s)?|"
    r"scheduled|leaving|flying|moving|starts|begins|arrives|by|until|ready|promised|appointment|expires)\b|['’]ll\b",
    re.I,
)

_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_VAGUE = {"couple": 2, "few": 3, "several": 4}
_MONTH_NUMBERS = {name[:3].lower(): i for i, name in enumerate(days.MONTHS, 1)}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}

_N = r"(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
_N += r"|(?:an?\s)?(?:couple(?:\sof)?|few)|several)(?P<half>\sand\sa\shalf)?"
_UNIT = r"(?P<unit>day|week|weekend|month|year|fortnight|decade)s?"
_MONTH = r"(?P<month>(?i:january|february|april|june|july|august|september|october|november|december)|March|May"
_MONTH += r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_WEEKDAY = (
    r"(?P<weekday>(?i:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|(?:Mon|Tues?|Wed|Thurs?|Fri)\b\.?)"
)
_PART = r"(?P<part>morning|afternoon|evening|night)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"


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


def _group(match: re.Match[str], name: str) -> str:
    return (match.groupdict().get(name) or "").lower()


def _count(match: re.Match[str]) -> tuple[int, bool]:
    """Return the number and whether it is vague."""
    word = _group(match, "n")
    if word.isdigit():
        return int(word), False
    for name, value in _VAGUE.items():
        if name in word:
            return value, name != "couple"
    return _NUMBERS[word], False


def _number_of_month(match: re.Match[str]) -> int:
    return _MONTH_NUMBERS[_group(match, "month")[:3]]


def _hours(match: re.Match[str]) -> tuple[int, int] | None:
    return _PARTS.get(_group(match, "part"))


def _named_day(match: re.Match[str], today: date, tense: Tense) -> Period:
    word = re.sub(r"\s+", " ", match["word"].lower())
    shift = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "last night": -1, "earlier today": 0}.get(word)
    if shift is None:
        shift = -2 if "before" in word else 2 if "after" in word else 0
    hours = _PARTS["night"] if "night" in word else _hours(match)
    return days.day(today + timedelta(days=shift), hours)


def _this_part(match: re.Match[str], today: date, tense: Tense) -> Period:
    return days.day(today, _hours(match))


def _shift(match: re.Match[str]) -> int:
    word = _group(match, "which")
    return {"next": 1, "coming": 1, "following": 1, "this": 0, "current": 0, "the same": 0}.get(word, -1)


def _which_unit(match: re.Match[str], today: date, tense: Tense) -> Period:
    shift, unit = _shift(match), _group(match, "unit")
    if unit == "week":
        return days.week(today, shift)
    if unit == "weekend":
        if shift < 0 and today.weekday() == 6:  # on a Sunday, "last weekend" is not yesterday
            return days.weekend(today, -1)
        return days.weekend(today, shift)
    if unit == "month":
        return days.month(today.year, today.month + shift)
    if unit == "quarter":
        first = (today.month - 1) // 3 * 3 + 1 + 3 * shift
        start, end = days.month(today.year, first), days.month(today.year, first + 2)
        return Period(start.start, end.end)
    return days.year(today.year + shift)


def _which_weekday(match: re.Match[str], today: date, tense: Tense) -> Period:
    wanted, shift = _weekday(match), _shift(match)
    if shift > 0:
        found = days.week(today, 1).start + timedelta(days=wanted)
    elif shift < 0:
        found = today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
    else:
        found = today + timedelta(days=(wanted - today.weekday()) % 7)
        if tense < 0:
            found = days.week(today).start + timedelta(days=wanted)
    return days.day(found, _hours(match))


def _weekday(match: re.Match[str]) -> int:
    return next(i for i, name in enumerate(_WEEKDAYS) if name.startswith(_group(match, "weekday")[:3]))


def _bare_weekday(match: re.Match[str], today: date, tense: Tense) -> Period | None:
    """A weekday without "last" or "next": the tense decides; in the present tense it is a habit, not a date."""
    lead = _group(match, "lead")
    if tense == 0 and lead not in ("by", "until", "till", "before", "since"):
        return None
    back = lead == "since" or (tense < 0 and lead not in ("by", "until", "till", "for"))
    distance = (
        (today.weekday() - _weekday(match) - 1) % 7 + 1 if back else -((_weekday(match) - today.weekday() - 1) % 7 + 1)
    )
    return days.day(today - timedelta(days=distance), _hours(match))


def _distance(match: re.Match[str], today: date, sign: int) -> Period:
    count, vague = _count(match)
    unit = _group(match, "unit")
    if unit == "fortnight":
        unit, count = "week", count * 2
    if unit == "decade":
        unit, count = "year", count * 10
    if unit == "day":
        there = today + timedelta(days=sign * count)
        return days.around(there, 2) if vague else days.day(there)
    if unit == "week":
        return days.around(today + timedelta(weeks=sign * count), 7 if vague else 3)
    if unit == "weekend":
        return days.weekend(today, sign * count)
    if unit == "month":
        there = days.add_months(today, sign * count)
        return days.around(there, 40) if vague else days.month(there.year, there.month)
    if count == 1:
        there = days.add_months(today, sign * (18 if match["half"] else 12))
        return days.around(there, 45)
    return days.year(today.year + sign * count)


def _away(match: re.Match[str], today: date, tense: Tense) -> Period:
    return _distance(match, today, -1 if _group(match, "side") in ("ago", "back", "earlier") else 1)


def _ahead(match: re.Match[str], today: date, tense: Tense) -> Period:
    return _distance(match, today, 1)


def _stretch(match: re.Match[str], today: date, tense: Tense) -> Period:
    """The past three weeks, the next few months: a stretch that today bounds."""
    count, _ = _count(match)
    forward = _group(match, "which") in ("next", "coming")
    step = count if forward else -count
    unit = _group(match, "unit")
    if unit in ("month", "year", "decade"):
        there = days.add_months(today, step * {"month": 1, "year": 12, "decade": 120}[unit])
    else:
        there = today + timedelta(days=step * {"day": 1, "week": 7, "weekend": 7, "fortnight": 14}[unit])
    low, high = sorted((there, today))
    return Period(low, high + timedelta(days=1))


def _for_so_long(match: re.Match[str], today: date, tense: Tense) -> Period | None:
    count, vague = _count(match)
    unit = _group(match, "unit")
    if vague or unit not in ("month", "year", "decade"):
        return None
    months = count * {"month": 1, "year": 12, "decade": 120}[unit]
    return Period(days.add_months(today, -months), today + timedelta(days=1), "since")


def _in_years(make: Callable[[int], Period], years: range) -> Iterator[Period]:
    """Yield what `make` gives for each of the years; 29 February exists only in some."""
    for number in years:
        try:
            yield make(number)
        except ValueError:
            continue


def _year_of(match: re.Match[str], make: Callable[[int], Period], today: date, tense: Tense) -> Period:
    """Return what `make` gives for the year that is written, meant by "last" or "next", or fits the tense."""
    if year := _group(match, "year"):
        return make(int(year))
    which = _group(match, "which")
    near = range(today.year - 2, today.year + 3)  # "last winter", said in January, began two years ago
    candidates = list(_in_years(make, near)) or list(_in_years(make, range(today.year - 4, today.year + 5)))
    if which in ("last", "past", "previous"):
        return max((p for p in candidates if p.end <= today), key=lambda p: p.start)
    if which in ("next", "coming"):
        return min((p for p in candidates if p.start > today), key=lambda p: p.start)
    if which == "this":
        tense = 0
    return days.choose(candidates, today, tense)


def _month_and_day(match: re.Match[str], today: date, tense: Tense) -> Period:
    month, number = _number_of_month(match), int(match["day"])
    last = _group(match, "last")

    def make(year: int) -> Period:
        start = date(year, month, number)
        end = date(year, month, int(last)) if last else start
        return Period(start, end + timedelta(days=1), hours=_hours(match), absolute=bool(_group(match, "year")))

    return _year_of(match, make, today, tense)


def _month(match: re.Match[str], today: date, tense: Tense) -> Period:
    number, part = _number_of_month(match), _group(match, "third")[:3]

    def make(year: int) -> Period:
        whole = days.month(year, number)
        absolute = bool(_group(match, "year"))
        low, high = {"ear": (1, 11), "mid": (10, 21), "lat": (20, 32)}.get(part, (0, 0))
        if not high:
            return Period(whole.start, whole.end, "month", absolute=absolute)
        end = min(whole.start + timedelta(days=high - 1), whole.end)
        return Period(whole.start + timedelta(days=low - 1), end, "month", absolute=absolute)

    return _year_of(match, make, today, tense)


def _year(match: re.Match[str], today: date, tense: Tense) -> Period:
    whole = days.year(int(match["year"]))
    return Period(whole.start, whole.end, "year", absolute=True)


def _season(match: re.Match[str], today: date, tense: Tense) -> Period:
    name = _group(match, "season").replace("fall", "autumn")
    absolute = bool(_group(match, "year"))

    def make(year: int) -> Period:
        whole = days.season(year, days.SEASONS[name])
        return Period(whole.start, whole.end, "season", absolute=absolute)

    return _year_of(match, make, today, tense)


def _iso(match: re.Match[str], today: date, tense: Tense) -> Period:
    day = date(int(match["year"]), int(match["m"]), int(match["day"]))
    return Period(day, day + timedelta(days=1), absolute=True)


def _slashed(match: re.Match[str], today: date, tense: Tense) -> Period:
    """12/05/2023: month first, as in the United States, unless only the other order exists; with dots, day first."""
    first, second = int(match["a"]), int(match["b"])
    year = int(match["year"])
    day_first = match["mark"] == "." or first > 12
    day = date(year, second, first) if day_first else date(year, first, second)
    return Period(day, day + timedelta(days=1))


def _day_of_month(match: re.Match[str], today: date, tense: Tense) -> Period:
    number = int(match["day"])
    candidates = []
    for shift in (-2, -1, 0, 1, 2):
        first = days.month(today.year, today.month + shift).start
        try:
            candidates.append(days.day(first.replace(day=number)))
        except ValueError:
            continue
    return days.choose(candidates, today, tense)


def _end_of(match: re.Match[str], today: date, tense: Tense) -> Period:
    unit = _group(match, "unit") or {"w": "week", "m": "month", "y": "year"}.get(_group(match, "short"), "month")
    shift = 1 if _group(match, "which") == "next" else -1 if _group(match, "which") == "last" else 0
    if unit == "week":
        return days.around(days.week(today, shift).start + timedelta(days=5), 1)
    if unit == "month":
        whole = days.month(today.year, today.month + shift)
        return Period(whole.end - timedelta(days=7), whole.end, "end")
    whole = days.year(today.year + shift)
    return Period(whole.end - timedelta(days=61), whole.end, "end")


def _recently(match: re.Match[str], today: date, tense: Tense) -> Period:
    return Period(today - timedelta(days=14), today + timedelta(days=1), "before", today)


def _now(match: re.Match[str], today: date, tense: Tense) -> Period:
    return Period(today, today + timedelta(days=1), "now", today)


_HOLIDAYS = {
    "christmas eve": (12, 24), "christmas": (12, 25), "xmas": (12, 25), "new year's eve": (12, 31), "new year": (1, 1),
    "halloween": (10, 31), "valentine's day": (2, 14), "4th of july": (7, 4), "st patrick's day": (3, 17),
}  # fmt: skip


def _holiday(match: re.Match[str], today: date, tense: Tense) -> Period:
    name = match["holiday"].lower().replace("’", "'").replace("st. ", "st ").removesuffix(" day")
    name = {"valentine's": "valentine's day", "new year's": "new year", "st patrick's": "st patrick's day"}.get(
        name, name
    )
    month, number = _HOLIDAYS[name]
    absolute = False

    def make(year: int) -> Period:
        return days.day(date(year, month, number))

    found = _year_of(match, make, today, tense)
    return Period(found.start, found.end, absolute=absolute)


_WHICH = r"(?P<which>last|past|previous|this|next|coming)"
_RULES: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(pattern, 0 if "(?P<month>" in pattern or "(?P<weekday>" in pattern else re.I), read)
    for pattern, read in (
        (rf"\b(?P<word>yesterday|tomorrow|tonight|earlier\stoday|today|last\snight|(?:the\s)?day\sbefore\syesterday"
         rf"|(?:the\s)?day\safter\stomorrow)(?:['’]s\b|\s{_PART}\b)?", _named_day),
        (rf"\b(?:earlier\s|later\s)?this\s{_PART}\b", _this_part),
        (rf"\b(?:(?:earlier|later|sometime)\s)?(?:the\s)?{_WHICH}\s(?P<unit>week|weekend|month|year|quarter)\b(?:['’]s\b)?", _which_unit),
        (rf"\b(?i:{_WHICH})\s{_WEEKDAY}(?:['’]s\b|\s{_PART}\b)?", _which_weekday),
        (rf"\b(?P<lead>[Oo]n|[Bb]y|[Uu]ntil|[Tt]ill|[Ss]ince|[Bb]efore|[Aa]fter|[Ff]rom|[Ff]or|and|blocked)\s{_WEEKDAY}(?:['’]s\b|\s{_PART}\b)?(?!s\b|\s(?:mornings|afternoons|evenings|nights)\b)",
         _bare_weekday),
        (rf"(?<!\bevery\s)(?<!\beach\s)(?<!\bon\s)\b{_WEEKDAY}\s{_PART}\b", _bare_weekday),
        (rf"\b{_N}\s{_UNIT}\s(?P<side>ago|back|earlier|from\s(?:now|today)|hence)\b", _away),
        (rf"\bin\s(?:about\s|around\s)?{_N}\s{_UNIT}(?:['’]?\stime)?\b(?!\sof\b)", _ahead),
        (rf"\bthe\s(?:{_WHICH})\s{_N}\s{_UNIT}\b", _stretch),
        (rf"\b(?:been|had|known|lived|worked|practi[sc]ed|studied|owned|played|married|together)\b[^.!?]{{0,60}}?\bfor\s(?:about\s|almost\s|nearly\s|over\s|the\s(?:past|last)\s)?{_N}\s{_UNIT}(?:\snow)?\b", _for_so_long),
        (rf"\b(?:{_WEEKDAY.replace('weekday', 'day_name')},?\s)?(?:the\s)?{_MONTH}\s{_DAY}(?:\s?[-–]\s?(?P<last>[0-3]?\d))?(?![\d:])(?:(?:,\s?|\s){_YEAR}\b)?", _month_and_day),
        (rf"\b(?:the\s)?{_DAY}(?:\s?(?:[-–]|to)\s?(?P<last>[0-3]?\d)(?:st|nd|rd|th)?)?\s(?:of\s)?{_MONTH}\b(?:(?:,\s?|\s){_YEAR}\b)?", _month_and_day),
        (rf"\b(?i:{_WHICH}|in|since|during|until|till|by|before|after|of|from|around|through|back\sin)\s(?:(?P<third>early|mid|late)[-\s])?{_MONTH}\b(?!\s\d{{1,2}}\b)(?:(?:,?\s(?:of\s)?){_YEAR}\b)?", _month),
        (rf"\b(?P<third>[Ee]arly|[Mm]id|[Ll]ate)[-\s]{_MONTH}\b(?!\s\d{{1,2}}\b)(?:(?:,?\s(?:of\s)?){_YEAR}\b)?", _month),
        (rf"\b{_MONTH}(?:,?\s(?:of\s)?){_YEAR}\b", _month),
        (rf"\b(?:in|since|during|until|till|by|before|after|of|from|around|back\sin|year|early|late|mid)[-\s]{_YEAR}\b(?![-/.]\d)", _year),
        (rf"\b(?:{_WHICH}|in\s(?:the)?|during\sthe|the)\s?(?P<season>spring|summer|autumn|fall|winter)\sof\s{_YEAR}\b", _season),
        (rf"\b(?P<season>spring|summer|autumn|fall|winter)\s{_YEAR}\b", _season),
        (rf"\b{_WHICH}\s(?P<season>spring|summer|autumn|fall|winter)\b", _season),
        (rf"(?<![\d.-]){_YEAR}[-/.](?P<m>[01]?\d)[-/.](?P<day>[0-3]?\d)(?![\d-])", _iso),
        (rf"(?<![\d./])(?P<a>[0-3]?\d)(?P<mark>[/.])(?P<b>[0-3]?\d)(?P=mark){_YEAR}(?!\d)", _slashed),
        (r"\b(?:on|by|until|till|before|after|since)\sthe\s(?P<day>[0-3]?\d)(?:st|nd|rd|th)\b(?!\s(?:of|floor|time|grade|birthday|century|place|street|anniversary))",
         _day_of_month),
        (r"\b(?:(?:the\s)?end\sof\s(?:the\s|this\s)?(?P<which>next|last)?\s?(?P<unit>week|month|year)|EO(?P<short>[WMY])|month[-\s]end)\b",
         _end_of),
        (r"\b(?:recently|lately|the\sother\sday)\b", _recently),
        (r"\b(?:currently|at\sthe\smoment|right\snow|these\sdays|nowadays)\b", _now),
        (rf"\b(?:{_WHICH}\s)?(?P<holiday>Christmas\sEve|Christmas|Xmas|New\sYear['’]s\sEve|New\sYear(?:['’]s)?(?:\sDay)?|Halloween|Valentine['’]s\sDay|4th\sof\sJuly|St\.?\sPatrick['’]s\sDay)(?:\s{_YEAR}\b)?",
         _holiday),
    )
)  # fmt: skip
