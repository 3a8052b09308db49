"""What is known that matters for a query, as one block of text for a prompt, within a budget of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from app.domain import categories, dates, decay, lexemes, pack, pins, quota, search, sentences
from app.domain.pack import Piece
from app.domain.question import Question
from app.model import Caller, Hit, Memory, Message, State
from app.providers import tokens
from app.runtime import Runtime
from app.store import sources as source_store
from app.store.sources import SourceSpan

HITS = 60  #: memories that are looked at; 40 and 80 did about as well on 191 questions
SAME = 0.8  #: share of their terms from which on two texts say the same
BESIDE = 5  #: best hits whose neighbours may be shown
BESIDE_WORTH = 0.2  #: of a neighbour, against its hit; a guess, never compared with another value
LEAST = 1e-4  #: worth of a memory whose score is nothing

#: What a memory of these tells is so for a long time, and is read first.
PROFILE = frozenset({"personal_details", "family", "professional_details", "health", "user_preferences"})

Format = Literal["markdown", "text"]


@dataclass(frozen=True, slots=True)
class Wish:
    """How the block is to be."""

    max_tokens: int  # of o200k_base
    format: Format = "markdown"
    dates: bool = True  # head each day with its date
    neighbours: bool = True  # also what was said just before and after


@dataclass(frozen=True, slots=True)
class Context:
    """The block, and what became of the memories that were found for it."""

    text: str
    tokens: int
    used: tuple[UUID, ...]  # memories in it, in their order
    neighbours: tuple[UUID, ...]  # messages in it that stand beside a memory
    folded: tuple[UUID, ...]  # memories that say what a better one says
    left_out: tuple[UUID, ...]  # memories for which there was no room, best first


async def of(rt: Runtime, caller: Caller, query: search.Query, wish: Wish) -> Context:
    """Return what fits. It counts as one search; the memories that are used count as found.

    Raises: as a search.
    """
    await quota.spend(rt, caller.project, "searches")
    trail = await search.follow(rt, caller, replace(query, top_k=HITS))
    kept, folded = fold(trail.hits)
    async with rt.db.acquire(caller.project.id) as conn:
        found = await source_store.of(conn, caller.project.id, [hit.memory.id for hit in kept], shown=0)
        whole = {memory_id: spans[0] for memory_id, spans in found.items() if _is_whole(spans)}
        beside: Mapping[UUID, Sequence[Message]] = {}
        if wish.neighbours:
            best = [whole[hit.memory.id].message_id for hit in kept[:BESIDE] if _reaches(caller, whole, hit)]
            beside = await source_store.around(conn, caller.project.id, best)
    said = {span.message_id for spans in found.values() for span in spans}  # what a memory was made from says it twice
    beside = {of: [message for message in around if message.id not in said] for of, around in beside.items()}
    made = await asyncio.to_thread(_built, kept, whole, beside, trail.question, wish)
    if query.decay:
        decay.note(rt, caller.project.id, made.used)
    return replace(made, folded=tuple(folded))


def fold(hits: Sequence[Hit]) -> tuple[list[Hit], list[UUID]]:
    """Return the hits that say something new, best first, and the ids of the others. Pure."""
    kept: list[tuple[Hit, frozenset[str]]] = []
    folded: list[UUID] = []
    for hit in hits:
        terms = frozenset(lexemes.analyse(hit.memory.text))
        if any(_same(terms, other) for one, other in kept if one.memory.actor == hit.memory.actor):
            folded.append(hit.memory.id)
        else:
            kept.append((hit, terms))
    return [hit for hit, _ in kept], folded


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts have nearly the same terms; a number that only one has makes them differ."""
    if not one or len(one & other) < SAME * len(one | other):
        return False
    return not any(character.isdigit() for term in one ^ other for character in term)


def _is_whole(spans: Sequence[SourceSpan]) -> bool:
    return len(spans) == 1 and spans[0].start == 0 and spans[0].end == spans[0].length


def _reaches(caller: Caller, whole: Mapping[UUID, SourceSpan], hit: Hit) -> bool:
    """Whether the hit is a raw turn, said where the key may read."""
    span = whole.get(hit.memory.id)
    return span is not None and span.owners == hit.memory.owners and pins.allows(caller.pins, span.owners)


def _built(
    hits: Sequence[Hit],
    whole: Mapping[UUID, SourceSpan],
    beside: Mapping[UUID, Sequence[Message]],
    question: Question,
    wish: Wish,
) -> Context:
    writer = _Writer(question, wish)
    pieces = [writer.memory(hit, whole.get(hit.memory.id)) for hit in hits]
    known = {piece.text for piece in pieces}
    for hit in hits[:BESIDE]:
        span = whole.get(hit.memory.id)
        for message in beside.get(span.message_id, ()) if span else ():
            piece = writer.neighbour(message, hit)
            if piece.text and piece.text not in known:
                known.add(piece.text)
                pieces.append(piece)
    text, lines = pack.fit(pieces, question.terms, wish.max_tokens, mark=writer.mark)
    used = [line.piece.id for line in lines if line.piece.memory]
    return Context(
        text=text,
        tokens=tokens.count(text),
        used=tuple(used),
        neighbours=tuple(line.piece.id for line in lines if not line.piece.memory),
        folded=(),
        left_out=tuple(hit.memory.id for hit in hits if hit.memory.id not in set(used)),
    )


class _Writer:
    """Makes lines of memories, in the language of the question."""

    def __init__(self, question: Question, wish: Wish) -> None:
        self._question, self._wish = question, wish
        self._chinese = sentences.is_chinese(question.text)
        self.mark = "## " if wish.format == "markdown" else ""

    def memory(self, hit: Hit, turn: SourceSpan | None) -> Piece:
        """Return the line of a memory; `turn`: the message that it is a copy of."""
        memory = hit.memory
        first = turn is None and _is_profile(memory)
        speaker = (memory.actor or memory.role) if turn else None
        return Piece(
            id=memory.id,
            text=self._text(memory.text, memory.created_at),
            speaker=_speaker(speaker, memory.text),
            at=memory.created_at,
            position=turn.position if turn else memory.position,
            worth=max(hit.score, LEAST),
            heading=self._profile() if first else self._day(memory.created_at),
            first=first,
            mark="" if memory.state is State.ACTIVE else self._superseded(),
        )

    def neighbour(self, message: Message, hit: Hit) -> Piece:
        """Return the line of a message that was said beside a hit."""
        assert message.id is not None
        assert message.said_at is not None
        return Piece(
            id=message.id,
            text=self._text(message.content, message.said_at),
            speaker=_speaker(message.name or message.role, message.content),
            at=hit.memory.created_at,
            position=message.index,
            worth=BESIDE_WORTH * max(hit.score, LEAST),
            heading=self._day(hit.memory.created_at),
            memory=False,
        )

    def _text(self, text: str, said_at: datetime) -> str:
        if self._wish.dates and self._question.asks_when:
            text = dates.resolve(text, base=said_at)
        return pack.one_line(text)

    def _day(self, at: datetime) -> str | None:
        if not self._wish.dates:
            return None
        at = at.astimezone(UTC)
        return f"{at.year}年{at.month}月{at.day}日" if self._chinese else f"{at.day} {at:%B %Y}"

    def _profile(self) -> str:
        return "概况" if self._chinese else "Profile"

    def _superseded(self) -> str:
        return "（已过时）" if self._chinese else " (no longer so)"


def _speaker(name: str | None, text: str) -> str | None:
    """Return the name to put in front, unless the text begins with it."""
    shown = pack.one_line(name) if name else ""
    return shown if shown and not text.lstrip().startswith((f"{shown}:", f"{shown}：")) else None


def _is_profile(memory: Memory) -> bool:
    """Whether the memory tells what somebody is or likes, and not what happened."""
    if memory.happened_from is not None:
        return False
    found = memory.categories if memory.categories is not None else categories.by_words(memory.text)
    return not PROFILE.isdisjoint(found)
