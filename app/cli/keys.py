"""The API keys of a project, for people at a shell."""

from __future__ import annotations

from uuid import UUID

from app import errors
from app.cli import chosen
from app.config import Settings
from app.domain import access
from app.model import ApiKey, KeyRole
from app.runtime import open_runtime

CONNECTION = "connection"  #: name of the key in connection.json; each start makes it anew


async def create(settings: Settings, name: str, *, role: KeyRole = "owner", project: str | None = None) -> str:
    """Return a new key's secret. On an empty database it is the first key.

    `project`: id or name; None: the default project.
    """
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        if project is None:
            first = await access.bootstrap(rt, role=role)
            if first.secret is not None:
                return first.secret
        _, secret = await access.create_key(rt, await chosen.project(rt, project), name=name, role=role)
        return secret


async def list_all(settings: Settings, *, project: str | None = None) -> list[ApiKey]:
    """Return all keys of a project, oldest first."""
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        return await access.list_keys(rt, await chosen.project(rt, project))


async def revoke(settings: Settings, text: str, *, project: str | None = None) -> ApiKey:
    """Make the key useless that has this id.

    Raises: NotFound, InvalidRequest.
    """
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        of = await chosen.project(rt, project)
        key = _chosen(await access.list_keys(rt, of), text)
        await access.revoke_key(rt, of, key.id)
        return key


def _chosen(keys: list[ApiKey], text: str) -> ApiKey:
    try:
        found = [key for key in keys if key.id == UUID(text)]
    except ValueError:
        raise errors.InvalidRequest(f"{text!r} is not the id of a key; `memoryd keys list` shows them") from None
    if not found:
        raise errors.NotFound(f"there is no key {text}; `memoryd keys list` shows them")
    return found[0]


async def open_door(settings: Settings) -> tuple[str, bool]:
    """Return a key for connection.json, and whether it is the first key of all, which people are shown.

    A secret is not stored anywhere, so a later start makes a new key and revokes the one of the start before.
    """
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        first = await access.bootstrap(rt)
        if first.secret is not None:
            return first.secret, True
        former = [key for key in await access.list_keys(rt, first.project) if _is_former(key)]
        _, secret = await access.create_key(rt, first.project, name=CONNECTION)
        for key in former:
            await access.revoke_key(rt, first.project, key.id)
        return secret, False


def _is_former(key: ApiKey) -> bool:
    return key.name == CONNECTION and key.revoked_at is None
