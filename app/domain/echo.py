"""Memories and prompts that come back in a conversation are not what anybody tells, so no fact is made of them.

An application puts recalled memories into a prompt, a tool prints them, an assistant repeats them; then it adds the
conversation. What is a stored text, in whatever list, quotes or JSON it stands, is blanked out before facts are looked for.
So are lists under a heading that says that they are memories, and prompts that tell an assistant who it is.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from app.domain import dedupe, sentences
from app.model import Message, Owners
from app.runtime import Runtime
from app.store import recalled

MOST = 2000  #: texts of one add that are looked up
_SHORT_WORDS = 3  # a plain line of fewer is a reply like any other
_LONG_CHARS = 2000  # a longer line is no memory in a list

_BULLET = re.compile(r"^\s*(?:(?:[-*•·+>–—]|\(?\d{1,3}[.)、:：\]]|#{1,6}|\[[ xX]?\])\s*)+")
_TAG = re.compile(r"^\s*(?:\[[^\]\n]{1,60}\]|\([^)\n]{1,60}\)|<[^>\n]{1,60}>)\s*[:：-]?\s*")
_LABEL = re.compile(
    r"^\s*\**(?:(?:user|stored|recalled|relevant|known)\s+)?(?:memory|memories|fact|note|记忆|事实|已知)\**\s*(?:#?\d{1,4})?\s*(?:\([^)\n]{0,60}\))?\s*\**"
    r"[:：=-]\**\s*",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\s*(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\]|[-–—|,;]\s*(?:score|relevance|相关)\D{0,5}[\d.]+%?)\s*$",
    re.IGNORECASE,
)
_QUOTES = "\"'“”‘’「」『』`*_ \t"
_SAID = re.compile(
    r"^\s*(?:(?:yes|ok|okay|sure|well|right|of course)[,.!]?\s+)?(?:(?:i|we)\s+(?:also\s+)?(?:remember|recall|know|see|noted?|found|have noted)(?:\s+from\s+[^,:]{1,40})?"
    r"|(?:as\s+)?you(?:['’]ve|\s+have)?\s+(?:told me|mentioned|said)|from\s+(?:my|your)\s+memor\w+|according to\s+(?:my|your)\s+(?:memor\w+|notes)"
    r"|based on\s+(?:my|your|what i know|the)\s*(?:memor\w+|notes)?|(?:我|我们)?(?:记得|知道))\s*[,:：，]?\s*(?:that\s+)?",
    re.IGNORECASE,
)
_INSIDE = re.compile(r"\"((?:[^\"\\\n]|\\.){8,2000})\"|[“「『]([^”」』\n]{4,2000})[”」』]")
_FIELD = re.compile(r"\"(memory|text|data|content|fact|value)\"\s*:\s*\"((?:[^\"\\]|\\.){1,4000})\"")
_FIRST_PERSON = re.compile(r"^(?:i\b|i['’]|my\b|we\b|our\b|我|咱)", re.IGNORECASE)
_HEADING = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*|\*{2})?(?:(?:here (?:are|is)|these are|below are)[ \t]+)?(?:(?:the|some|your|my|user['’]s|all|most)[ \t]+){0,3}"
    r"(?:relevant|recalled|retrieved|stored|saved|known|existing|previous|past|user|long[- ]term)[ \t]+(?:(?:user|relevant|past|stored)[ \t]+)?"
    r"(?:memories|memory|facts)\b[^\n:：]{0,60}(?:\*{2})?[ \t]*[:：]?(?:\*{2})?[ \t]*$"
    r"|^[ \t]*(?:#{1,6}[ \t]*)?(?:相关|已知|已存储的?|召回的?|用户)(?:的)?(?:记忆|事实)[^\n:：]{0,20}[:：]?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"[^\n]*\n?")
_BLOCK = re.compile(
    r"<((?:relevant|recalled|retrieved|stored|user)?[_-]?memor(?:y|ies)[\w-]*)\b[^>\n]*>.*?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
_BOOT = re.compile(
    r"^\s*(?:#+\s*)?(?:<system>|\[system\]|system(?: prompt| message)?\s*[:：]|you are (?:now )?(?:an? |the )?[^.\n]{0,60}\b(?:assistant|agent|bot|chatbot|ai|model|copilot)\b"
    r"|你是(?:一个|一名|一位)?[^。\n]{0,20}(?:助手|助理|机器人|客服|智能体|模型|AI))",
    re.IGNORECASE,
)
_DUTY = re.compile(
    r"\b(?:you (?:must|should|will|can|have access)|always|never|do not|don['’]t|your (?:task|job|role|goal)|respond|answer|follow|instructions?|rules?|guidelines|"
    r"tools?|be (?:concise|helpful|polite))\b|必须|不要|总是|请|回答|规则|你的任务",
    re.IGNORECASE,
)
_TURN = re.compile(r"\n\s*(?:\[?(?:user|human|question|query|customer)\]?|用户|问题)\s*[:：]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A part of a message that may be a stored text."""

    index: int  # of its message
    start: int
    end: int
    hashes: frozenset[str]  # MD5s of the texts that it may be


async def blank(rt: Runtime, project_id: int, owners: Owners, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages of an add for these owners, each as long as it was, without what facts must not come from."""
    found = await asyncio.to_thread(candidates, messages)
    known: set[str] = set()
    if found:
        async with rt.db.acquire(project_id) as conn:
            known = await recalled.known(conn, project_id, owners, frozenset().union(*(part.hashes for part in found)))
    return await asyncio.to_thread(masked, messages, found, known)


def candidates(messages: Sequence[Message]) -> list[Candidate]:
    """Return the parts of the messages that may be stored texts, at most `MOST`; the newest messages' first."""
    found: list[Candidate] = []
    for message in reversed(messages):
        for start, end, texts in _parts(message):
            hashes = frozenset(dedupe.md5(text) for text in texts if text)
            if hashes:
                found.append(Candidate(message.index, start, end, hashes))
            if len(found) == MOST:
                return found
    return found


def masked(messages: Sequence[Message], found: Sequence[Candidate], known: Collection[str]) -> tuple[Message, ...]:
    """Return the messages, each as long as it was, with what is known, what was recalled and boot prompts blanked out."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for candidate in found:
        if not candidate.hashes.isdisjoint(known):
            spans.setdefault(candidate.index, []).append((candidate.start, candidate.end))
    return tuple(
        replace(
            message, content=_blanked(message.content, [*spans.get(message.index, ()), *_recalled(message.content)])
        )
        for message in messages
    )


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


# What is a prompt's by its form


def _recalled(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parts that say themselves that they are memories or a prompt."""
    yield from (match.span() for match in _BLOCK.finditer(text))
    yield from (match.span(2) for match in _FIELD.finditer(text) if match[1] == "memory")
    yield from _json_of_memories(text)
    for match in _HEADING.finditer(text):
        end = _end_of_list(text, match.end() + 1)
        if end > match.end() + 1:
            yield match.start(), end
    if _BOOT.match(text) and (len(_DUTY.findall(text)) >= 2 or text.lstrip()[:1] in "<["):
        turn = _TURN.search(text)
        yield 0, turn.end() if turn else len(text)


def _json_of_memories(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines, or the whole of a text, that are JSON with memories: nothing beside them is told by anybody."""
    for part in (
        re.finditer(r"\A\s*[{\[].*[}\]]\s*\Z", text, re.DOTALL),
        re.finditer(r"^[ \t]*[{\[].*[}\]][ \t]*$", text, re.MULTILINE),
    ):
        for match in part:
            if any(field[1] == "memory" for field in _FIELD.finditer(match[0])) and _is_json(match[0]):
                yield match.span()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _end_of_list(text: str, at: int) -> int:
    """Return where the items of a list end that begins at `at`."""
    while at < len(text):
        line = _ITEM.match(text, at)
        if line is None or not _BULLET.match(line[0]):
            return at
        at = line.end()
    return at


# What may be a stored text


def _parts(message: Message) -> Iterator[tuple[int, int, set[str]]]:
    text = message.content
    yield 0, len(text), {text} if not _is_plain_talk(message, text) else set()
    for match in _FIELD.finditer(text):
        yield *match.span(2), _variants(_unescaped(match[2]))
    at = 0
    for line in text.split("\n"):
        if line.strip() and len(line) <= _LONG_CHARS:
            yield at, at + len(line), _listed(line)
            yield from _in_line(message, line, at)
        at += len(line) + 1


def _listed(line: str) -> set[str]:
    """Return the texts that a line has inside bullets, labels and quotes; none if it has nothing of the kind."""
    bare = _LABEL.sub("", _TAG.sub("", _BULLET.sub("", line)))
    bare = _LABEL.sub("", bare)
    cells = [cell for cell in line.split("|") if len(cell.strip()) > _SHORT_WORDS] if "|" in line else []
    if not cells and bare.strip() == line.strip() and line.strip().strip(_QUOTES) == line.strip():
        return set()
    cut = _BEHIND.sub("", bare)
    return set().union(*map(_variants, (bare, cut, _BEHIND.sub("", cut), *cells)))


def _in_line(message: Message, line: str, at: int) -> Iterator[tuple[int, int, set[str]]]:
    for match in _INSIDE.finditer(line):
        yield at + match.start(), at + match.end(), _variants(match[1] or match[2])
    for sentence in sentences.split(line):
        start, end = at + sentence.start, at + sentence.end
        told = _SAID.sub("", sentence.text)
        if told != sentence.text:
            yield start, end, _variants(told) | _of_user(told)
        if message.role == "assistant":
            yield start, end, _of_user(sentence.text)
        if not _is_plain_talk(message, sentence.text):
            yield start, end, _variants(sentence.text)


def _is_plain_talk(message: Message, text: str) -> bool:
    """Tell whether somebody may just be saying this, perhaps again: that is for the facts to compare."""
    if sentences.length(text) < _SHORT_WORDS:
        return True
    return message.role == "user" and _FIRST_PERSON.match(text.strip()) is not None


def _variants(text: str) -> set[str]:
    """Return a text as it may have been stored: with and without its full stop, and with a capital."""
    plain = " ".join(text.split()).strip(_QUOTES)
    bare = plain.rstrip(".。;；,，")
    if len(bare) < 2:
        return set()
    raised = bare[:1].upper() + bare[1:]
    return {plain, bare, *(f"{form}{stop}" for form in (bare, raised) for stop in ("", ".", "。"))}


def _of_user(text: str) -> set[str]:
    """Return what is said to the user as it would be said of them."""
    match = re.match(r"\s*(?:and\s+)?you(?:['’](re|ve))?\s+(.*)", text, re.IGNORECASE | re.DOTALL)
    if match:
        verb, _, rest = ({"re": "are ", "ve": "have "}.get(match[1] or "", "") + match[2]).partition(" ")
        forms = {"are": "is", "have": "has", "do": "does", "were": "was", "don't": "doesn't"}
        third = forms.get(verb, f"{verb}s")
        return set().union(*(_variants(f"User {form} {rest}") for form in (verb, third, f"{verb}es")))
    owned = re.match(r"\s*(?:and\s+)?your\s+(.*)", text, re.IGNORECASE | re.DOTALL)
    if owned:
        return _variants(f"User's {owned[1]}")
    chinese = re.match(r"\s*您?你?(.*)", text, re.DOTALL)
    return _variants(f"用户{chinese[1]}") if chinese and text.strip()[:1] in "你您" else set()


def _unescaped(text: str) -> str:
    try:
        value = json.loads(f'"{text}"')
    except ValueError:
        return text
    return str(value)
