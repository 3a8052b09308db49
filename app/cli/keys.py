"""The API keys of a project, for people at a shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import cast
from uuid import UUID

from app import errors
from app.cli import chosen
from app.config import Settings
from app.domain import access, pins
from app.model import KEY_SCOPES, ApiKey, KeyRole, KeyScope, Pins
from app.runtime import open_runtime

CONNECTION = "connection"  #: name of the key in connection.json; each start makes it anew


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def seconds(text: str) -> float:
    """Read a duration such as 90s, 15m, 12h, 30d or 2w. Raises: InvalidRequest."""
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", text.strip())
    if found is None:
        if text.strip() == "0":
            return 0.0
        raise errors.InvalidRequest(f"{text!r} is no duration; write 90s, 15m, 12h, 30d or 2w")
    return float(found[1]) * _UNITS[found[2]]


def moment(text: str) -> datetime:
    """Read when something ends: a duration from now, or a date or time in ISO 8601. Raises: InvalidRequest."""
    if re.fullmatch(r"[0-9]+[smhdw]", text.strip()):
        return datetime.now(UTC) + timedelta(seconds=seconds(text))
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise errors.InvalidRequest(f"{text!r} is no time; write 30d, 2027-01-31 or 2027-01-31T12:00:00Z") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def granted(
    *, role: KeyRole, scopes: Sequence[str] = (), expires: str | None = None, pin: Sequence[str] = ()
) -> access.Grant:
    """Return what a key may do, from what somebody typed. Raises: InvalidRequest."""
    return access.Grant(
        role=role,
        scopes=_scopes(scopes) or None,
        expires_at=None if expires is None else moment(expires),
        pins=_pins(pin),
    )


def _scopes(typed: Sequence[str]) -> tuple[KeyScope, ...]:
    unknown = [one for one in typed if one not in KEY_SCOPES]
    if unknown:
        raise errors.InvalidRequest(f"there is no scope {unknown[0]!r}; the scopes are {', '.join(KEY_SCOPES)}")
    return tuple(one for one in KEY_SCOPES if one in typed)


def _pins(typed: Sequence[str]) -> Pins:
    patterns: dict[str, list[str]] = {}
    for one in typed:
        name, equals, pattern = one.partition("=")
        if not equals:
            raise errors.InvalidRequest(f"{one!r} is no pin; write it as user_id=alice or user_id=team-*")
        patterns.setdefault(name.strip(), []).append(pattern)
    return pins.read(patterns)


def _role(typed: str) -> KeyRole:
    if typed not in ("owner", "member"):
        raise errors.InvalidRequest(f"there is no role {typed!r}; the roles are owner and member")
    return cast(KeyRole, typed)


def _listed(typed: str) -> list[str]:
    return [] if typed == NONE else [part.strip() for part in typed.split(",")]


NONE = "none"  #: typed for an empty list of pins

#: What `memoryd keys set` changes beside the name, and how a typed value changes what the key may do.
CHANGES: dict[str, Callable[[str], Callable[[access.Grant], access.Grant]]] = {
    "role": lambda typed: partial(replace, role=_role(typed)),
    "scopes": lambda typed: partial(replace, scopes=_scopes(_listed(typed))),
    "expires": lambda typed: partial(replace, expires_at=None if typed == "never" else moment(typed)),
    "pins": lambda typed: partial(replace, pins=_pins(_listed(typed))),
}


async def change(settings: Settings, text: str, field: str, value: str, *, project: str | None = None) -> ApiKey:
    """Change one thing about the key that has this id: its name, or what `CHANGES` names.

    Raises: NotFound, InvalidRequest, Conflict.
    """
    if field != "name" and field not in CHANGES:
        raise errors.InvalidRequest(f"a key has no {field!r}; change name, {', '.join(CHANGES)}")
    grant = None if field == "name" else CHANGES[field](value)
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        of = await chosen.project(rt, project)
        key = _chosen(await access.list_keys(rt, of), text)
        return await access.change_key(rt, of, key.id, name=value if field == "name" else None, change=grant)


async def show(settings: Settings, text: str, *, project: str | None = None) -> ApiKey:
    """Return the key that has this id. Raises: NotFound, InvalidRequest."""
    return _chosen(await list_all(settings, project=project), text)


async def create(settings: Settings, name: str, grant: access.Grant, *, project: str | None = None) -> str:
    """Return a new key's secret. On an empty database its project is made first.

    `project`: id or name; None: the default project.
    Raises: InvalidRequest.
    """
    grant = grant.checked()
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        if project is None:
            await access.first_project(rt)
        _, secret = await access.create_key(rt, await chosen.project(rt, project), name=name, grant=grant)
        return secret


async def rotate(
    settings: Settings, text: str, *, overlap: str, expires: str | None = None, project: str | None = None
) -> tuple[ApiKey, str]:
    """Return a key that may do the same as the one with this id, and its secret; the former one ends after `overlap`.

    Raises: NotFound, InvalidRequest, Conflict.
    """
    overlap_s = seconds(overlap)
    expires_at = None if expires is None else moment(expires)
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        of = await chosen.project(rt, project)
        key = _chosen(await access.list_keys(rt, of), text)
        return await access.rotate_key(rt, of, key.id, overlap_s=overlap_s, expires_at=expires_at)


async def list_all(settings: Settings, *, project: str | None = None) -> list[ApiKey]:
    """Return all keys of a project, oldest first."""
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        return await access.list_keys(rt, await chosen.project(rt, project))


def line(key: ApiKey) -> str:
    """Return a key on one line."""
    return f"{key.id}  {key.prefix}…  {key.name}  {rights(key)}  ({life(key)})"


async def revoke(settings: Settings, text: str, *, project: str | None = None) -> ApiKey:
    """Make the key useless that has this id.

    Raises: NotFound, InvalidRequest.
    """
    async with open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        of = await chosen.project(rt, project)
        key = _chosen(await access.list_keys(rt, of), text)
        await access.revoke_key(rt, of, key.id)
        return key


def rights(key: ApiKey) -> str:
    """Return in short what a key may do."""
    words: list[str] = [key.role]
    if key.scopes != KEY_SCOPES:
        words.append(",".join(key.scopes))
    if key.pins:
        words.append(f"only {pins.shown(key.pins)}")
    return "  ".join(words)


def life(key: ApiKey) -> str:
    """Return in short when a key was made and used, and when it ends or ended."""
    words = [f"made {_day(key.created_at)}", f"used {_day(key.last_used_at)}" if key.last_used_at else "never used"]
    if key.revoked_at:
        words.append(f"revoked {_day(key.revoked_at)}")
    elif key.expires_at:
        verb = "expired" if key.expires_at <= datetime.now(UTC) else "expires"
        words.append(f"{verb} {_day(key.expires_at)}")
    return ", ".join(words)


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


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
