"""Finds quoted words in the text that they were quoted from, however they were retyped. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

#: Han, kana, hangul, Thai, Lao, Khmer, Burmese: words have no spaces between them, or endings that hang on.
_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_GAP = re.compile(r"\.{3,}|…+|\[\s*(?:\.{3}|…)\s*\]")  # where a quote leaves something out


def find(text: str, quote: str) -> tuple[int, int] | None:
    """Return where `quote` stands in `text`: first character and end, exclusive. None: nowhere.

    Only letters and digits are compared, without case, accents and width. A quote with "..." in it is found when its
    parts stand in `text` in order; the span then goes from the first to the last.
    """
    letters = _letters(text)
    first, at = -1, 0
    for part in _GAP.split(quote):
        wanted = _letters(part).text
        if not wanted:
            continue
        found = _whole(letters, wanted, at)
        if found < 0:
            return None
        first = found if first < 0 else first
        at = found + len(wanted)
    if first < 0:
        return None
    return letters.places[first], letters.places[at - 1] + 1


def same(one: str, other: str) -> bool:
    """Tell whether two texts have the same letters and digits, in the same order."""
    return _letters(one).text == _letters(other).text != ""


def _whole(letters: _Letters, wanted: str, start: int) -> int:
    """Return where `wanted` begins that is no part of a longer word or number; -1: nowhere."""
    text, edges = letters.text, letters.edges
    at = text.find(wanted, start)
    while at >= 0:
        if at in edges and at + len(wanted) in edges:
            return at
        at = text.find(wanted, at + 1)
    return -1


@dataclass(frozen=True, slots=True)
class _Letters:
    text: str  # folded letters and digits
    places: tuple[int, ...]  # which character of the whole text each comes from
    edges: frozenset[int]  # where words begin or end; every character of a script without spaces is a word


@lru_cache(maxsize=128)  # a window's messages; each is asked about for every fact of it
def _letters(text: str) -> _Letters:
    folded: list[str] = []
    places: list[int] = []
    edges = {0}
    for place, char in enumerate(text):
        pieces = [piece for piece in unicodedata.normalize("NFKD", char).casefold() if piece.isalnum()]
        if not pieces and not unicodedata.combining(char):
            edges.add(len(folded))
        if _SPACELESS.match(char):
            edges |= {len(folded), len(folded) + len(pieces)}
        folded += pieces
        places += [place] * len(pieces)
    return _Letters("".join(folded), tuple(places), frozenset(edges | {len(folded)}))
