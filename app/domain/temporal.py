"""What time changes in the order of hits: an addition for what fits the query's words of time, and newer before older.

Read from words alone, no model asked. Nothing is ever left out for its time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from app.domain import dates, lexemes
from app.domain.question import Question
from app.model import Hit, Memory, State
from app.store.lifecycle import Standing

BOOST = 0.2  #: most that is added to a score
SOON = timedelta(days=30)  #: what comes up within it is nearer than what comes later

LOOKED_AT = 50  #: best hits among which variants of one statement are looked for
SHORT_CHARS = 200  #: a longer text is no variant of another
SAME_WORDS, OTHER_WORDS = 3, 4  #: least that two variants share, most that differs; a Chinese character is a word here

_UPCOMING = re.compile(
    r"\b(?:upcoming|coming up|come up|scheduled|in the (?:near )?future|ahead of|what['’]s next|plan(?:s|ned|ning)? (?:for|to)|(?:my|our|"
    r"any|the|future|travel) plans|not happened yet|yet to come)\b|即将|接下来|未来|将要|马上要|快要|计划|安排",
    re.IGNORECASE,
)
_CURRENT = re.compile(
    r"\b(?:current|currently|right now|at the moment|at present|presently|these days|nowadays|now|still|latest|most recent|"
    r"newest|up[- ]to[- ]date|today)\b|现在|目前|如今|当前|眼下|最新|还在|仍然",
    re.IGNORECASE,
)
_AS_OF = re.compile(r"\bas (?:of|at)\b|截至|截止到?", re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z0-9À-ɏ'’_@.+-]+|[^\s\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Intent:
    """The time that a query asks about; an empty one asks about none."""

    now: datetime  # aware
    windows: tuple[tuple[datetime, datetime], ...] = ()  # [from, to)
    upcoming: bool = False
    current: bool = False
    as_of: datetime | None = None  # the end of the day, month or year as of which something is asked

    def __bool__(self) -> bool:
        """Whether the query says anything about time."""
        return bool(self.windows or self.upcoming or self.current or self.as_of)


def read(question: Question, *, now: datetime) -> Intent:
    """Return the time that a query asks about, counted from `now`. Pure."""
    text = question.text
    stated = _AS_OF.search(text)
    spans = dates.find(text, base=now) if stated else []
    as_of = next((span.to for span in spans if stated and span.end > stated.end()), None)
    return Intent(
        now=now,
        windows=question.windows,
        upcoming=_UPCOMING.search(text) is not None,
        current=as_of is None and _CURRENT.search(text) is not None,
        as_of=as_of,
    )


def order(hits: Sequence[Hit], question: Question, intent: Intent, standings: Mapping[UUID, Standing]) -> list[Hit]:
    """Return the hits best first, with scores that end at 1; of equal ones the first stays first. Pure.

    `standings` is needed for a query that asks as of a time.
    """
    boosts = _boosts(hits, intent, standings)
    lifted = [replace(hit, score=min(hit.score + boost, 1.0)) for hit, boost in zip(hits, boosts, strict=True)]
    # The order counts what is beyond 1.
    keys = [-(hit.score + boost) for hit, boost in zip(hits, boosts, strict=True)]
    ordered = [hit for _, hit in sorted(zip(keys, lifted, strict=True), key=lambda pair: pair[0])]
    if intent.as_of is not None:
        return ordered
    return _newest_variant_first(_replacement_first(ordered), question)


# The addition


def _boosts(hits: Sequence[Hit], intent: Intent, standings: Mapping[UUID, Standing]) -> list[float]:
    if not intent:
        return [0.0] * len(hits)
    recency = _recency([hit.memory for hit in hits])
    return [
        min(BOOST, BOOST * _fit(hit.memory, intent) + BOOST * _stands(hit.memory, intent, standings) * (0.5 + new / 2))
        for hit, new in zip(hits, recency, strict=True)
    ]


def _fit(memory: Memory, intent: Intent) -> float:
    """How much of what the memory tells lies in the time asked for, 0..1; 0 when it tells no time."""
    start = memory.happened_from
    if start is None:
        return 0.0
    end = max(memory.happened_to or start, start)
    share = max((_overlap(start, end, window) for window in intent.windows), default=0.0)
    if intent.upcoming and end > intent.now:
        soon = (start - intent.now) / SOON
        share = max(share, 0.5 + 0.5 / (1 + max(soon, 0.0)))
    return share


def _overlap(start: datetime, end: datetime, window: tuple[datetime, datetime]) -> float:
    low, high = window
    if start == end:
        return float(low <= start < high)
    return max(0.0, (min(end, high) - max(start, low)) / (end - start))


def _stands(memory: Memory, intent: Intent, standings: Mapping[UUID, Standing]) -> float:
    """Whether the memory was so at the time that "currently" or "as of" means."""
    if intent.as_of is not None:
        standing = standings.get(memory.id)
        replaced_at = standing.replaced_at if standing else None
        return float(memory.created_at < intent.as_of and (replaced_at is None or replaced_at >= intent.as_of))
    if not intent.current or memory.state is not State.ACTIVE:
        return 0.0
    return float(memory.happened_to is None or memory.happened_to > intent.now)


def _recency(memories: Sequence[Memory]) -> list[float]:
    """The place of each by its time, from 0 for the oldest to 1 for the newest."""
    times = sorted({memory.created_at for memory in memories})
    places = {at: place / max(len(times) - 1, 1) for place, at in enumerate(times)}
    return [places[memory.created_at] for memory in memories]


# Newer before older


def _replacement_first(hits: Sequence[Hit]) -> list[Hit]:
    """Sort memories that replaced each other among themselves, so that none stands behind one that it replaced."""
    found = {hit.memory.id: hit.memory for hit in hits}
    chains: dict[UUID, set[UUID]] = defaultdict(set)
    for memory in found.values():
        last, passed = memory, {memory.id}
        while last.replaced_by in found and last.replaced_by not in passed:
            last = found[last.replaced_by]
            passed.add(last.id)
        chains[last.id] |= passed
    return _newest_first(hits, chains.values())


def _newest_variant_first(hits: Sequence[Hit], question: Question) -> list[Hit]:
    """Put the newest of statements first that differ in one place which the query does not ask for.

    Two of a kind are equally good answers, and the newer one is more likely still so.
    """
    asked = set(question.terms)
    looked_at = [(hit.memory, _WORDS.findall(hit.memory.text[: SHORT_CHARS + 1])) for hit in hits[:LOOKED_AT]]
    short = [(memory, words) for memory, words in looked_at if len(memory.text) <= SHORT_CHARS]
    kinds: list[set[UUID]] = []
    for number, (one, words) in enumerate(short):
        kind = {one.id}
        for other, others in short[number + 1 :]:
            if one.scope_id == other.scope_id and _are_variants(words, others, asked):
                kind.add(other.id)
        if len(kind) > 1 and not any(kind & earlier for earlier in kinds):
            kinds.append(kind)
    return _newest_first(hits, kinds)


def _are_variants(one: list[str], other: list[str], asked: set[str]) -> bool:
    """Whether two texts are the same but for a few words in one place, none of which is asked for."""
    shorter = min(len(one), len(other))
    if shorter < SAME_WORDS or abs(len(one) - len(other)) > OTHER_WORDS:
        return False
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    tail = next((at for at in range(shorter - head) if one[-1 - at] != other[-1 - at]), shorter - head)
    inner = one[head : len(one) - tail], other[head : len(other) - tail]
    if head + tail < SAME_WORDS or not all(1 <= len(part) <= OTHER_WORDS for part in inner):
        return False
    return asked.isdisjoint(lexemes.analyse(" ".join(inner[0] + inner[1])))


def _newest_first(hits: Sequence[Hit], groups: Iterable[Collection[UUID]]) -> list[Hit]:
    """Sort the hits of each group among the places that they have: what stands before what was replaced, then the newest."""
    ordered = list(hits)
    for ids in groups:
        if len(ids) < 2:
            continue
        places = [place for place, hit in enumerate(ordered) if hit.memory.id in ids]
        scores = [ordered[place].score for place in places]
        newest = sorted(
            (ordered[place] for place in places),
            key=lambda hit: (hit.memory.state is State.ACTIVE, hit.memory.created_at),
            reverse=True,
        )
        for place, hit, score in zip(places, newest, scores, strict=True):
            ordered[place] = replace(hit, score=score)
    return ordered
