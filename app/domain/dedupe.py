"""The same text is remembered once in a scope. Pure; the unique key of the table holds it against every race."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar


class Hashed(Protocol):
    """Something that may become a memory."""

    @property
    def scope_id(self) -> int:
        """The scope that it goes to."""

    @property
    def hash(self) -> str:
        """MD5 of its text."""


Item = TypeVar("Item", bound=Hashed)


def md5(text: str) -> str:
    """Return the MD5 of the text, in hexadecimal: the text's identity in its scope, compared code point for code point."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def new(items: Sequence[Item], known: Collection[tuple[int, str]] = ()) -> list[Item]:
    """Return the items, in order, without those whose (scope id, hash) is `known` or came before."""
    seen = set(known)
    fresh = []
    for item in items:
        pair = (item.scope_id, item.hash)
        if pair not in seen:
            seen.add(pair)
            fresh.append(item)
    return fresh
