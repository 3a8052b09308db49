"""Pure: one `key: value` of a filter that is no logical operator, as conditions. One table says what each field takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.domain import filter_values as read
from app.errors import InvalidRequest
from app.model import OWNER_FIELDS, And, Condition, FilterNode, Not, Operator

ALLOWED_KEYS = (  #: in the documented order, which the refusal of an unknown key repeats
    "AND", "OR", "NOT", "user_id", "agent_id", "app_id", "run_id", "created_at", "updated_at", "timestamp",
    "expiration_date", "text", "categories", "metadata", "keywords_search", "memory_ids", "keywords",
)  # fmt: skip
#: How some clients spell the owners; read wherever owners are named.
CAMEL = {"userId": "user_id", "agentId": "agent_id", "appId": "app_id", "runId": "run_id"}
_DOTTED = "metadata."
_OPERATOR_NAMES = frozenset((*Operator, "nin")) - {Operator.ANY, Operator.GLOB}


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field may be written."""

    column: str  # the field's name in a Condition
    value: Callable[[str, object], object]  # checks one operand
    operators: Mapping[str, Operator]  # as written → as meant; `nin` stands for NOT IN
    bare: Operator | None  # meaning of a value without an operator; None: refused
    hint: str = ""  # ends the refusal of an operator


def _same(*names: str) -> dict[str, Operator]:
    return {name: Operator.IN if name == "nin" else Operator(name) for name in names}


_DATE_OPERATORS = _same("gt", "gte", "lt", "lte", "ne", "in", "nin", "exists")
_DATE_HINT = "; for equality write the value without an operator"
_FIELDS = {
    **{
        name: _Field(name, read.owner, _same("eq", "ne", "in", "nin", "exists"), Operator.EQ)
        for name in OWNER_FIELDS
    },
    "created_at": _Field("created_at", read.moment, _DATE_OPERATORS, Operator.EQ, _DATE_HINT),
    "updated_at": _Field("updated_at", read.moment, _DATE_OPERATORS, Operator.EQ, _DATE_HINT),
    "timestamp": _Field("created_at", read.moment, _DATE_OPERATORS, Operator.EQ, _DATE_HINT),
    "expiration_date": _Field("expiration_date", read.day, _DATE_OPERATORS, Operator.EQ, _DATE_HINT),
    "text": _Field("text", read.words, _same("eq", "ne", "in", "nin", "contains", "icontains"), Operator.EQ),
    "categories": _Field(
        "categories",
        read.words,
        # A part of a category's name is looked for in any case, whichever of the two is written.
        {**_same("in", "nin", "exists"), "contains": Operator.ICONTAINS, "icontains": Operator.ICONTAINS},
        Operator.IN,
        "; for exact names write {\"in\": [\"name\"]}",
    ),
    "memory_ids": _Field("id", read.memory_id, _same("in", "nin"), Operator.IN),
    "keywords": _Field("text", read.words, _same("contains", "icontains"), None),
}  # fmt: skip
_METADATA = _Field(
    "metadata",
    read.json_value,
    _same("eq", "ne", "contains", "exists"),
    Operator.EQ,
    "; for one of several values write an OR of equalities",
)


def entry(key: str, raw: object) -> FilterNode:
    """Read the value of one field.

    Raises: InvalidRequest, its text names the key; an unknown one is answered with the list of those allowed.
    """
    key = read.text("filters", key)
    if key == "metadata":
        return metadata(key, raw)
    if key.startswith(_DOTTED):
        return _dotted(key, raw)
    if key == "keywords_search":
        return _keywords_search(key, raw)
    field = _FIELDS.get(CAMEL.get(key, key))
    if field is None:
        allowed = ", ".join(ALLOWED_KEYS)
        raise InvalidRequest(
            f"Top-level key must be a logical operator or an allowed field ({allowed}); {read.shown(key)} is neither."
        )
    if isinstance(raw, dict):
        return _operations(field, key, raw)
    if raw == "*" and field.bare is not None:
        return Condition(field.column, Operator.ANY)
    if field.bare is None:
        raise read.refusal(key, f"needs an operator: {', '.join(field.operators)}.")
    if field.bare is Operator.IN:
        return _operation(field, key, "in", raw if isinstance(raw, list) else [raw])
    if isinstance(raw, list) and "in" in field.operators:
        raise read.refusal(key, "must not be a bare list; write {\"in\": [...]}.")  # fmt: skip
    return Condition(field.column, field.bare, field.value(key, raw))


def _operations(field: _Field, name: str, raw: dict[str, object], key: str | None = None) -> FilterNode:
    if not raw:
        raise read.refusal(name, f"must not be an empty object; it takes {', '.join(field.operators)}.")
    return all_of([_operation(field, name, operator, operand, key) for operator, operand in raw.items()])


def _operation(field: _Field, name: str, operator: str, operand: object, key: str | None = None) -> FilterNode:
    meant = field.operators.get(operator)
    if meant is None:
        taken = ", ".join(field.operators)
        raise read.refusal(name, f"does not take the operator {read.shown(operator)}; it takes {taken}{field.hint}.")
    if meant is Operator.EXISTS:
        return Condition(field.column, meant, read.flag(name, operand), key)
    if meant is Operator.IN:
        members = tuple(_operand(field, name, meant, member) for member in read.values(name, operand))
        inside = Condition(field.column, meant, members, key)
        # The And keeps a written NOT at the root, which lifts null scoping, apart from this one.
        return And((Not(inside),)) if operator == "nin" else inside
    if meant is Operator.EQ and operand == "*" and field.column in OWNER_FIELDS:
        return Condition(field.column, Operator.ANY)
    return Condition(field.column, meant, _operand(field, name, meant, operand), key)


def _operand(field: _Field, name: str, operator: Operator, value: object) -> object:
    if field is _METADATA and operator is Operator.CONTAINS:
        return read.scalar(name, value)
    checked = field.value(name, value)
    if checked == "*" and field.column in OWNER_FIELDS:
        raise read.refusal(name, "takes the wildcard \"*\" only by itself.")  # fmt: skip
    return checked


def metadata(name: str, raw: object) -> FilterNode:
    """Read `{key: value or operators, ...}`, its members ANDed."""
    if not isinstance(raw, dict) or not raw:
        raise read.refusal(name, "must be an object with at least one key, such as {\"topic\": \"food\"}.")  # fmt: skip
    return all_of([_metadata_key(f"{name}.{key}", read.text(name, key), value) for key, value in raw.items()])


def _dotted(name: str, raw: object) -> FilterNode:
    key = name.removeprefix(_DOTTED)
    if not key or "." in key:
        raise read.refusal(name, "must name one key; for a key that holds a dot write {\"metadata\": {\"a.b\": ...}}.")  # fmt: skip
    return _metadata_key(name, key, raw)


def _metadata_key(name: str, key: str, raw: object) -> FilterNode:
    """Read `{key: value}` (equality of whole JSON values) or `{key: {operator: operand}}`."""
    if raw == "*":
        return Condition("metadata", Operator.ANY, None, key)
    read.json_value(name, raw)
    if isinstance(raw, dict) and any(_is_operator(part) for part in raw):
        return _operations(_METADATA, name, raw, key)
    if _hides_operator(raw):
        raise read.refusal(name, "holds an operator below its first level; to compare the object whole write {\"eq\": ...}.")  # fmt: skip
    return Condition("metadata", Operator.EQ, raw, key)


def _is_operator(key: str) -> bool:
    """Whether a key looks like an operator, one that we do not have (`>=`, `$gt`) included."""
    return key in _OPERATOR_NAMES or key.startswith("$") or (key != "" and not key.strip("<>=!"))


def _hides_operator(value: object) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if item and all(_is_operator(key) for key in item):
                return True
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def _keywords_search(name: str, raw: object) -> FilterNode:
    """Every word, separated by white space, is somewhere in the text, in any case."""
    if isinstance(raw, dict):
        if list(raw) != ["contains"]:
            raise read.refusal(name, "takes a text, or the operator contains.")
        raw = raw["contains"]
    searched = read.text(name, raw).split()
    if not searched:
        raise read.refusal(name, "must not be empty or blank.")
    return all_of([Condition("text", Operator.ICONTAINS, word) for word in searched])


def any_category(name: str, raw: object) -> FilterNode:
    """Read a list of exact category names, one of which must match."""
    return _operation(_FIELDS["categories"], name, "in", raw)


def all_of(parts: list[FilterNode]) -> FilterNode:
    """AND the parts; a single one stays as it is."""
    return parts[0] if len(parts) == 1 else And(tuple(parts))
