"""Real rows with sensible defaults."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

from uuid_utils.compat import uuid7

from app.model import Entity, Memory, NewMemory, Owners, Project, ProjectSettings, Scope
from app.store import memories, orgs, scopes
from app.store.db import Conn
from tests import fakes


async def make_project(conn: Conn, *, settings: ProjectSettings | None = None) -> Project:
    """Insert a project in an organization of its own."""
    organization = await orgs.insert_organization(conn, name="Test")
    return await orgs.insert_project(conn, organization.id, name="test", settings=settings or ProjectSettings())


async def make_scope(conn: Conn, project: Project, **owners: str) -> Scope:
    """Return the scope of these owners; without any, the user alice's."""
    return await scopes.ensure(conn, project.id, Owners(**(owners or {"user_id": "alice"})))


def md5(text: str) -> str:
    """Return the hash of a memory's text."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def terms(text: str) -> dict[str, int]:
    """Return the folded words of a text and how often each is in it."""
    return dict(Counter(re.findall(r"\w+", text.casefold())))


def entities(text: str) -> tuple[Entity, ...]:
    """Return the capitalised words of a text, each once."""
    names = dict.fromkeys(re.findall(r"\b[A-Z]\w+", text))
    return tuple(Entity(name, name.casefold()) for name in names)


def new_memory(scope: Scope, text: str, **changes: Any) -> NewMemory:
    """Return a memory of `scope` that is ready to be stored, analysed in the simplest way."""
    values: dict[str, Any] = {
        "id": uuid7(),
        "hash": md5(text),
        "embedding": fakes.vector(text),
        "terms": terms(text),
        "entities": entities(text),
    }
    return NewMemory(scope_id=scope.id, owners=scope.owners, text=text, **(values | changes))


async def make_memory(conn: Conn, scope: Scope, text: str, **changes: Any) -> Memory:
    """Insert one memory."""
    made = await memories.insert_many(conn, scope.project_id, [new_memory(scope, text, **changes)], model=fakes.MODEL)
    return made[0]


async def make_key(rt: Any, project: Project) -> str:
    """Make an API key of `project`; return the secret."""
    from app.domain import access

    _, secret = await access.create_key(rt, project, name="test")
    return secret


def make_app(rt: Any) -> Any:
    """Return the API over this runtime."""
    from app.api import create_app

    return create_app(rt)
