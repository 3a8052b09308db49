"""JSON Schemas that callers send: checked before they are used, and never a way to keep the service busy for hours. Pure.

Draft 2020-12. References stay inside the schema, regular expressions run in linear time, and one validation has a budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any
from uuid import UUID

import orjson
from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError, validators
from pydantic import StringConstraints, TypeAdapter
from pydantic import ValidationError as Mismatch
from pydantic_core import SchemaError as UnreadablePattern
from referencing import Registry
from referencing.exceptions import Unresolvable

from app.domain import limits
from app.errors import InvalidRequest

MAX_BYTES = 64 * 1024  #: of a schema as JSON
MAX_DEPTH = 40
MAX_PROPERTIES = 500  #: in all objects of a schema together
STEPS = 100_000  #: keywords that the validations of one object may look at: about a second

REQUIRED = "Schema is required and must be a valid object"  #: the words that clients know

_SCHEMAS = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems",
            "unevaluatedProperties")  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("$defs", "definitions", "dependentSchemas", "properties")
#: Each would need what is not offered here: other base addresses, or regular expressions over the names of properties.
_REFUSED = (
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
    "patternProperties",
)
#: pydantic writes this into the schema of a Decimal. What it rules out, a string of signs, is no number anyway.
_DECIMAL = "(?!^[-+.]*$)"


class TooMuch(Exception):
    """A validation does not end within its budget."""


def read(raw: object) -> dict[str, Any]:
    """Return a schema that an object can fit, sent as an object or as its JSON text, checked.

    Raises: InvalidRequest, in the words that clients know, with the reason where there is one.
    """
    if isinstance(raw, str):
        if len(raw.encode()) > MAX_BYTES:
            raise _refused(f"it has more than {MAX_BYTES} bytes")
        try:
            raw = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise InvalidRequest(f"{REQUIRED}.") from None
    if not isinstance(raw, dict) or not raw:
        raise InvalidRequest(f"{REQUIRED}.")
    try:
        check(raw)
    except ValueError as error:
        raise _refused(str(error)) from error
    return raw


def _refused(reason: str) -> InvalidRequest:
    return InvalidRequest(f"{REQUIRED}: {reason}.")


def check(schema: dict[str, Any]) -> None:
    """Raise ValueError, with the reason, unless `schema` is one that an object can fit and that is used safely here."""
    if len(orjson.dumps(schema)) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    if limits.depth(schema, MAX_DEPTH + 1) > MAX_DEPTH:
        raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"{_path(error) or 'the schema'}: {error.message[:200]}") from error
    places = list(_walk(schema))
    known = {id(place) for place in places}
    for place in places:
        _check_place(schema, place, known)
    if sum(len(place.get("properties", ())) for place in places) > MAX_PROPERTIES:
        raise ValueError(f"it has more than {MAX_PROPERTIES} properties")
    _check_root(schema)


def _check_place(root: dict[str, Any], place: dict[str, Any], known: set[int]) -> None:
    for name in _REFUSED:
        if name in place:
            raise ValueError(f"{name} is not supported")
    if "$id" in place and place is not root:
        raise ValueError("$id is not supported below the root")
    if "pattern" in place:
        _pattern(place["pattern"])
    if "$ref" in place:
        found = target(root, place["$ref"])
        if not isinstance(found, bool) and id(found) not in known:
            raise ValueError(f"$ref {place['$ref'][:100]} must point to a schema inside this one")


def _walk(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema inside `schema`, itself included; `true` and `false` have nothing to look at."""
    pending = [schema]
    while pending:
        place = pending.pop()
        if not isinstance(place, dict):
            continue
        yield place
        pending += [place[name] for name in _SCHEMAS if name in place]
        pending += [part for name in _LISTS for part in place.get(name, ())]
        pending += [part for name in _MAPS for part in place.get(name, {}).values()]


def undescribed(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the properties of a checked schema, at any depth, that have no description of their own."""
    for place in _walk(schema):
        for name, child in place.get("properties", {}).items():
            said = child.get("description") if isinstance(child, dict) else None
            if not isinstance(said, str) or not said.strip():
                yield name


def _check_root(schema: dict[str, Any]) -> None:
    root, seen = schema, 0
    while "$ref" in root and "type" not in root:
        root, seen = target(schema, root["$ref"]), seen + 1
        if seen > MAX_DEPTH or not isinstance(root, dict):
            raise ValueError("its $ref leads nowhere")
    kinds = root.get("type", "object")
    if "object" not in ([kinds] if isinstance(kinds, str) else kinds):
        raise ValueError("its type must be object")
    if not any(name in root for name in ("type", "properties", "allOf", "anyOf", "oneOf")):
        raise ValueError("it describes no object")


def target(root: dict[str, Any], ref: str) -> Any:
    """Return what a reference such as `#/$defs/Address` points to. Raises: ValueError."""
    if not ref.startswith("#"):
        raise ValueError(f"$ref {ref[:100]} must begin with #: nothing outside the schema is read")
    found: Any = root
    for part in ref[1:].split("/")[1:]:
        name = re.sub("~1", "/", part).replace("~0", "~")
        try:
            found = found[int(name)] if isinstance(found, list) else found[name]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"$ref {ref[:100]} points to nothing") from None
    return found


# Validation


class Checker:
    """Says what fits a checked schema, and its parts. All its answers together have one budget."""

    def __init__(self, schema: dict[str, Any], *, steps: int = STEPS) -> None:
        left = iter(range(steps))
        keywords = {name: _counted(keyword, left) for name, keyword in Draft202012Validator.VALIDATORS.items()}
        kind = validators.extend(Draft202012Validator, {**keywords, "pattern": _matches})
        # A registry of its own: without one, a reference to an address would be fetched.
        self._validator = kind(schema, registry=Registry(), format_checker=_FORMATS)
        self._schema = schema

    def problems(self, value: Any, *, most: int = 5) -> list[str]:
        """Return what of `value` does not fit, at most `most` sentences; none: it fits. Raises: TooMuch."""
        found = self._errors(self._schema, value, most)
        return [f"{_path(error) or 'the object'}: {error.message[:200]}" for error in found]

    def fits(self, place: Any, value: Any) -> bool:
        """Whether `value` fits `place`, a part of the schema. Raises: TooMuch."""
        return not self._errors(place, value, 1)

    def _errors(self, place: Any, value: Any, most: int) -> list[ValidationError]:
        try:
            return list(islice(self._validator.evolve(schema=place).iter_errors(value), most))
        except RecursionError as error:
            raise TooMuch from error
        except Unresolvable as error:
            return [ValidationError(f"a reference cannot be followed: {error}")]


def _counted(keyword: Callable[..., Any], steps: Iterator[int]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        if next(steps, None) is None:
            raise TooMuch
        return keyword(*arguments)

    return counted


def _matches(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str):
        try:
            _pattern(pattern).validate_python(value)
        except Mismatch:
            yield ValidationError(f"{value[:100]!r} does not match {pattern[:100]!r}")


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> TypeAdapter[str]:
    """Return what checks a pattern in linear time: the engine of pydantic. Raises: ValueError."""
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern.replace(_DECIMAL, ""))])
    except UnreadablePattern:
        raise ValueError(
            f"the pattern {pattern[:100]!r} is not supported: no look-around, no back-references"
        ) from None


def _path(error: ValidationError | SchemaError) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")[
        :200
    ]


def _date(value: object) -> bool:
    return not isinstance(value, str) or bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value) and date.fromisoformat(value))


def _date_time(value: object) -> bool:
    return not isinstance(value, str) or ("T" in value and datetime.fromisoformat(value).tzinfo is not None)


def _uuid(value: object) -> bool:
    return not isinstance(value, str) or str(UUID(value)) == value.lower()


def _email(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


_FORMATS = FormatChecker(formats=())
for _name, _check in {"date": _date, "date-time": _date_time, "uuid": _uuid, "email": _email}.items():
    _FORMATS.checks(_name, raises=ValueError)(_check)
