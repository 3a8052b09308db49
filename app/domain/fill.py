"""An object that fits a JSON Schema, filled from memories by rules. Pure; no model.

`questions` says what to look for; whoever calls looks; `fill` makes the object of what was found. The same memories give the
same object. What nothing tells is left out where the schema allows it, else null, else the empty value of its type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain import fill_values as say
from app.domain import fill_words as words
from app.domain import json_schema
from app.model import Memory

MAX_QUESTIONS = 200  #: fields that are looked for
MAX_DEPTH = 8  #: objects inside each other; schemas may refer to themselves
MAX_ITEMS = 100  #: of one list

Path = tuple[str, ...]  #: names of properties from the root
ABSENT: Any = object()  #: nothing is known

_FORMS = {"email": "email mail", "idn-email": "email mail", "uri": "website url", "url": "website url"}
_NEUTRAL = ("unknown", "unspecified", "not specified", "none", "n/a", "na", "other", "")  #: choices that claim nothing


class Impossible(Exception):
    """The schema demands what the memories do not tell; the text names it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A field to look for."""

    path: Path
    text: str  # its name and description, without what says nothing; empty: every memory belongs to it
    names: frozenset[str]  # keys of the words of its name
    telling: frozenset[str]  # keys of words one of which a memory about it has
    described: frozenset[str] = frozenset()  # keys of the words of its description, two of which do as well

    @classmethod
    def of(
        cls, path: Path, name: str, description: str = "", context: Sequence[str] = (), *, form: str = ""
    ) -> Question:
        """Return the question for a property of this name. `context`: the names of the objects around it; `form`: of it."""
        text = " ".join(
            word for word in " ".join([*context, name, description]).split() if not words.keys(word) <= words.GENERIC
        )
        names = words.keys(name) - words.GENERIC
        strong = names - words.WEAK or names or words.keys(text) - words.GENERIC - words.WEAK
        described = words.keys(description) - words.GENERIC - words.WEAK
        telling = strong | words.telling(names) | words.keys(_FORMS.get(form, ""))
        return cls(path, text, names, telling, described)

    @property
    def is_open(self) -> bool:
        """Whether every memory belongs to it, as to a list that is called `memories`."""
        return not self.telling

    def found_in(self, memory: Memory) -> bool:
        """Whether the memory shares the words that matter with the field."""
        told = words.keys(memory.text)
        return not self.telling.isdisjoint(told) or len(self.described & told) >= 2

    def closeness(self, memory: Memory) -> int:
        """Return how many of the words of the field's name are in the memory."""
        return len(self.names & words.keys(memory.text))


@dataclass(slots=True)
class Filled:
    """What came of it."""

    value: dict[str, Any]
    known: list[str] = field(default_factory=list)  # fields that a memory tells, as paths with dots
    unknown: list[str] = field(default_factory=list)  # fields that the schema demands and no memory tells


def questions(schema: dict[str, Any]) -> list[Question]:
    """Return the fields of a checked schema that memories can tell, in the schema's order. Raises: Impossible."""
    found: dict[Path, Question] = {}
    for path, node, context in _fields(schema, schema, (), (), 0):
        if path not in found:
            description, form = str(node.get("description", "")), str(node.get("format", ""))
            found[path] = Question.of(path, _words(path[-1]), description, context, form=form)
        if len(found) > MAX_QUESTIONS:
            raise Impossible(
                f"The schema has more than {MAX_QUESTIONS} fields; without a model so many are not filled."
            )
    return list(found.values())


def _fields(
    root: dict[str, Any], node: Any, path: Path, context: tuple[str, ...], depth: int
) -> Iterator[tuple[Path, dict[str, Any], tuple[str, ...]]]:
    for option in _options(root, node):
        if _is(option, "object") and "properties" in option:
            if depth < MAX_DEPTH:
                inside = (*context, _words(path[-1])) if path else context
                for name, child in option["properties"].items():
                    yield from _fields(root, child, (*path, name), inside, depth + 1)
        elif path and "const" not in option and not _is(option, "null"):
            yield path, option, context


def fill(schema: dict[str, Any], evidence: Mapping[Path, Sequence[Memory]]) -> Filled:
    """Return an object that fits the checked schema. `evidence`: by field, the memories about it, best first.

    Raises: Impossible; json_schema.TooMuch.
    """
    asked = {question.path: question for question in questions(schema)}
    maker = _Maker(schema, json_schema.Checker(schema), evidence, asked)
    value = maker.make(schema, (), 0)
    made = Filled(value if isinstance(value, dict) else {}, maker.known, maker.unknown)
    wrong = maker.checker.problems(made.value, most=1)
    if wrong:
        raise Impossible(f"No object that the memories fill fits the schema: {wrong[0]}.")
    return made


@dataclass(slots=True)
class _Maker:
    """Walks the schema and the evidence together."""

    root: dict[str, Any]
    checker: json_schema.Checker
    evidence: Mapping[Path, Sequence[Memory]]
    asked: Mapping[Path, Question]
    known: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def make(self, node: Any, path: Path, depth: int) -> Any:
        """Return the value of a place in the schema, or ABSENT."""
        for option in _options(self.root, node):
            value = self._option(option, path, depth)
            if value is not ABSENT:
                return value
        return ABSENT

    def _option(self, node: dict[str, Any], path: Path, depth: int) -> Any:
        if "const" in node:
            return node["const"]
        if _is(node, "object") and "properties" in node:
            return self._object(node, path, depth)
        memories = self.evidence.get(path, ())
        question = self.asked.get(path)
        if not memories or question is None:
            return ABSENT
        value = self._array(node, question, memories) if _is(node, "array") else self._plain(node, question, memories)
        if value is not ABSENT:
            self.known.append(".".join(path))
        return value

    def _object(self, node: dict[str, Any], path: Path, depth: int) -> Any:
        if depth > MAX_DEPTH:
            return ABSENT
        before = len(self.known), len(self.unknown)
        value = {}
        for name, child in node["properties"].items():
            found = self.make(child, (*path, name), depth + 1)
            if found is ABSENT:
                found = self._absent(child, (*path, name), required=name in node.get("required", ()))
            if found is not ABSENT:
                value[name] = found
        if path and len(self.known) == before[0]:  # nothing in it is known: whoever demands it asks again
            del self.unknown[before[1] :]
            return ABSENT
        return value

    def _absent(self, node: Any, path: Path, *, required: bool) -> Any:
        """Return what stands for a value that nothing tells. Raises: Impossible."""
        options = _options(self.root, node)
        default = next(
            (option["default"] for option in (node, *options) if isinstance(option, dict) and "default" in option),
            ABSENT,
        )
        if default is not ABSENT and self.checker.fits(node, default):
            return default
        if self.checker.fits(node, None):
            if required:
                self.unknown.append(".".join(path))
            return None
        if not required:
            return ABSENT
        self.unknown.append(".".join(path))
        empty = [value for option in options for value in self._empty(option, path)]
        for value in empty:
            if self.checker.fits(node, value):
                return value
        raise Impossible(
            f"No memory tells {'.'.join(path)}, which the schema demands and does not let be empty or null."
        )

    def _empty(self, node: dict[str, Any], path: Path) -> Iterator[Any]:
        if "enum" in node:
            yield from (choice for choice in node["enum"] if str(choice).casefold() in _NEUTRAL)
            return
        if _is(node, "object"):
            if len(path) <= MAX_DEPTH:
                yield self._hollow(node, path)
            return
        for kind, value in (("string", ""), ("array", []), ("integer", 0), ("number", 0), ("boolean", False)):
            if _is(node, kind):
                yield value

    def _hollow(self, node: dict[str, Any], path: Path) -> dict[str, Any]:
        """Return an object of which nothing is known."""
        made = {}
        for name, child in node.get("properties", {}).items():
            found = self._absent(child, (*path, name), required=name in node.get("required", ()))
            if found is not ABSENT:
                made[name] = found
        return made

    def _array(self, node: dict[str, Any], question: Question, memories: Sequence[Memory]) -> Any:
        item = node.get("items", True)
        found: list[Any] = []
        for memory in memories:
            for value in self._items(item, question, memory):
                if value not in found and self.checker.fits(item, value):
                    found.append(value)
        limit = min(int(node.get("maxItems", MAX_ITEMS)), MAX_ITEMS)
        return found[:limit] if found and self.checker.fits(node, found[:limit]) else ABSENT

    def _items(self, node: Any, question: Question, memory: Memory) -> Iterator[Any]:
        for option in _options(self.root, node):
            if _is(option, "object") and "properties" in option:
                value = self._of_one(option, memory)
                if value is not ABSENT:
                    yield value
            elif _is(option, "string") and not option.keys() & {"enum", "format", "const"}:
                yield from say.listed(memory, question.names)
            else:
                yield from _candidates(option, question, memory)

    def _of_one(self, node: dict[str, Any], memory: Memory) -> Any:
        """Return an item of a list of objects: each of its fields from this memory alone."""
        value, told = {}, False
        for name, child in node["properties"].items():
            question = Question.of((name,), _words(name))
            options = _options(self.root, child)
            given = say.own(memory, name)
            tries = [
                *([given] if given is not None else []),
                *(v for o in options for v in _candidates(o, question, memory)),
            ]
            found = next((tried for tried in tries if self.checker.fits(child, tried)), ABSENT)
            told = told or found is not ABSENT
            if found is ABSENT:
                noted = len(self.unknown)
                try:
                    found = self._absent(child, (name,), required=name in node.get("required", ()))
                except Impossible:
                    return ABSENT
                finally:
                    del self.unknown[noted:]
            if found is not ABSENT:
                value[name] = found
        return value if told else ABSENT

    def _plain(self, node: dict[str, Any], question: Question, memories: Sequence[Memory]) -> Any:
        for memory in memories:
            for value in _candidates(node, question, memory):
                if self.checker.fits(node, value):
                    return value
        return ABSENT


def _candidates(node: dict[str, Any], question: Question, memory: Memory) -> Iterator[Any]:
    """Yield what the memory may say for a plain field, likeliest first; not all of it fits the schema."""
    if "enum" in node:
        yield from (choice for choice in node["enum"] if isinstance(choice, str) and say.mentions(memory, choice))
        return
    if _is(node, "string"):
        yield from _strings(node.get("format"), question, memory)
    if question.found_in(memory):  # a number or a yes of a memory about something else would be an invention
        if _is(node, "integer"):
            yield from (int(number) for number in say.numbers(memory) if number == int(number))
        if _is(node, "number"):
            yield from say.numbers(memory)
        if _is(node, "boolean"):
            yield say.holds(memory)


def _strings(kind: str | None, question: Question, memory: Memory) -> Iterator[str]:
    if kind == "date":
        yield from (moment.date().isoformat() for moment in say.moments(memory))
    elif kind == "date-time":
        yield from (moment.isoformat() for moment in say.moments(memory))
    elif kind in ("email", "idn-email"):
        yield from say.emails(memory)
    elif kind in ("uri", "url", "iri"):
        yield from say.urls(memory)
    else:
        yield from say.strings(memory, question.names)


def _options(root: dict[str, Any], node: Any) -> list[dict[str, Any]]:
    """Return the alternatives that a place in the schema allows, references followed, those without null first."""
    found: list[dict[str, Any]] = []
    pending: list[tuple[Any, int]] = [(node, 0)]
    while pending and len(found) < 20:
        part, depth = pending.pop(0)
        if not isinstance(part, dict) or depth > MAX_DEPTH:
            continue
        if "$ref" in part:
            inside = json_schema.target(root, part["$ref"])
            rest = {key: value for key, value in part.items() if key != "$ref"}
            pending.insert(0, ({**inside, **rest} if isinstance(inside, dict) else rest, depth + 1))
            continue
        union = next((name for name in ("anyOf", "oneOf") if name in part), None)
        if union:
            rest = {key: value for key, value in part.items() if key != union}
            pending[:0] = [({**rest, **one}, depth + 1) for one in part[union] if isinstance(one, dict)]
        elif "allOf" in part:
            pending.insert(0, (_merged(root, part), depth + 1))
        elif isinstance(part.get("type"), list):
            pending[:0] = [({**part, "type": kind}, depth + 1) for kind in part["type"]]
        else:
            found.append(part)
    return [option for option in found if not _is(option, "null")]


def _merged(root: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {key: value for key, value in node.items() if key != "allOf"}
    for part in node["allOf"]:
        if isinstance(part, dict) and set(part) == {"$ref"}:
            part = json_schema.target(root, part["$ref"])
        if isinstance(part, dict):
            properties = {**part.get("properties", {}), **made.get("properties", {})}
            required = [*part.get("required", ()), *made.get("required", ())]
            made = (
                {**part, **made}
                | ({"properties": properties} if properties else {})
                | ({"required": required} if required else {})
            )
    return made


def _is(node: dict[str, Any], kind: str) -> bool:
    """Whether a place without alternatives is of this type; one without a type is an object if it has properties."""
    if "type" in node:
        return bool(node["type"] == kind)
    if kind == "object":
        return "properties" in node
    return (
        kind == "string" and "properties" not in node and "items" not in node or (kind == "array" and "items" in node)
    )


def _words(name: str) -> str:
    """Return the words of a property's name: `favoriteFood` and `favorite_food` are `favorite food`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.sub(r"[_\-.\s]+", " ", apart).strip().lower() or name
