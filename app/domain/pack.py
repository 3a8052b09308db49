"""Fits the most telling sentences of many texts into a budget of tokens. Pure.

A sentence is worth the score of its text, times what its words tell that nothing chosen before has told, for each token
that it costs. So duplicates, greetings and fillers come last, and one long text does not crowd out ten short ones.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from app.domain import lexemes
from app.providers import tokens

# Chosen by hand on 191 development questions, among some eighteen settings that differed by a point or less around these.
REPEATED = 0.3  #: worth of a word that was told before, against a new one
ASKED = 0.5  #: worth of a word of the question, beside that
LONGEST_TOKENS = 60  #: a longer sentence is cut: it would be taken or left as a whole

_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[”’」』）]*\s*")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # whatever could end a line
_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # what would turn the lines behind it around
#: Words that keep a conversation going and tell nothing.
_FILLERS = frozenset(
    lexemes.analyse(
        "hey hi hello thanks thank wow yeah yes yep ok okay oh cool great nice awesome amazing glad sure haha lol bye well "
        "really definitely absolutely totally 你好 您好 谢谢 嗯 哈哈 好的 对了 哦"
    )
)
GAP = " … "  #: stands for sentences that were left out between two


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that may go into the block, as one line of it."""

    id: UUID
    text: str  # one line
    speaker: str | None  # put in front of it
    at: datetime  # its place in the order; of equal ones the lower `position` comes first
    position: int
    worth: float  # above 0
    heading: str | None  # that its line stands under
    first: bool = False  # under the first heading, whatever its time
    mark: str = ""  # put behind it
    memory: bool = True  # False: a message beside one


@dataclass(slots=True)
class Line:
    """What was taken of a piece."""

    piece: Piece
    spans: list[tuple[int, int]] = field(default_factory=list)  # characters of its text

    def __str__(self) -> str:
        """Return the line without what marks it as one."""
        parts: list[str] = []
        last = None
        for start, end in sorted(self.spans):
            if parts and start == last:
                parts[-1] += self.piece.text[start:end]
            else:
                parts.append(self.piece.text[start:end])
            last = end
        said = GAP.join(part.strip() for part in parts)
        return f"{self.piece.speaker}: {said}{self.piece.mark}" if self.piece.speaker else said + self.piece.mark


def one_line(text: str) -> str:
    """Return `text` without anything that ends a line, so that it can forge no line of a block."""
    return _SPACE.sub(" ", _TURNING.sub("", text)).strip()


def fit(pieces: Sequence[Piece], asked: Collection[str], max_tokens: int, *, mark: str) -> tuple[str, list[Line]]:
    """Return a block of at most `max_tokens`, and its lines in their order.

    `pieces`: best first. `asked`: terms of the question. `mark`: what headings begin with.
    """
    chosen = _choose(pieces, frozenset(asked), max_tokens, mark)
    while True:
        lines = _in_order(chosen)
        block = _written(lines, mark)
        if not lines or tokens.count(block) <= max_tokens:
            return block, lines
        # Rarely, parts have more tokens together than apart: the one that was chosen last goes.
        chosen.pop()


@dataclass(frozen=True, slots=True)
class _Unit:
    piece: int
    start: int
    end: int
    terms: frozenset[str]
    size: int  # tokens, alone


def _choose(pieces: Sequence[Piece], asked: frozenset[str], max_tokens: int, mark: str) -> list[tuple[Piece, _Unit]]:
    """Take the unit that is worth most for its tokens, again and again, until nothing more fits."""
    units = [unit for number, piece in enumerate(pieces) for unit in _units(number, piece, max_tokens)]
    holders = Counter(term for terms in _terms_by_piece(units).values() for term in terms)
    rarity = {term: math.log((len(pieces) + 1) / (count + 0.5)) + 0.1 for term, count in holders.items()}
    told: set[str] = set(asked)
    begun: set[int] = set()
    headed: set[str | None] = {None}
    fronts = [tokens.count(f"\n- {piece.speaker or ''}{piece.mark}:") for piece in pieces]
    headings = {piece.heading: tokens.count(f"\n{mark}{piece.heading}") for piece in pieces}

    def cost(unit: _Unit) -> int:
        piece = pieces[unit.piece]
        front = 0 if unit.piece in begun else fronts[unit.piece]
        return unit.size + front + (0 if piece.heading in headed else headings[piece.heading])

    def worth(unit: _Unit) -> float:
        new = sum(rarity[term] * (REPEATED if term in told else 1.0) for term in unit.terms)
        wanted = sum(rarity[term] for term in unit.terms & asked)
        return pieces[unit.piece].worth * (new + ASKED * wanted) / cost(unit)

    room, chosen = max_tokens, []
    heap = [(-worth(unit), number) for number, unit in enumerate(units)]
    heapq.heapify(heap)
    while heap:
        _, number = heapq.heappop(heap)
        unit = units[number]
        now = -worth(unit)
        if heap and now > heap[0][0]:  # it lost worth since it was put there
            heapq.heappush(heap, (now, number))
            continue
        if now < 0 and cost(unit) <= room:
            room -= cost(unit)
            told |= unit.terms
            begun.add(unit.piece)
            headed.add(pieces[unit.piece].heading)
            chosen.append((pieces[unit.piece], unit))
    return chosen


def _units(number: int, piece: Piece, max_tokens: int) -> list[_Unit]:
    made, at = [], 0
    for end in [*(match.end() for match in _END.finditer(piece.text)), len(piece.text)]:
        for part in tokens.split(piece.text[at:end], max(1, min(LONGEST_TOKENS, max_tokens))):
            size = tokens.count(f" {part.strip()}")
            made.append(_Unit(number, at, at + len(part), frozenset(lexemes.analyse(part)) - _FILLERS, size))
            at += len(part)
    return made


def _terms_by_piece(units: Sequence[_Unit]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for unit in units:
        found.setdefault(unit.piece, set()).update(unit.terms)
    return found


def _in_order(chosen: Sequence[tuple[Piece, _Unit]]) -> list[Line]:
    lines: dict[UUID, Line] = {}
    for piece, unit in chosen:
        lines.setdefault(piece.id, Line(piece)).spans.append((unit.start, unit.end))
    return sorted(
        lines.values(), key=lambda line: (not line.piece.first, line.piece.at, line.piece.position, line.piece.id)
    )


def _written(lines: Sequence[Line], mark: str) -> str:
    block: list[str] = []
    heading = None
    for line in lines:
        if line.piece.heading is not None and line.piece.heading != heading:
            heading = line.piece.heading
            block.append(f"{mark}{heading}")
        block.append(f"- {line}")
    return "\n".join(block)
