"""Keys that are pinned to owners: what such a key may reach. Pure, but for the refusals.

A pin is a set of patterns for an owner field, in which `*` stands for any characters: {"user_id": ("alice", "team-*")}.
The named owner must be there and match one of its patterns; with several fields, each of them. A key without pins
reaches its whole project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from app import errors
from app.model import (
    OWNER_FIELDS,
    And,
    Caller,
    Condition,
    FilterNode,
    KeyScope,
    Memory,
    Operator,
    Or,
    OwnerKind,
    Owners,
    Pins,
)

PATTERN_CHARS = 255  #: of one pattern, at most; an owner's id has no more
PATTERNS = 20  #: of one key, at most

#: What a pinned key may be allowed: everything else shows or changes more than some owners' memories.
SCOPES: tuple[KeyScope, ...] = ("memories:read", "memories:write", "memories:delete")


def read(raw: Mapping[str, Sequence[str]]) -> Pins:
    """Return pins as they are stored, from what somebody wrote.

    Raises: InvalidRequest.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, patterns in raw.items():
        if name not in OWNER_FIELDS:
            raise errors.InvalidRequest(f"A key can be pinned to {', '.join(OWNER_FIELDS)}, and not to {name[:80]!r}.")
        trimmed = tuple(dict.fromkeys(pattern.strip() for pattern in patterns))
        if not trimmed or any(not pattern or len(pattern) > PATTERN_CHARS or "\0" in pattern for pattern in trimmed):
            raise errors.InvalidRequest(f"A pattern for {name} has 1 to {PATTERN_CHARS} characters.")
        found[name] = trimmed
    if sum(map(len, found.values())) > PATTERNS:
        raise errors.InvalidRequest(f"A key can be pinned to at most {PATTERNS} patterns.")
    return found


def allows(pins: Pins, owners: Owners) -> bool:
    """Return whether memories of exactly these owners are inside the pins."""
    named = owners.named()
    return all(name in named and _matches(patterns, named[name]) for name, patterns in pins.items())


def covers(pins: Pins, kind: OwnerKind, name: str) -> bool:
    """Return whether every memory that names this owner is inside the pins, whomever else it names."""
    return not pins or (set(pins) == {f"{kind}_id"} and _matches(pins[f"{kind}_id"], name))


def _matches(patterns: Sequence[str], name: str) -> bool:
    return any(
        re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", pattern))), name, re.DOTALL) is not None
        for pattern in patterns
    )


def narrowed(caller: Caller, node: FilterNode) -> FilterNode:
    """Return `node` within the caller's pins, which stand outside of everything that the request says."""
    return And((_node(caller.pins), node)) if caller.pins else node


def _node(pins: Pins) -> FilterNode:
    return And(
        tuple(
            Or(tuple(Condition(name, Operator.GLOB if "*" in one else Operator.EQ, one) for one in patterns))
            for name, patterns in pins.items()
        )
    )


def require(caller: Caller, *owners: Owners) -> None:
    """Refuse to write outside of the caller's pins. Raises: NotAllowed."""
    for one in owners:
        if not allows(caller.pins, one):
            told = ", ".join(f"{name}={value}" for name, value in one.named().items())
            raise errors.NotAllowed(f"This key is pinned to {shown(caller.pins)}, and may not write for {told[:200]}.")


def require_owner(caller: Caller, kind: OwnerKind, name: str) -> None:
    """Refuse an owner some of whose memories may be outside of the caller's pins. Raises: NotAllowed."""
    if not covers(caller.pins, kind, name):
        raise errors.NotAllowed(f"This key is pinned to {shown(caller.pins)}, which does not cover this {kind}.")


def hide(caller: Caller, memory: Memory) -> None:
    """Let a memory outside of the caller's pins not exist. Raises: MemoryNotFound."""
    if not allows(caller.pins, memory.owners):
        raise errors.MemoryNotFound


def shown(pins: Pins) -> str:
    """Return pins as the command line takes them."""
    return " and ".join(" or ".join(f"{name}={one}" for one in patterns) for name, patterns in pins.items())
