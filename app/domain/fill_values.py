"""What one memory says for one plain field, in the field's type. Pure; no model.

A value is what stands behind "is" where the words before it name the field ("Her favourite food is sushi." for
favourite_food), else the memory as it is: rules do not shorten what they do not understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from app.domain import dates
from app.domain import fill_words as words
from app.model import Memory

_COPULA = re.compile(
    r"(?P<subject>[^.!?。！？]{2,120}?)(?:\s(?:is|are|was|were|will be|has been|=)\s|\s?[:：=]\s?|(?<=[\u4e00-\u9fff])(?:是|为|叫做?)(?=\S))"
    r"(?P<value>.{1,300}?)[.!。！]*",
    re.DOTALL,
)
_LIST = re.compile(r"\s*(?:,\s*(?:and|or)\s|,|;|，|、|；|\s(?:and|or)\s|和|以及|与)\s*")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])[-+]?\d+(?:\.\d+)?")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"https?://[^\s<>\"，。）)]+")
_NOT = re.compile(
    r"\b(?:not|no|never|none|without|neither|nor|cannot|stopped|quit)\b|n['’]t\b|[不没無无未别]", re.IGNORECASE
)
_SMALL = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}  # fmt: skip
_WORD_NUMBER = re.compile(rf"\b(?:{'|'.join(_SMALL)})\b", re.IGNORECASE)
#: Fields of the memory itself, by the names that schemas give them.
_OWN = {
    "id": "id", "memory_id": "id", "memory": "text", "text": "text", "content": "text", "fact": "text", "note": "text",
    "created_at": "created_at", "timestamp": "created_at", "date": "created_at", "updated_at": "updated_at",
    "categories": "categories", "category": "categories", "user_id": "user_id", "agent_id": "agent_id",
    "app_id": "app_id", "run_id": "run_id", "metadata": "metadata",
}  # fmt: skip


def strings(memory: Memory, wanted: frozenset[str]) -> Iterator[str]:
    """Yield what the memory says for a field whose name has the words `wanted` (keys), the shortest form first."""
    value = _after_copula(memory.text, wanted)
    if value:
        yield value
    yield memory.text


def listed(memory: Memory, wanted: frozenset[str]) -> list[str]:
    """Return what the memory lists for such a field; else the memory itself, as one entry."""
    value = _after_copula(memory.text, wanted)
    if not value:
        return [memory.text]
    return [part.strip() for part in _LIST.split(value) if part.strip()]


def _after_copula(text: str, wanted: frozenset[str]) -> str | None:
    match = _COPULA.fullmatch(text.strip())
    if match is None or not wanted:
        return None
    if not wanted <= words.keys(match["subject"]):
        return None
    value = match["value"].strip().strip("\"“”'")
    return value or None


def numbers(memory: Memory) -> Iterator[float | int]:
    """Yield the numbers in the memory, in order, without those of its dates; whole ones as int."""
    text = memory.text
    for span in reversed(dates.find(text, base=memory.created_at)):
        text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    for match in sorted([*_NUMBER.finditer(text), *_WORD_NUMBER.finditer(text)], key=lambda found: found.start()):
        word = match[0].replace(",", "").lower()
        number = _SMALL.get(word)
        yield number if number is not None else float(word) if "." in word else int(word)


def moments(memory: Memory) -> Iterator[datetime]:
    """Yield the times that the memory tells of, then when it happened, if that is known."""
    for span in dates.find(memory.text, base=memory.created_at):
        yield span.from_
    if memory.happened_from is not None:
        yield memory.happened_from


def emails(memory: Memory) -> list[str]:
    """Return the e-mail addresses in the memory."""
    return _EMAIL.findall(memory.text)


def urls(memory: Memory) -> list[str]:
    """Return the web addresses in the memory."""
    return [found.rstrip(".,;:!?") for found in _URL.findall(memory.text)]


def holds(memory: Memory) -> bool:
    """Whether the memory says that something is so: it has no word of denial."""
    return _NOT.search(memory.text) is None


def mentions(memory: Memory, choice: str) -> bool:
    """Whether the memory names one of the values that a field allows, written in any case, `_` and `-` as spaces."""
    text, choice = (re.sub(r"[\s_-]+", " ", part.casefold()).strip() for part in (memory.text, choice))
    if choice.isascii():
        return bool(choice) and re.search(rf"(?<!\w){re.escape(choice)}(?!\w)", text) is not None
    return choice in text


def own(memory: Memory, name: str) -> Any:
    """Return the part of the memory that a field of this name means, as JSON has it; None: the name means none."""
    part = _OWN.get(name.lower())
    if part is None:
        return None
    value = getattr(memory.owners, part, None) if part.endswith("_id") else getattr(memory, part)
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value if isinstance(value, str | dict | None) else str(value)
