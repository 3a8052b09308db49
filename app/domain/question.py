"""What a query asks for, read from its words alone: terms, names, times, and whose words are wanted. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain import dates, lexemes, link

#: A capitalised word that more of the memories hold than this is a name that tells nothing, and its likeness draws in
#: what is said *to* its bearer. Left in the dense query, such names took it from 64 to 26 % recall at 10.
COMMON_SHARE = 0.15
#: Fewer memories than this say nothing about what is common.
COMMON_FROM = 20

#: A question is longer than this when it also tells something: of 100, 150 and 250 the one that helped LoCoMo most without
#: hurting BEAM, whose users end long reports with a question.
SHORT_CHARS = 150

#: Characters of a query that are read. A pasted report with its question fits in; a megabyte would hold everybody up for
#: seconds, and say nothing more.
READ_CHARS = 10_000

_NAME = re.compile(r"\b([A-ZÀ-ÖØ-Þ][\w-]*)(?:['’]s\b)?")
_WHEN = re.compile(
    r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:year|month|date|day|time|week)\b|什么时候|何时|几时|哪天|哪年|哪一年|多久|几月|几号"
    r"|いつ|何年|何月|何日",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]|^(?:who|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|has|have|had|will|would|should"
    r"|may|tell|name|list|describe|explain|give)\b|什么|谁|哪|怎|何|吗|几|多少|为啥|だれ|誰|どこ|いつ|なぜ|どう|ですか",
    re.IGNORECASE,
)
_TIME_WORDS = frozenset(
    """yesterday today tonight tomorrow last next ago recently since week weekend month year monday tuesday wednesday
    thursday friday saturday sunday january february march april june july august september october november
    december""".split()
)
_WORD_OR_YEAR = re.compile(r"\bmay \d|\d may\b|[a-z]+|\b\d{4}\b")
_TELLS_TIME_CJK = re.compile(
    r"昨天|今天|明天|前天|后天|上周|下周|上个月|下个月|去年|今年|明年|星期|周末|\d+[年月日号]|昨日|今日|明日|先週|来週|先月|来月|昨年|来年"
)
_TO_ASSISTANT = re.compile(
    r"\byou (?:said|told|suggest|recommend|mention|gave|give|advise|propose|explain)|\b(?:did|have|had) you\b|\byour (?:advice"
    r"|suggestion|recommendation|answer)|\bthe assistant\b|你(?:说|建议|推荐|提到|告诉|给)|助手|アシスタント",
    re.IGNORECASE,
)
_OF_USER = re.compile(r"\b(?:i|my|me|mine|myself)\b|\bthe user\b|\buser's\b|我|用户|私|僕|俺|ユーザー", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, read."""

    text: str  # trimmed, at most `READ_CHARS`
    terms: tuple[str, ...]  # of the keyword arm
    norms: tuple[str, ...]  # entities it names, in folded form
    names: Mapping[str, tuple[str, ...]]  # its capitalised words, each with its terms
    windows: tuple[tuple[datetime, datetime], ...]  # times that it names, [from, to)
    asks_when: bool
    looks_up: bool  # words to be found, and no question
    role: str | None  # whose words are wanted when nobody is named: user, assistant or either


def read(text: str, *, now: datetime) -> Question:
    """Read a query that is asked at `now` (aware), which relative times count from."""
    text = text.strip()[:READ_CHARS]
    names = {match[1]: tuple(lexemes.query(match[1])) for match in _NAME.finditer(text)}
    return Question(
        text=text,
        terms=tuple(lexemes.query(text)),
        norms=tuple(dict.fromkeys(entity.norm for entity in link.entities(text))),
        names={name: terms for name, terms in names.items() if terms},
        windows=tuple((span.from_, span.to) for span in dates.find(text, base=now)),
        asks_when=_WHEN.search(text) is not None,
        looks_up=_ASKS.search(text) is None,
        role=_role(text),
    )


def _role(text: str) -> str | None:
    if _TO_ASSISTANT.search(text):
        return "assistant"
    return "user" if _OF_USER.search(text) else None


def tells_time(text: str) -> bool:
    """Whether a memory says when something was."""
    folded = text.lower()
    words = _WORD_OR_YEAR.findall(folded)
    if not _TIME_WORDS.isdisjoint(words) or any(word[0].isdigit() or word[-1].isdigit() for word in words):
        return True
    return not folded.isascii() and _TELLS_TIME_CJK.search(folded) is not None


def only_asks(text: str) -> bool:
    """Whether a memory is a short question; in a long one something is told too."""
    return len(text) < SHORT_CHARS and text.rstrip().endswith(("?", "？"))


def for_embedding(question: Question, count: int, frequencies: Mapping[str, int]) -> str:
    """Return the query without the names that are common among `count` memories; `frequencies`: memories by term."""
    if count < COMMON_FROM:
        return question.text
    common = {
        name
        for name, terms in question.names.items()
        if all(frequencies.get(term, 0) > COMMON_SHARE * count for term in terms)
    }
    if not common:
        return question.text
    rest = _NAME.sub(lambda match: "" if match[1] in common else match[0], question.text)
    rest = re.sub(r"\s+", " ", rest).strip()
    return rest if re.search(r"\w", rest) else question.text


def named_actor(question: Question, actors: Collection[str]) -> str | None:
    """Return the one speaker of `actors` whom the question names by the whole name or a part of it; None if not one."""
    text = question.text.casefold()
    named = [actor for actor in dict.fromkeys(actors) if any(_mentions(text, part) for part in _parts(actor))]
    return named[0] if len(named) == 1 else None


def _parts(actor: str) -> list[str]:
    whole = actor.casefold().strip()
    return [whole, *(part for part in whole.split() if len(part) > 2)] if whole else []


def _mentions(text: str, name: str) -> bool:
    if name.isascii():
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
    return name in text  # Chinese and Japanese write no spaces
