"""Pure: the filter language, from JSON to a tree of `model.FilterNode`.

    filter := {key: value, ...}                 siblings are ANDed
    key    := AND | OR | NOT | field | metadata.<key>
    AND OR := [filter, ...]                     NOT := filter | [filter, ...]   (an array is NOT of the AND)
    field  := value | "*" (not null) | [value, ...] (memory_ids, categories) | {operator: operand, ...}

Logic is two-valued: a null or absent field satisfies `ne`, `nin` and NOT. A date without a time means its whole day in
UTC. What cannot be applied is refused, never left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from app.domain import filter_fields
from app.domain import filter_values as read
from app.errors import InvalidRequest, OwnerRequired
from app.model import OWNER_FIELDS, And, Condition, FilterNode, Not, Operator, Or, State

_LOGICAL = ("AND", "OR", "NOT")
_NO_OWNER = (
    "filters must name at least one of user_id, agent_id, app_id, run_id, by its value, a list (in) or \"*\"; "
    "ne and NOT alone do not count."
)  # fmt: skip


def parse(raw: object, *, max_depth: int, max_conditions: int) -> FilterNode:
    """Read the `filters` of a request.

    An AND, OR or NOT that was written stays a node of its own, also around a single part: `null_scoped` looks at the root.

    Args:
        raw: decoded JSON of any kind.
        max_depth: how many AND, OR and NOT may lie inside each other.
        max_conditions: comparisons in the whole tree.

    Raises: InvalidRequest, its text names the offending key.
    """
    if raw is None or raw == {}:
        raise InvalidRequest(f"filters must not be empty: an entity id is required. {_NO_OWNER}")
    if not isinstance(raw, dict):
        raise InvalidRequest("filters must be an object such as {\"user_id\": \"alice\"}.")  # fmt: skip
    return _Reader(max_depth, max_conditions).group(raw, depth=0)


def require_owner(node: FilterNode) -> None:
    """Refuse a tree that names no owner positively outside every NOT.

    `eq`, `in`, `"*"` and `exists: true` count. One is enough wherever it stands, also in one branch of an OR: the rule guards
    against forgotten ids, while the project is the wall between tenants.

    Raises: OwnerRequired.
    """
    if not _names_owner(node):
        raise OwnerRequired(_NO_OWNER)


def null_scoped(node: FilterNode) -> FilterNode:
    """Demand null of each owner that the tree names nowhere, unless its root is OR or NOT (implicit null scoping).

    Any mention counts as naming, `"*"` and one under NOT included. An OR below an AND does not lift the rule.
    """
    if isinstance(node, Or | Not):
        return node
    named = {condition.field for condition in conditions(node)}
    nulls = tuple(Condition(name, Operator.EXISTS, False) for name in OWNER_FIELDS if name not in named)
    return And((node, *nulls)) if nulls else node


def narrow(
    node: FilterNode,
    *,
    categories: object = None,
    metadata: object = None,
    keywords: object = None,
    start_date: object = None,
    end_date: object = None,
    show_expired: bool = False,
    latest_only: bool = False,
    include_merged: bool = False,
    today: date,
) -> FilterNode:
    """AND what list and search take beside `filters`, and hide what is not shown unless asked for.

    Args:
        categories: list of exact names, one of which must match.
        metadata: object, read as the filter field of that name.
        keywords: text that the memory contains, in any case; blank means not given.
        start_date: first day or instant of `created_at`, inclusive.
        end_date: last day or instant of `created_at`, inclusive.
        show_expired: also memories whose expiration date has passed; a filter on `expiration_date` does not imply it.
        latest_only: neither superseded nor merged memories; wins over `include_merged`.
        include_merged: also memories that were merged into a fuller one.
        today: the day in UTC that expiration is measured by.

    Raises: InvalidRequest, its text names the parameter.
    """
    parts = [node]
    if categories is not None:
        parts.append(filter_fields.any_category("categories", categories))
    if metadata is not None and metadata != {}:
        parts.append(filter_fields.metadata("metadata", metadata))
    if keywords is not None and read.text("keywords", keywords).strip():
        parts.append(Condition("text", Operator.ICONTAINS, read.text("keywords", keywords).strip()))
    if start_date is not None:
        parts.append(Condition("created_at", Operator.GTE, read.moment("start_date", start_date)))
    if end_date is not None:
        parts.append(Condition("created_at", Operator.LTE, read.moment("end_date", end_date)))
    if not show_expired:
        unlimited = Condition("expiration_date", Operator.EXISTS, False)
        parts.append(Or((unlimited, Condition("expiration_date", Operator.GTE, today))))
    if latest_only:
        parts.append(Condition("state", Operator.EQ, State.ACTIVE.value))
    elif not include_merged:
        parts.append(Condition("state", Operator.IN, (State.ACTIVE.value, State.SUPERSEDED.value)))
    return And(tuple(parts)) if len(parts) > 1 else node


def conditions(node: FilterNode) -> Iterator[Condition]:
    """Yield every comparison of the tree, from left to right."""
    match node:
        case Condition():
            yield node
        case Not(part):
            yield from conditions(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from conditions(part)


def _names_owner(node: FilterNode) -> bool:
    match node:
        case Condition(field, op, value):
            positive = op in (Operator.EQ, Operator.IN, Operator.ANY) or (op is Operator.EXISTS and value is True)
            return field in OWNER_FIELDS and positive
        case And(parts) | Or(parts):
            return any(_names_owner(part) for part in parts)
        case Not():
            return False


@dataclass(slots=True)
class _Reader:
    """Walks the logical operators; depth is checked before each step down, so the recursion is bounded."""

    max_depth: int
    max_conditions: int
    seen: int = 0  # conditions so far

    def group(self, raw: dict[str, object], *, depth: int) -> FilterNode:
        return filter_fields.all_of([self._entry(key, value, depth=depth) for key, value in raw.items()])

    def _entry(self, key: str, value: object, *, depth: int) -> FilterNode:
        if key not in _LOGICAL:
            node = filter_fields.entry(key, value)
            self.seen += sum(1 for _ in conditions(node))
            if self.seen > self.max_conditions:
                raise read.refusal(key, f"is one condition too many: at most {self.max_conditions} are allowed.")
            return node
        if depth >= self.max_depth:
            raise read.refusal(key, f"is nested too deep: at most {self.max_depth} levels of AND, OR, NOT are allowed.")
        parts = tuple(self.group(part, depth=depth + 1) for part in _parts(key, value))
        if key == "AND":
            return And(parts)
        if key == "OR":
            return Or(parts)
        return Not(filter_fields.all_of(list(parts)))


def _parts(key: str, value: object) -> list[dict[str, object]]:
    """Return the operands of a logical operator, each an object with at least one key."""
    if key == "NOT" and isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not value:
        accepted = "an object or a list of objects" if key == "NOT" else "a list of objects"
        raise read.refusal(key, f"must be {accepted}, with at least one in it.")
    for part in value:
        if not isinstance(part, dict) or not part:
            raise read.refusal(key, "must hold objects with at least one key each.")
    return value
