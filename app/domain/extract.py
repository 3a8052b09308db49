"""Messages → facts, by a model where there is one, else by rules."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any
from uuid import UUID

from app import errors, log
from app.domain import grounds, prompts, rules, support, windows
from app.domain.conversation import Conversation, Found
from app.model import Fact, Message, Source
from app.providers import llm as chats

__all__ = ["Conversation", "facts", "from_json", "to_json"]

MAX_FACTS = 40  # of one window; more is a model that repeats itself, or a message that made it
MAX_FACT_CHARS = 2000  # a fact is a sentence or two; a longer one is refused
EARLIER_MESSAGES = 10  # shown before a window: from the scope's past, then from the windows before

_NUMBER = re.compile(r"\d{1,6}", re.ASCII)
_DAYS = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:[T ]\S*)?", re.ASCII)
_YEARS = range(1000, 9999)  # beyond these a time zone's offset may leave the calendar

#: Why an item of a model's answer is no fact, as the event tells it.
REFUSALS = {
    "wrong_shape": "it has no text",
    "too_long": f"it is longer than {MAX_FACT_CHARS} characters",
    "too_many": f"the answer has {MAX_FACTS} others",
    "repeated": "the answer has it already",
    "not_said": "the words that it quotes are not in the message that it names, or no message tells any of it",
    "unsupported": "its messages have too few of its words",
    "number": "a number in it stands nowhere in the conversation",
    "name": "a name in it stands nowhere in the conversation",
    "negation": "it drops or adds a not",
    "language": "it is in another language than was asked for",
    "order": "its message orders it to be written, instead of telling it",
}

_log = log.get("memoryd.extract")


async def facts(llm: chats.ChatModel | None, conversation: Conversation, *, window_tokens: int) -> Found:
    """Return the facts of the conversation's new messages, in their order, each text once.

    No facts are an answer: nothing is worth remembering. A failure is never one.
    Raises: ModelUnavailable, ModelRefused.
    """
    if llm is None:
        return Found(_distinct(await asyncio.to_thread(rules.facts, conversation)))
    spoken = [message for message in conversation.messages if _is_source(message)]
    found = Found([])
    heard = list(conversation.earlier)
    for window in await asyncio.to_thread(windows.cut, spoken, window_tokens):
        noted = tuple(fact.text for fact in found.facts)
        found += await _read(llm, conversation, _Window(window, tuple(heard), noted))
        heard += [replace(piece.message, content=piece.text) for piece in window]
    return replace(found, facts=_distinct(found.facts))


def to_json(found: Iterable[Fact]) -> list[dict[str, Any]]:
    """Return the facts as plain JSON values, for an event's checkpoint."""
    return [
        asdict(fact)
        | {
            "linked_ids": [str(id_) for id_ in fact.linked_ids],
            "replaces": [str(id_) for id_ in fact.replaces],
            "same": [str(id_) for id_ in fact.same],
            "sources": [[source.message_index, source.start, source.end] for source in fact.sources],
            "happened_from": fact.happened_from and fact.happened_from.isoformat(),
            "happened_to": fact.happened_to and fact.happened_to.isoformat(),
        }
        for fact in found
    ]


def from_json(rows: Iterable[dict[str, Any]]) -> list[Fact]:
    """Return the facts that `to_json` wrote."""
    return [
        Fact(
            text=row["text"],
            role=row["role"],
            actor=row["actor"],
            sources=tuple(Source(*source) for source in row["sources"]),
            linked_ids=tuple(map(UUID, row["linked_ids"])),
            replaces=tuple(map(UUID, row.get("replaces", ()))),  # absent in what an older release wrote
            same=tuple(map(UUID, row.get("same", ()))),
            happened_from=_instant(row["happened_from"]),
            happened_to=_instant(row["happened_to"]),
        )
        for row in rows
    ]


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


# One window


@dataclass(frozen=True, slots=True)
class _Window:
    pieces: tuple[windows.Piece, ...]
    earlier: tuple[Message, ...]
    noted: tuple[str, ...]  # texts of the facts of the windows before

    @property
    def shown(self) -> tuple[Message, ...]:
        return self.earlier[-EARLIER_MESSAGES:]

    def halves(self) -> tuple[_Window, _Window]:
        middle = len(self.pieces) // 2
        first, second = self.pieces[:middle], self.pieces[middle:]
        heard = tuple(replace(piece.message, content=piece.text) for piece in first)
        return replace(self, pieces=first), replace(self, pieces=second, earlier=self.earlier + heard)


async def _read(llm: chats.ChatModel, conversation: Conversation, window: _Window) -> Found:
    """Ask the model about one window; about each half of it when the answer for the whole is too long to end."""
    prompt = prompts.user(conversation, window.pieces, earlier=window.shown, noted=window.noted)
    try:
        answer = await llm.complete_json(
            prompts.system(conversation), prompt, schema=prompts.SCHEMA, name="extracted_facts"
        )
    except errors.ModelRefused as error:
        if error.details.get("reason") != "cut" or len(window.pieces) == 1:
            raise
        first, second = window.halves()
        return await _read(llm, conversation, first) + await _read(llm, conversation, second)
    return await asyncio.to_thread(_facts, answer, conversation, window)


def _facts(answer: Any, conversation: Conversation, window: _Window) -> Found:
    """Return the items of an answer that can be read and that the messages support; count the others by reason.

    Raises: ModelRefused when there are items and none of them is usable: only an empty list says "nothing".
    """
    items = answer.get("facts") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise errors.ModelRefused("The language model's answer has no list of facts.", reason="wrong_shape")
    evidence = grounds.Grounds(conversation, window.pieces, window.shown, window.noted)
    kept: dict[str, Fact] = {}
    refused: Counter[str] = Counter()
    for item in items:
        found = "too_many" if len(kept) == MAX_FACTS else _fact(item, conversation, evidence)
        if isinstance(found, str):
            refused[found] += 1
        elif kept.setdefault(found.text, found) is not found:
            refused["repeated"] += 1
    if items and refused["wrong_shape"] == len(items):
        raise errors.ModelRefused("No fact in the language model's answer has the right shape.", reason="wrong_shape")
    if refused:
        _log.warning("facts_refused", kept=len(kept), **refused)
    return Found(list(kept.values()), refused=dict(refused))


def _fact(item: Any, conversation: Conversation, evidence: grounds.Grounds) -> Fact | str:
    """Return the fact of an item, or the reason why there is none: a key of `REFUSALS`."""
    fields = {"text": item} if isinstance(item, str) else item
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
        return "wrong_shape"
    text = " ".join(fields["text"].replace("\0", "").split())
    if not text:
        return "wrong_shape"
    if len(text) > MAX_FACT_CHARS:
        return "too_long"
    quote = fields.get("quote")
    place = evidence.place(text, _numbers(fields.get("messages")), quote if isinstance(quote, str) else "")
    if place is None:
        return "not_said"
    told = evidence.of(place)
    reason = support.reason(text, told, english=not conversation.multilingual)
    if reason is not None:
        return reason
    happened = _days(fields.get("date"), conversation.timezone)
    if happened[0] is not None and happened[1] is not None and not support.is_dated(happened[0], happened[1], told):
        happened = (None, None)
    names = {piece.message.name for piece, _ in place.parts}
    return Fact(
        text=text,
        role=_role(fields.get("speaker"), place, conversation),
        actor=names.pop() if len(names) == 1 else None,
        sources=tuple(source for _, source in place.parts),
        linked_ids=_existing(fields.get("linked"), conversation),
        replaces=_existing(fields.get("replaces"), conversation),
        same=_existing(fields.get("same"), conversation),
        happened_from=happened[0],
        happened_to=happened[1],
    )


def _existing(value: Any, conversation: Conversation) -> tuple[UUID, ...]:
    """Return the stored memories whose numbers are in `value`; what is no such number is made up."""
    known = conversation.existing
    return tuple(known[at][0] for at in _numbers(value) if at < len(known))


def _role(claimed: Any, place: grounds.Place, conversation: Conversation) -> str:
    """Return whose statement a fact is. Its messages know better than the model, where they are of one speaker."""
    roles = {piece.message.role for piece, _ in place.parts}
    if len(roles) == 1:
        return roles.pop()
    if claimed in prompts.SPEAKERS:
        return str(claimed)
    return "assistant" if conversation.agent_only else "user"


def _numbers(value: Any) -> list[int]:
    """Return the distinct whole numbers of a list, also of those written as text; what else is in it is made up."""
    items = value if isinstance(value, list) else [value]
    written = (str(item) for item in items if isinstance(item, int | str) and not isinstance(item, bool))
    return list(dict.fromkeys(int(text.strip()) for text in written if _NUMBER.fullmatch(text.strip())))


def _days(value: Any, zone: tzinfo) -> tuple[datetime | None, datetime | None]:
    """Return the start of the first day and the end of the last, exclusive. Nones: no date, or none that can be read."""
    if not isinstance(value, str):
        return None, None
    first, _, last = value.strip().partition("/")
    spans = [span for part in (first, last or first) if (span := _span(part.strip())) is not None]
    if len(spans) != 2 or spans[0][0] >= spans[1][1]:
        return None, None
    start, end = (datetime.combine(day, time.min, tzinfo=zone) for day in (spans[0][0], spans[1][1]))
    return start, end


def _span(text: str) -> tuple[date, date] | None:
    """Return the first day of a day, month or year, and the day after its last."""
    match = _DAYS.fullmatch(text)
    if match is None or int(match[1]) not in _YEARS:
        return None
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    try:
        start = date(year, month, day)
    except ValueError:
        return None
    if match[3]:
        return start, start + timedelta(days=1)
    if match[2]:
        return start, date(year + month // 12, month % 12 + 1, 1)
    return start, date(year + 1, 1, 1)


def _is_source(message: Message) -> bool:
    return message.role in prompts.SPEAKERS and bool(message.content.strip())


def _distinct(found: Iterable[Fact]) -> list[Fact]:
    first: dict[str, Fact] = {}
    for fact in found:
        first.setdefault(fact.text, fact)
    return list(first.values())
