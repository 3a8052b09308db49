"""Pure: a filter tree as an SQL condition and its arguments.

The only place where SQL is put together at run time. Identifiers come from the tables below; all that a caller wrote,
keys of metadata included, is bound as an argument. No fragment is ever NULL, so that NOT is plain negation and a null
field satisfies `ne`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.errors import InvalidRequest
from app.model import OWNER_FIELDS, And, Condition, FilterNode, Not, Operator, Or

_NULLABLE_TYPES = {**dict.fromkeys(OWNER_FIELDS, "text"), "expiration_date": "date"}
_TYPES = {**_NULLABLE_TYPES, "text": "text", "state": "text", "id": "uuid"}  # columns that compare as they are
_INSTANTS = ("created_at", "updated_at")
_COMPARED = {
    Operator.EQ: "=",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
}
_LAST_CASED = 0x1E944  # no letter after U+1E943 has two cases (Unicode 15, DerivedCoreProperties)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A condition in parentheses and the arguments of its placeholders, in their order."""

    sql: str
    args: list[object]


def compile_memories(node: FilterNode, *, first: int) -> Compiled:
    """Express the tree over the table `memories m`; placeholders count from `$first`."""
    writer = _Writer("m", first)
    return Compiled(writer.node(node), writer.args)


def compile_scopes(node: FilterNode, *, first: int) -> Compiled:
    """Express over `scopes s` which scopes can hold a match: all that do, and some that may not.

    Only owners are known of a scope. What else the tree asks for counts as met, also under NOT.
    """
    writer = _Writer("s", first)
    return Compiled(writer.node(_owners_only(node, otherwise=True)), writer.args)


def _owners_only(node: FilterNode, *, otherwise: bool) -> FilterNode:
    """Replace conditions on anything but owners by `otherwise`, which turns over at each NOT."""
    match node:
        case Condition(name):
            return node if name in OWNER_FIELDS else _constant(otherwise)
        case Not(part):
            inner = _owners_only(part, otherwise=not otherwise)
            return _constant(inner == Or(())) if inner in (And(()), Or(())) else Not(inner)
        case And(parts):
            kept = [_owners_only(part, otherwise=otherwise) for part in parts]
            return Or(()) if Or(()) in kept else And(tuple(part for part in kept if part != And(())))
        case Or(parts):
            kept = [_owners_only(part, otherwise=otherwise) for part in parts]
            return And(()) if And(()) in kept else Or(tuple(part for part in kept if part != Or(())))


def _constant(truth: bool) -> FilterNode:
    return And(()) if truth else Or(())


@dataclass(slots=True)
class _Writer:
    alias: str
    first: int
    args: list[object] = field(default_factory=list)

    def node(self, node: FilterNode) -> str:
        match node:
            case Condition():
                return f"({self._condition(node)})"
            case Not(part):
                return f"(NOT {self.node(part)})"
            case And(parts):
                return "(" + (" AND ".join(map(self.node, parts)) or "TRUE") + ")"
            case Or(parts):
                return "(" + (" OR ".join(map(self.node, parts)) or "FALSE") + ")"

    def _bind(self, value: object, type_name: str) -> str:
        self.args.append(value)
        return f"${self.first + len(self.args) - 1}::{type_name}"

    def _condition(self, condition: Condition) -> str:
        name = condition.field
        if name == "metadata":
            return self._metadata(condition)
        if name == "categories":
            return self._categories(condition)
        if name in _INSTANTS:
            return self._instant(f"{self.alias}.{name}", condition)
        if name in _TYPES:
            return self._column(f"{self.alias}.{name}", condition)
        raise _unknown(condition)

    def _column(self, column: str, condition: Condition) -> str:
        op, value, type_name = condition.op, condition.value, _TYPES[condition.field]
        if op is Operator.ANY or op is Operator.EXISTS:
            return _present(column, condition)
        if op is Operator.NE:
            return f"{column} IS DISTINCT FROM {self._bind(value, type_name)}"
        if condition.field == "text" and op in (Operator.CONTAINS, Operator.ICONTAINS):
            return self._contains(column, value, fold=op is Operator.ICONTAINS)
        if op is Operator.GLOB and condition.field in OWNER_FIELDS:
            compared = f"{column} LIKE {self._bind(_like(value), type_name)}"
        elif op is Operator.IN:
            compared = f"{column} = ANY({self._bind(list(value), type_name + '[]')})"
        elif op is Operator.EQ or (op in _COMPARED and type_name == "date"):
            compared = f"{column} {_COMPARED[op]} {self._bind(value, type_name)}"
        else:
            raise _unknown(condition)
        # Written this way instead of IS NOT DISTINCT FROM, an equality can use an index.
        return f"{column} IS NOT NULL AND {compared}" if condition.field in _NULLABLE_TYPES else compared

    def _instant(self, column: str, condition: Condition) -> str:
        """Compare a NOT NULL timestamp with instants, or with days: from 00:00 UTC to before the next 00:00."""
        op, value = condition.op, condition.value
        if op is Operator.ANY or op is Operator.EXISTS:
            return _present(column, condition)
        if op is Operator.IN:
            return self._instant_in(column, value)
        if op is Operator.NE:
            return f"NOT ({self._instant(column, Condition(condition.field, Operator.EQ, value))})"
        if op not in _COMPARED:
            raise _unknown(condition)
        if isinstance(value, datetime):
            return f"{column} {_COMPARED[op]} {self._bind(value, 'timestamptz')}"
        day = self._bind(value, "date")
        if op is Operator.EQ:
            return f"{column} >= {_midnight(day)} AND {column} < {_midnight(day + ' + 1')}"
        if op in (Operator.GTE, Operator.LT):
            return f"{column} {_COMPARED[op]} {_midnight(day)}"
        return f"{column} {'>=' if op is Operator.GT else '<'} {_midnight(day + ' + 1')}"

    def _instant_in(self, column: str, values: Sequence[Any]) -> str:
        instants = [value for value in values if isinstance(value, datetime)]
        days = [value for value in values if not isinstance(value, datetime)]
        exact = f"{column} = ANY({self._bind(instants, 'timestamptz[]')})"
        on_day = f"({column} AT TIME ZONE 'UTC')::date = ANY({self._bind(days, 'date[]')})"
        return f"{exact} OR {on_day}"

    def _categories(self, condition: Condition) -> str:
        column = f"{self.alias}.categories"
        if condition.op is Operator.ANY or condition.op is Operator.EXISTS:
            return _present(column, condition)
        if condition.op is Operator.IN:
            return f"COALESCE({column} && {self._bind(list(condition.value), 'text[]')}, FALSE)"
        if condition.op is Operator.ICONTAINS:
            found = self._contains("category.name", condition.value, fold=True)
            return f"EXISTS (SELECT FROM unnest({column}) AS category (name) WHERE {found})"
        raise _unknown(condition)

    def _metadata(self, condition: Condition) -> str:
        """Compare the JSON value of one key; numbers by value (3 = 3.0), types apart; null is like an absent key."""
        if condition.key is None:
            raise _unknown(condition)
        stored = f"({self.alias}.metadata -> {self._bind(condition.key, 'text')})"
        op, value = condition.op, condition.value
        if op is Operator.ANY or op is Operator.EXISTS:
            there = f"COALESCE({stored} <> 'null', FALSE)"
            return f"NOT {there}" if op is Operator.EXISTS and not value else there
        if op is Operator.EQ or op is Operator.NE:
            equal = f"COALESCE({stored} = {self._json(value)}, {'TRUE' if value is None else 'FALSE'})"
            return f"NOT {equal}" if op is Operator.NE else equal
        if op is Operator.CONTAINS:
            # An array contains a value that equals one of its elements; this form of @> looks at no deeper level.
            inside = f"WHEN 'array' THEN {stored} @> {self._json(value)} "
            if isinstance(value, str):
                inside += f"WHEN 'string' THEN {self._contains(f'({stored} #>> {_WHOLE})', value, fold=False)} "
            return f"CASE jsonb_typeof({stored}) {inside}ELSE FALSE END"
        raise _unknown(condition)

    def _json(self, value: object) -> str:
        return self._bind(json.dumps(value, ensure_ascii=False, allow_nan=False), "text") + "::jsonb"

    def _contains(self, column: str, value: str, *, fold: bool) -> str:
        """Look for a substring, character by character: no pattern language, no locale."""
        if not fold:
            return f'strpos({column} COLLATE "C", {self._bind(value, "text")}) > 0'
        # lower() does what the database's locale says, which may be nothing beyond ASCII; so ASCII is all it is given
        # here, by the collation C, and translate() does the rest of the value's letters. It is the slower of the two.
        folded = "".join(map(_fold, value))
        beyond = sorted(letter for letter in set(folded) if not letter.isascii())
        variants = [(other, letter) for letter in beyond for other in _variants().get(letter, ())]
        searched = f'lower({column} COLLATE "C")'
        if variants:
            others = self._bind("".join(other for other, _ in variants), "text")
            letters = self._bind("".join(letter for _, letter in variants), "text")
            searched = f"translate({searched}, {others}, {letters})"
        return f"strpos({searched}, {self._bind(folded, 'text')}) > 0"


_WHOLE = "'{}'"  # the path to a JSON value itself: its string without quotes


def _present(column: str, condition: Condition) -> str:
    absent = condition.op is Operator.EXISTS and not condition.value
    return f"{column} IS NULL" if absent else f"{column} IS NOT NULL"


def _like(glob: str) -> str:
    """Return the pattern of LIKE for one in which only `*` means anything."""
    return re.sub(r"([\\%_])", r"\\\1", glob).replace("*", "%")


def _midnight(day: str) -> str:
    return f"(({day})::timestamp AT TIME ZONE 'UTC')"


def _unknown(condition: Condition) -> InvalidRequest:
    return InvalidRequest(f"filters: {condition.field} cannot be compared by {condition.op.value}.")


def _fold(character: str) -> str:
    """Return the letter that stands for all cases of a letter; always one character (ß and ẞ give ß, not ss).

    Signs that only look like ASCII (K for kelvin, the long s) stay themselves: plain English needs no translate() then.
    """
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded if character.isascii() or not folded.isascii() else character
    return character


@functools.cache
def _variants() -> dict[str, list[str]]:
    """Map each folded letter beyond ASCII to the other characters that fold to it: σ to Σ and ς."""
    found: dict[str, list[str]] = {}
    for character in map(chr, range(0x80, _LAST_CASED)):
        if (folded := _fold(character)) != character:
            found.setdefault(folded, []).append(character)
    return found
