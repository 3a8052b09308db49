"""Reads the JSON that a chat model meant to write: behind thoughts, inside prose and fences, mended or cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import json_repair

_THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>"))
_STARTS = 1000  # brackets tried as the start of the value, so that an answer made of brackets costs little
_ITEM_DEPTH = 2  # brackets open around an item of a list in the answer's object
#: An escape in a JSON string: a pair of surrogates, half of one, or anything else.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(?P<half>u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)
_TYPES = {"array": list, "object": dict, "string": str}


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer holds."""

    value: Any = None  # fits the schema, as `fits` checks it; None: nothing of use
    whole: bool = False  # nothing of the value is missing; false: the complete items before a cut
    reason: str = ""  # unless whole: empty, cut, no_json or wrong_shape


def read(content: str, schema: dict[str, Any], *, cut: bool = False) -> Reading:
    """Return the first complete value in `content` that fits `schema`, one with items before one without.

    A value without items counts only if nothing is wrong with it: "nothing" must be an answer, not what is left of one.
    `cut`: the model says that its answer stops short. Thoughts are dropped before anything is looked for in them.
    No text in a value has halves of surrogate pairs.
    """
    text = _storable(content).strip()
    value = _parsed(text)  # first as it stands: a tag inside one of its strings is not a thought
    if not _answers(value, schema):
        said = _unfenced(without_thoughts(text))
        value = _first(said, schema, cut=cut)
        if value is None and not cut:
            value = _behind_an_open_thought(text, schema)
        text = said
    if value is not None:
        return Reading(value, whole=True)
    if not text:
        return Reading(reason="empty")
    start = _beginning(text, schema)
    if start < 0:
        return Reading(reason="cut" if cut else "wrong_shape" if _any_value(text) else "no_json")
    end, unclosed = _end_of_last_item(text, start)
    short = cut or unclosed
    value = _leading_items(text[start:end], schema) if short else _mended(text[start:], schema)
    if value is not None:
        return Reading(value, whole=not short, reason="cut" if short else "")
    return Reading(reason="cut" if short else "wrong_shape")


def fits(value: Any, schema: dict[str, Any]) -> TypeGuard[dict[str, Any]]:
    """Return whether `value` is an object that has what `schema` requires at its top; items are the caller's business."""
    if not isinstance(value, dict):
        return False
    return all(
        name in value and isinstance(value[name], _TYPES.get(_type(schema, name), object))
        for name in schema.get("required", ())
    )


def _answers(value: Any, schema: dict[str, Any]) -> TypeGuard[dict[str, Any]]:
    return fits(value, schema) and not (_is_empty(value, schema) and _has_strange_keys(value, schema))


def _is_empty(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    return not any(value[name] for name in schema.get("required") or value)


def _has_strange_keys(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Return whether `value` says what it was not asked for, such as why it could not answer."""
    return schema.get("additionalProperties") is False and not value.keys() <= schema.get("properties", {}).keys()


def _storable(text: str) -> str:
    """Return `text` without halves of surrogate pairs, which no database takes, also those that JSON writes as escapes."""
    text = _ESCAPE.sub(lambda found: r"\ufffd" if found["half"] else found[0], text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _type(schema: dict[str, Any], name: str) -> str:
    """Return the type of a property; empty when it has several, or the schema does not say."""
    place = schema.get("properties", {}).get(name)
    found = place.get("type") if isinstance(place, dict) else None
    return found if isinstance(found, str) else ""


def without_thoughts(text: str) -> str:
    """Return `text` without think blocks; one that is never closed, or never opened, reaches to the end or the start."""
    for opening, closing in _THOUGHTS:
        text = _without(text, opening, closing)
    return text.strip()


def _without(text: str, opening: str, closing: str) -> str:
    kept: list[str] = []
    at, depth = 0, 0
    for tag in re.finditer(f"{re.escape(opening)}|{re.escape(closing)}", text):
        if tag.group() == opening:
            if depth == 0:
                kept.append(text[at : tag.start()])
            depth += 1
        elif depth == 0:  # closed without an opening: all before it was thought
            kept.clear()
        depth = max(0, depth - 1) if tag.group() == closing else depth
        at = tag.end()
    return "".join(kept) if depth else "".join(kept) + text[at:]


def _behind_an_open_thought(text: str, schema: dict[str, Any]) -> Any:
    """Return the value that ends `text` on lines of its own inside a thought; some models forget to end one.

    What a thought says on its first line, or before other words, was only considered.
    """
    openings = [at for opening, closing in _THOUGHTS if (at := text.rfind(opening)) > text.rfind(closing)]
    if not openings:
        return None
    thought = text[max(openings) :].rstrip("`\n ")
    starts = [found.end() for found in re.finditer(r"\n[ \t]*(?=\{)", thought)]
    values = (_parsed(thought[start:]) for start in starts[: -_STARTS - 1 : -1])
    return next((value for value in values if fits(value, schema) and not _is_empty(value, schema)), None)


def _unfenced(text: str) -> str:
    """Drop a fence around the whole text; fences within prose are no obstacle to finding the value."""
    if not text.startswith("```"):
        return text
    body = text.partition("\n")[2] if "\n" in text else text.strip("`").removeprefix("json")
    return body.rstrip().removesuffix("```").strip()


def _first(text: str, schema: dict[str, Any], *, cut: bool) -> Any:
    whole = _parsed(text)
    if _answers(whole, schema):
        return whole
    if isinstance(whole, list) and (wrapped := _wrapped(whole, schema)) is not None:
        return wrapped
    fitting = [(value, inside) for value, inside in _objects(text, schema) if fits(value, schema)]
    full = next((value for value, _ in fitting if not _is_empty(value, schema)), None)
    if full is not None:
        return full
    # "I answer like {…: []}" before the answer proper, or {…: []} within a report of a failure, must not pass for
    # "nothing to remember".
    if cut or _mentions(text, schema) > 1:
        return None
    return next((value for value, inside in fitting if not inside and _answers(value, schema)), None)


def _wrapped(items: list[Any], schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a bare list as the only list that the schema requires. Never an empty one: it does not say of what."""
    if not items or any(fits(item, schema) for item in items):
        return None
    match schema.get("required", ()):
        case [name] if _type(schema, name) == "array":
            return {name: items}
        case _:
            return None


def _objects(text: str, schema: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield the objects in `text`, each with whether it is inside one that does not fit."""
    decoder = json.JSONDecoder()
    around = 0  # where the outermost object so far ends
    at = text.find("{")
    for _ in range(_STARTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # ValueError: also a number of more digits than Python reads
            end = at + 1
        else:
            yield value, at < around
            around = max(around, end)
            # Look inside an object of another shape: some models wrap their answer.
            end = end if fits(value, schema) else at + 1
        at = text.find("{", end)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _any_value(text: str) -> bool:
    return _parsed(text) is not None or next(_objects(text, {}), None) is not None


def _named(name: str) -> re.Pattern[str]:
    """Return what finds a property, in whatever quotes."""
    return re.compile(rf"[\"']?\b{re.escape(name)}[\"']?\s*:")


def _mentions(text: str, schema: dict[str, Any]) -> int:
    """Return how often a required property is named at most."""
    return max((len(_named(name).findall(text)) for name in schema.get("required", ())), default=0)


def _beginning(text: str, schema: dict[str, Any]) -> int:
    """Return where the object begins that names a required property; -1: nowhere."""
    for name in schema.get("required", ()):
        if found := _named(name).search(text):
            return text.rfind("{", 0, found.start())
    return -1


def _mended(text: str, schema: dict[str, Any]) -> Any:
    """Return the value of JSON with slips: other quotes, trailing commas. Never an empty one: that could be the damage."""
    try:
        value: Any = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if fits(value, schema) and not _is_empty(value, schema) else None


def _leading_items(text: str, schema: dict[str, Any]) -> Any:
    """Return the object whose list `text` stops in, closed after the list's last complete item."""
    value = _parsed(f"{text}]}}")
    return value if fits(value, schema) and not _is_empty(value, schema) else None


def _end_of_last_item(text: str, start: int) -> tuple[int, bool]:
    """Return where the last complete item of the list in the object at `start` ends, and whether the list stays open."""
    depth, quoted, escaped = 0, False, False
    end = start
    for index in range(start, len(text)):
        character = text[index]
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
                end = index + 1 if depth == _ITEM_DEPTH else end
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            end = index + 1 if depth == _ITEM_DEPTH else end
    return end, quoted or depth >= _ITEM_DEPTH
