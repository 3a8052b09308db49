"""What is asked for: the filter tree, built by the verbs and compiled by the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Operator(StrEnum):
    EQ = "eq"
    NE = "ne"  # includes rows whose field is null or absent
    IN = "in"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    CONTAINS = "contains"
    ICONTAINS = "icontains"
    ANY = "*"  # not null
    EXISTS = "exists"
    GLOB = "glob"  # of owners, `*` for any characters; from the pins of keys alone, no request can ask for it


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison. `key` is set for a metadata condition: the name inside the metadata object."""

    field: str
    op: Operator
    value: Any = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[FilterNode, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[FilterNode, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: FilterNode


FilterNode = Condition | And | Or | Not
