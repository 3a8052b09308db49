"""Which organization or project a person at a shell means, and the opened runtime to act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app import config, errors, log
from app.domain import access, tenancy
from app.model import Organization, Project
from app.runtime import Runtime, open_runtime

T = TypeVar("T")


def run(verb: Callable[[Runtime], Awaitable[T]]) -> T:
    """Read the settings, find the database, run `verb` and return what it returns."""
    from app.cli import addresses

    settings = config.load()
    log.configure(settings.log_level, json_lines=settings.log_json)
    settings = addresses.complete(settings)

    async def opened() -> T:
        async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
            return await verb(rt)

    return asyncio.run(opened())


async def organization(rt: Runtime, text: str | None) -> Organization:
    """Return the organization with this id or name; None: the default one. Raises: NotFound, InvalidRequest."""
    views = [view.organization for view in await tenancy.organizations(rt, None)]
    if text is None:
        default = await access.default_project(rt)
        return next(one for one in views if one.id == default.organization_id)
    return _one("organization", text, [one for one in views if text in (one.public_id, one.name)])


async def project(rt: Runtime, text: str | None) -> Project:
    """Return the project with this id or name; None: the default one. Raises: NotFound, InvalidRequest."""
    if text is None:
        return await access.default_project(rt)
    found = [one for one in await tenancy.all_projects(rt) if text in (one.public_id, one.name)]
    return _one("project", text, found)


def _one(what: str, text: str, found: list[T]) -> T:
    if not found:
        command = {"organization": "org"}.get(what, what)
        raise errors.NotFound(f"there is no {what} {text!r}; `memoryd {command} list` shows them")
    if len(found) > 1:
        raise errors.InvalidRequest(f"{len(found)} {what}s are called {text!r}; give the id")
    return found[0]
