"""Which condition of a request keeps a memory out, and filters that would let it through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import errors
from app.config import Settings
from app.domain import filters
from app.model import OWNER_FIELDS, Condition, FilterNode, Memory, Operator


@dataclass(frozen=True, slots=True)
class Wanted:
    """One condition of a request, all of which a memory must meet."""

    name: str  # the field of the request that it stands in
    field: str  # what it asks about: a field of memories, or AND, OR, NOT
    asked: Any  # as it was sent; None: the owner must be absent, because the filters do not name it
    node: FilterNode


def wanted(raw: Mapping[str, Any], settings: Settings, *, null_scoping: bool) -> list[Wanted]:
    """Return what `filters` ask for, part by part. They are known to be valid."""
    parts = [Wanted("filters", name, value, _parsed({name: value}, settings)) for name, value in _conjuncts(raw)]
    whole = _parsed(raw, settings)
    if null_scoping and filters.null_scoped(whole) is not whole:
        named = {condition.field for condition in filters.conditions(whole)}
        parts += [
            Wanted("filters", name, None, Condition(name, Operator.EXISTS, False))
            for name in OWNER_FIELDS
            if name not in named
        ]
    return parts


def _parsed(raw: object, settings: Settings) -> FilterNode:
    return filters.parse(raw, max_depth=settings.max_filter_depth, max_conditions=settings.max_filter_conditions)


def _conjuncts(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parts that are joined by AND, however deep the ANDs lie in each other."""
    for name, value in raw.items():
        if name == "AND":
            for part in value:
                yield from _conjuncts(part)
        else:
            yield name, value


def has(memory: Memory, field: str) -> Any:
    """Return what the memory has where a condition asks; None also where it is no plain field."""
    owners = {name: getattr(memory.owners, name) for name in OWNER_FIELDS}
    plain = {
        **owners,
        "id": str(memory.id),
        "memory_ids": str(memory.id),
        "created_at": memory.created_at.isoformat(),
        "timestamp": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        "expiration_date": memory.expiration_date and memory.expiration_date.isoformat(),
        "categories": memory.categories and list(memory.categories),
        "metadata": memory.metadata,
        "state": memory.state.value,
    }
    if field.startswith("metadata."):
        return (memory.metadata or {}).get(field.removeprefix("metadata."))
    return plain.get(field)


def letting_through(memory: Memory, met: Sequence[Wanted], settings: Settings) -> dict[str, Any]:
    """Return filters of the memory's own owners, with those conditions of `met` that ask about anything else."""
    own = [{name: value} for name, value in memory.owners.named().items()]
    kept = [{part.field: part.asked} for part in met if not _mentions_owner(part)]
    raw = {"AND": [*own, *kept]}
    try:
        _parsed(raw, settings)
    except errors.InvalidRequest:  # the kept ones and its owners together pass a limit
        return {"AND": own}
    return raw if len(own) + len(kept) > 1 else own[0]


def only(memory: Memory) -> dict[str, Any]:
    """Return filters that let the memory through and no other one."""
    own = [{name: value} for name, value in memory.owners.named().items()]
    return {"AND": [*own, {"memory_ids": [str(memory.id)]}]}


def _mentions_owner(part: Wanted) -> bool:
    return part.asked is None or any(condition.field in OWNER_FIELDS for condition in filters.conditions(part.node))
