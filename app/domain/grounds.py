"""Where in a window's messages a fact comes from, and what else stands around there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from app.domain import sentences, spans, support
from app.domain.conversation import Conversation
from app.domain.windows import Piece
from app.model import Message, Source

NEAR_CHARS = 4000  #: of a message beside the one that a fact comes from
_MOST = 0.8  # of the fact's words that a message has: a sentence with so many is the source, else the whole message


@dataclass(frozen=True, slots=True)
class Place:
    """The messages that a fact comes from, in order, and the part of each."""

    parts: tuple[tuple[Piece, Source], ...]


@dataclass(frozen=True)
class Grounds:
    """What the facts of one window may rest on."""

    conversation: Conversation
    pieces: Sequence[Piece]  # new messages of the window, as the model has seen them, numbered from 1
    earlier: Sequence[Message]  # shown before them
    noted: Sequence[str]  # texts of facts that were shown

    def place(self, fact: str, numbers: Sequence[int], quote: str) -> Place | None:
        """Return where a fact comes from, by the messages that it names and the words that it quotes. None: from nowhere.

        A quote has to stand in one of the messages named, or in any where none is named. Without a quote the sentences
        that tell most of the fact are looked for, in the same messages.
        """
        named = [self.pieces[number - 1] for number in numbers if 1 <= number <= len(self.pieces)]
        pieces = named or list(self.pieces)
        if any(char.isalnum() for char in quote):
            return self._quoted(fact, pieces, quote, named)
        told = {piece: support.closeness(fact, piece.text) for piece in pieces}
        if not named and told:
            pieces = [max(pieces, key=lambda piece: told[piece])]
        parts = [self._part(fact, piece) for piece in pieces if told[piece] > 0 or (named and _is_short(piece.text))]
        return Place(tuple(sorted(parts, key=_order))) if parts else None

    def _quoted(self, fact: str, pieces: Sequence[Piece], quote: str, named: Sequence[Piece]) -> Place | None:
        for piece in pieces:
            if (found := spans.find(piece.text, quote)) is not None:
                source = Source(piece.message.index, piece.start + found[0], piece.start + found[1])
                others = [p for p in named if p is not piece and support.closeness(fact, p.text) > 0]
                return Place(tuple(sorted([(piece, source), *(self._part(fact, p) for p in others)], key=_order)))
        return None

    def _part(self, fact: str, piece: Piece) -> tuple[Piece, Source]:
        """Return the sentence of a message that tells most of the fact; the whole of it where no sentence tells enough."""
        told = support.closeness(fact, piece.text)
        best = max(sentences.split(piece.text), key=lambda s: support.closeness(fact, s.text), default=None)
        if best is None or told == 0 or support.closeness(fact, best.text) < _MOST * told:
            return piece, piece.source
        return piece, Source(piece.message.index, piece.start + best.start, piece.start + best.end)

    def of(self, place: Place) -> support.Evidence:
        """Return what a fact from there is compared with."""
        own = tuple(
            support.Said(piece.text, self.conversation.said_at(piece.message))
            for piece in dict.fromkeys(piece for piece, _ in place.parts)
        )
        return support.Evidence(own, self._near(place), self._whole, free=self._free)

    def _near(self, place: Place) -> tuple[str, ...]:
        mine = {self.pieces.index(piece) for piece, _ in place.parts}
        beside = sorted({at + step for at in mine for step in (-1, 1)} - mine)
        near = [self.pieces[at].text for at in beside if 0 <= at < len(self.pieces)]
        if 0 in mine and self.earlier:
            near.append(self.earlier[-1].content)
        return tuple(text[:NEAR_CHARS] for text in near)

    @cached_property
    def _whole(self) -> support.Whole:
        talk = self.conversation
        setting = [message.content for message in talk.messages if message.role not in ("user", "assistant")]
        names = [message.name for message in (*talk.messages, *self.earlier) if message.name]
        known = [text for _, text in talk.existing]
        wishes = [talk.custom_instructions or "", talk.agent_custom_instructions or ""]
        texts = [piece.text for piece in self.pieces] + [message.content for message in self.earlier]
        return support.Whole((*texts, *setting, *dict.fromkeys(names), *talk.names, *known, *self.noted, *wishes))

    @property
    def _free(self) -> bool:
        # The application's own instructions outrank the rule on the language.
        return bool(self.conversation.custom_instructions or self.conversation.agent_custom_instructions)


def _order(part: tuple[Piece, Source]) -> tuple[int, int]:
    return part[1].message_index, part[1].start


def _is_short(text: str) -> bool:
    return sentences.length(text) <= support.SHORT_REPLY
