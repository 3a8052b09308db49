"""Whose memory a fact is: the scopes that the memories of an add go to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.model import Owners, Scope


def targets(owners: Owners, *, split: bool) -> tuple[Owners, ...]:
    """Return the owners that memories of an add can belong to, those of the user's facts first.

    One entry: everything belongs together. Two: what the user stated goes to the first, what the assistant stated to the
    second, each without the other's id; application and run stay on both.
    """
    if not split or owners.user_id is None or owners.agent_id is None:
        return (owners,)
    return (replace(owners, agent_id=None), replace(owners, user_id=None))


def scope_of(role: str, scopes: Sequence[Scope]) -> Scope:
    """Return the scope for a statement of `role`; `scopes` are in the order of `targets`."""
    return scopes[-1] if role == "assistant" else scopes[0]
