"""Where the sentences of a message begin and end, without code, logs and markup. English, Chinese, and harmless elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.domain import machine

LONGEST = 400  #: characters; a longer run of text is cut at a comma or a space

_CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORDS = re.compile(r"[^\W\d_](?:[^\W_]|['’])*|\d+")
_STOP = re.compile(r"[.!?。！？…\n]")
_TAIL = "\"'”’)）】」』*_~～ \t"
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st jr sr vs etc approx dept est fig no vol ave blvd rd mt inc ltd co corp gen col sgt capt rev hon "
    "jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e a.m p.m cf al u.s u.k ph.d min max".split()
)
_BULLET = re.compile(
    r"[ \t]{0,16}(?:[-*•·+]|#{1,6}|\(?\d{1,3}[.)、]|[a-zA-Z][)])[ \t]{1,8}|[ \t]{0,16}\d{1,2}、|[ \t]{1,16}"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a message: `message[start:end]`, with the white space of wrapped lines made single."""

    text: str
    start: int
    end: int
    line: int  # sentences of one line share it
    bullet: bool = False  # the line is an item of a list


def is_chinese(text: str) -> bool:
    """Tell whether `text` is to be read with the Chinese rules: Han characters carry it, and no kana or hangul."""
    han = len(_CJK.findall(text))
    if not han or _KANA_HANGUL.search(text):
        return False
    return han * 2 >= len(re.findall(r"[A-Za-z]{2,}", text))


def length(text: str) -> float:
    """Return how many words `text` has; two Han characters count as one, as do four of a script without spaces."""
    words = _WORDS.findall(_CJK.sub(" ", text))
    return sum(max(1.0, len(w) / 4) if w[0] > "\u0e00" else 1.0 for w in words) + len(_CJK.findall(text)) / 2


def split(text: str) -> list[Sentence]:
    """Return the sentences of `text` in order; marks of lists and headings do not belong to them."""
    found: list[Sentence] = []
    clean = machine.prose(text)
    for number, (start, end) in enumerate(_lines(clean)):
        head = _BULLET.match(clean, start, end)
        mark = head.group().strip() if head else ""
        bullet = bool(mark) and not mark.startswith("#")
        begin = head.end() if head else start
        for a, b in _breaks(clean, begin, end):
            found += [Sentence(_plain(clean[x:y]), x, y, number, bullet) for x, y in _cut(clean, a, b)]
    return [s for s in found if s.text]


def _plain(text: str) -> str:
    """Return `text` with single spaces and without marks of bold type."""
    return " ".join(text.replace("**", "").replace("__", "").split())


def _lines(text: str) -> list[tuple[int, int]]:
    """Return the spans of lines; a line that was wrapped (long, goes on in lower case) is one with the next."""
    spans: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if (
            spans
            and line[:1].islower()
            and spans[-1][1] - spans[-1][0] >= 60
            and text[spans[-1][1] - 1] not in ".!?。！？:："
        ):
            last = spans.pop()
            spans.append((last[0], end))
        elif line.strip():
            spans.append((start, end))
        start = end + 1
    return spans


def _breaks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans, begin, at = [], start, start
    while match := _STOP.search(text, at, end):
        at = match.end()
        if match.group() == "\n" or (match.group() == "." and not _ends(text, match.start(), begin, end)):
            continue
        while at < end and (text[at] in _TAIL or _STOP.match(text, at) or ord(text[at]) > 0x1F000):
            at += 1
        if match.group() == "…" and at < end and text[at].islower():
            continue
        if (
            match.group() in "!?"
            and at < end
            and text[at].isascii()
            and text[at].isalnum()
            and not text[at - 1].isspace()
        ):
            continue  # inside a link or a word such as "Yahoo!s"
        spans.append((begin, at))
        begin = at
    spans.append((begin, end))
    return [
        (a + len(text[a:b]) - len(text[a:b].lstrip()), b - len(text[a:b]) + len(text[a:b].rstrip()))
        for a, b in spans
        if text[a:b].strip()
    ]


def _ends(text: str, dot: int, begin: int, end: int) -> bool:
    """Tell whether the full stop at `dot` ends a sentence, and not an abbreviation, an initial or a number."""
    after = text[dot + 1] if dot + 1 < end else " "
    if not (after.isspace() or after in _TAIL or after in ".!?" or _CJK.match(after)):
        return False
    word_start = max(begin, dot - 12)
    word = text[word_start:dot].split(" ")[-1].lstrip("(\"'“‘")
    if after == "." or (dot and text[dot - 1] == "."):
        return text[dot - 1 : dot] == "." and after != "."
    if word.lower() in ("a.m", "p.m", "u.s", "u.k", "etc", "no", "inc", "ltd", "co"):
        following = text[dot + 1 : end].lstrip()[:1]
        return word.lower() == "no" and not following.isdigit() or following.isupper()
    if len(word) == 1 and word.isalpha() and word.isupper() and word != "I" and word.isascii():
        return False
    return word.lower() not in _ABBREVIATIONS


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut an overlong span where a comma, or else a space, allows it."""
    spans = []
    while end - start > LONGEST:
        window = text[start : start + LONGEST]
        at = max(window.rfind(mark) for mark in (", ", "; ", "，", "；", "、"))
        if at < LONGEST // 3:
            at = window.rfind(" ")
        if at < LONGEST // 3:
            at = LONGEST - 1
        spans.append((start, start + at + 1))
        start += at + 1
        while start < end and text[start].isspace():
            start += 1
    spans.append((start, end))
    return spans
