"""The audit log: a line for everything that administers or destroys, in the transaction that does it.

A line says who did what to which ids, and never what is in them: no text, no name and no secret. People are written as marks,
a digest each: so the erase of an owner or a project has nothing to take away here, and who knows an id finds its lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from app.model import AuditLine, AuditOutcome, Caller, Condition, Operator, Organization, OwnerKind, Project
from app.store import audit
from app.store.db import Conn

SHELL = "cli"  #: actor of whatever no API key has asked for
MARK_CHARS = 16  #: of the digest of an owner: enough to tell a project's owners apart
MOST_MARKS = 20  #: of one line; a filter can name a thousand owners

_KINDS: dict[str, OwnerKind] = {"user_id": "user", "agent_id": "agent", "app_id": "app", "run_id": "run"}

#: Every action that is written. Stable: people filter by them.
ACTIONS = frozenset(
    f"{noun}.{verb}"
    for noun, verbs in {
        "organization": ("create", "rename", "delete"),
        "project": ("create", "update", "limits", "delete"),
        "member": ("add", "update", "remove"),
        "key": ("create", "change", "rotate", "revoke"),
        "webhook": ("create", "update", "delete", "rotate", "replay"),
        "memories": ("delete_all", "delete_batch", "import"),
        "entity": ("erase",),
        "export": ("create", "raw"),
        "profiles": ("settings",),
        "event": ("retry",),
    }.items()
    for verb in verbs
)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, as far as the door knows."""

    caller: Caller | None = None  # None: somebody at a shell
    address: str | None = None  # where the request came from
    request_id: str | None = None

    @property
    def name(self) -> str:
        """As lines name it: the id of the key, which is not the key, or `cli`."""
        return SHELL if self.caller is None else str(self.caller.key_id)


_SOMEBODY_AT_A_SHELL = Actor()
_actor: ContextVar[Actor] = ContextVar("memoryd.actor", default=_SOMEBODY_AT_A_SHELL)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Write the lines of the body for this actor."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


async def note(
    conn: Conn,
    action: str,
    *,
    project: Project | None = None,
    organization: str | None = None,
    objects: Sequence[object] = (),
    outcome: AuditOutcome = "ok",
) -> None:
    """Write a line in the caller's transaction.

    `project`: what was acted upon or in; without one, `organization` by its public id. `objects`: ids; of owners and members, marks.
    """
    assert action in ACTIONS, action
    actor = _actor.get()
    line = AuditLine(
        actor=actor.name,
        action=action,
        organization=organization if project is None else project.organization_public_id,
        project=None if project is None else project.public_id,
        objects=tuple(map(str, objects)),
        outcome=outcome,
        address=actor.address,
        request_id=actor.request_id,
    )
    by = None if actor.caller is None else actor.caller.project.id
    await audit.insert(conn, 0 if project is None else project.id, by, line)


def owner_mark(project: Project, kind: OwnerKind, name: str) -> str:
    """Return what stands for an owner in a line: its kind and a digest, the same for the same owner of a project."""
    return _mark(project.public_id, kind, name)


def member_mark(within: Project | Organization, email: str) -> str:
    """Return what stands for a member of a project or an organization; two addresses that differ in case are one."""
    return _mark(within.public_id, "member", email.casefold())


def _mark(within: str, kind: str, name: str) -> str:
    digest = hashlib.sha256("\0".join((within, kind, name)).encode()).hexdigest()
    return f"{kind}:{digest[:MARK_CHARS]}"


def marks(project: Project, conditions: Sequence[Condition]) -> list[str]:
    """Return the marks of the owners that conditions name; `user:*` where they name users otherwise than by their id."""
    found: dict[str, None] = {}
    for condition in conditions:
        if condition.field not in _KINDS:
            continue
        kind = _KINDS[condition.field]
        named = condition.value if condition.op is Operator.IN else [condition.value]
        if condition.op not in (Operator.EQ, Operator.IN) or len(named) > MOST_MARKS:
            found[f"{kind}:*"] = None
        else:
            found |= {owner_mark(project, kind, str(name)): None for name in named}
    return list(found)


def shown(line: AuditLine) -> dict[str, Any]:
    """Return a line as the route and the command show it."""
    return {
        "at": line.at,
        "action": line.action,
        "actor": line.actor,
        "org_id": line.organization,
        "project_id": line.project,
        "objects": line.objects,
        "outcome": line.outcome,
        "address": line.address,
        "request_id": line.request_id,
    }
