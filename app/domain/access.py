"""Keys: who may come in, and to which project."""

from __future__ import annotations

import hashlib
import secrets
import string
import time
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.domain import audit, pins
from app.model import KEY_SCOPES, ApiKey, Caller, KeyRole, KeyScope, Member, Pins, Project, ProjectSettings
from app.runtime import Runtime
from app.store import keys, members, orgs
from app.store.db import Conn

KEY_PREFIX = "m0-"
SECRET_LENGTH = 43  #: characters of base 62: 256 bits
CHECKSUM_LENGTH = 6  #: CRC-32 in base 62, so that a mistyped key is known without a query
SHOWN_LENGTH = 9  #: characters of a key that are stored and shown, to recognise it by
NAME_CHARS = 100  #: of a key's name, at most
CACHE_S = 5.0  #: a revoked key stops working within this time, in every process
CACHE_KEYS = 10_000  #: callers remembered at most
USE_NOTED_S = 60.0  #: the time of the last use is written at most so often a key
OVERLAP_S = 86_400.0  #: seconds that a key goes on working after it was rotated
ADMIN_EMAIL = "admin@localhost"  #: whom the ping names, as long as there are no accounts
DEFAULT_ORGANIZATION = "default-org"
DEFAULT_PROJECT = "default-project"

_NO_KEY = "There is no such key."
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase

_callers: dict[bytes, tuple[float, Caller]] = {}  # digest → when it was read, whose key it is
_noted: dict[UUID, float] = {}  # key → when its use was written last


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What the first start made."""

    project: Project
    secret: str | None  # the first key, shown once; None: there was one already


def new_secret() -> str:
    """Return a key that nobody has."""
    body = KEY_PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(SECRET_LENGTH))
    return body + _checksum(body)


def well_formed(secret: str) -> bool:
    """Return whether this can be a key of ours; asks nobody."""
    if len(secret) != len(KEY_PREFIX) + SECRET_LENGTH + CHECKSUM_LENGTH or not secret.isascii():
        return False
    body, checksum = secret[:-CHECKSUM_LENGTH], secret[-CHECKSUM_LENGTH:]
    return body.startswith(KEY_PREFIX) and secrets.compare_digest(_checksum(body), checksum)


def digest_of(secret: str) -> bytes:
    """Return what is stored of a key: its SHA-256. A random 256-bit secret needs no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


async def authenticate(rt: Runtime, secret: str) -> Caller:
    """Return whose key this is; the answer may be up to `CACHE_S` seconds old.

    Raises: NotAuthenticated, DatabaseUnavailable.
    """
    digest = digest_of(secret)
    known = _callers.get(digest)
    if known is not None and time.monotonic() - known[0] < CACHE_S:
        return known[1]
    if not well_formed(secret):
        raise errors.NotAuthenticated
    async with rt.db.acquire(None) as conn:
        key = await keys.find_by_digest(conn, digest)
        if key is None or key.revoked_at is not None:
            _callers.pop(digest, None)
            raise errors.NotAuthenticated
        project = await orgs.get_project(conn, key.project_id)
    caller = Caller(project=project, key_id=key.id, email=ADMIN_EMAIL, role=key.role, scopes=key.scopes, pins=key.pins)
    _remember(digest, caller)
    return caller


def _remember(digest: bytes, caller: Caller) -> None:
    _callers.pop(digest, None)
    while len(_callers) >= CACHE_KEYS:
        _callers.pop(next(iter(_callers)))  # the one that was read first
    _callers[digest] = (time.monotonic(), caller)


def forget() -> None:
    """Read every key and project anew at its next use, in this process; others follow within `CACHE_S`."""
    _callers.clear()


async def note_use(rt: Runtime, caller: Caller) -> None:
    """Write down when the key was used, at most once in `USE_NOTED_S` seconds a key."""
    now = time.monotonic()
    if now - _noted.get(caller.key_id, -USE_NOTED_S) < USE_NOTED_S:
        return
    while len(_noted) >= CACHE_KEYS:
        _noted.pop(next(iter(_noted)))
    _noted[caller.key_id] = now
    async with rt.db.acquire(None) as conn:
        await keys.touch(conn, caller.project.id, caller.key_id)


async def is_installations(rt: Runtime, caller: Caller) -> bool:
    """Return whether the caller's project belongs to the installation's own organization: the first one."""
    async with rt.db.acquire(None) as conn:
        return caller.project.organization_id == await orgs.oldest_organization(conn)


async def default_project(rt: Runtime) -> Project:
    """Return the installation's own project: the first one of the first organization. Raises: NotFound."""
    async with rt.db.acquire(None) as conn:
        found = await _find_default(conn)
    if found is None:
        raise errors.NotFound("There is no project yet; `memoryd keys create` makes the first one, with a key.")
    return found


async def bootstrap(rt: Runtime, *, role: KeyRole = "owner") -> Bootstrap:
    """Make sure that there is a project, and a key of it. Safe to repeat, and to run in several processes at once.

    `role`: of the key, if it is made now.
    """
    async with rt.db.transaction(None) as conn:
        await orgs.lock_directory(conn)
        project = await _default_project(conn, rt)
        if await keys.list_for(conn, project.id):
            return Bootstrap(project, None)
        key, secret = await _insert_key(conn, project, "first key", Grant(role=role).checked())
        await audit.note(conn, "key.create", project=project, objects=[key.id])
    return Bootstrap(project, secret)


async def first_project(rt: Runtime) -> Project:
    """Return the installation's own project; make it where there is none. Safe to repeat, and to race."""
    async with rt.db.transaction(None) as conn:
        await orgs.lock_directory(conn)
        return await _default_project(conn, rt)


async def _find_default(conn: Conn) -> Project | None:
    organization = await orgs.oldest_organization(conn)
    existing = [] if organization is None else await orgs.list_projects(conn, organization)
    return existing[0] if existing else None


async def _default_project(conn: Conn, rt: Runtime) -> Project:
    existing = await _find_default(conn)
    if existing is not None:
        return existing
    organization = await orgs.insert_organization(conn, name=DEFAULT_ORGANIZATION)
    settings = ProjectSettings(compatibility=rt.settings.compatibility)
    project = await orgs.insert_project(conn, organization.id, name=DEFAULT_PROJECT, settings=settings)
    owner = Member(ADMIN_EMAIL, "OWNER")
    await members.add_to_organization(conn, organization.id, owner)
    await members.add_to_project(conn, project.id, owner)
    return project


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key may do, until when, and for whom."""

    role: KeyRole = "owner"  # an owner's key may also make, see and delete the projects of its organization
    scopes: tuple[KeyScope, ...] | None = None  # None: all that a key with these pins can have
    expires_at: datetime | None = None  # aware; None: never
    pins: Pins = field(default_factory=dict)  # as `pins.read` returns them; empty: the whole project

    def checked(self) -> Grant:
        """Return it with its scopes. Raises: InvalidRequest when it contradicts itself."""
        possible = KEY_SCOPES if not self.pins else pins.SCOPES
        scopes = possible if self.scopes is None else tuple(one for one in KEY_SCOPES if one in self.scopes)
        if not scopes:
            raise errors.InvalidRequest(f"A key has at least one scope: {', '.join(KEY_SCOPES)}.")
        beyond = [one for one in scopes if one not in possible]
        if beyond:
            raise errors.InvalidRequest(
                f"A key that is pinned to owners cannot have {', '.join(beyond)}: that reaches other owners' memories."
            )
        if self.expires_at is not None and self.expires_at <= datetime.now(UTC):
            raise errors.InvalidRequest("expires_at must be in the future.")
        # Projects and their settings are beyond any owner's memories.
        return replace(self, scopes=scopes, role="member" if self.pins else self.role)


async def create_key(
    rt: Runtime, project: Project, *, name: str, role: KeyRole = "owner", grant: Grant | None = None
) -> tuple[ApiKey, str]:
    """Make a key of `project` and return it with its secret, which is not stored.

    `grant`: without one, the key may do everything that `role` may.
    Raises: InvalidRequest when the name is blank or longer than `NAME_CHARS`, or the grant contradicts itself.
    """
    name = _name(name)
    granted = (grant or Grant(role=role)).checked()
    async with rt.db.transaction(None) as conn:
        key, secret = await _insert_key(conn, project, name, granted)
        await audit.note(conn, "key.create", project=project, objects=[key.id])
        return key, secret


def _name(text: str) -> str:
    """Return a key's name, trimmed. Control characters would write on the terminal of whoever lists the keys."""
    name = text.strip()
    if not 1 <= len(name) <= NAME_CHARS or any(unicodedata.category(character) == "Cc" for character in name):
        raise errors.InvalidRequest(f"The name of a key has 1 to {NAME_CHARS} characters, none a control character.")
    return name


async def change_key(
    rt: Runtime,
    project: Project,
    key_id: UUID,
    *,
    name: str | None = None,
    change: Callable[[Grant], Grant] | None = None,
) -> ApiKey:
    """Change a key's name and what it may do, and return it; the key itself goes on working.

    `change` gets what the key may do now and returns what it shall. Other processes follow within `CACHE_S`.
    Raises: NotFound; InvalidRequest when the outcome contradicts itself; Conflict when the key was revoked.
    """
    async with rt.db.transaction(None) as conn:
        old = await keys.lock(conn, project.id, key_id)
        if old is None:
            raise errors.NotFound(_NO_KEY)
        if old.revoked_at is not None:
            raise errors.Conflict("The key was revoked: make a new one.")
        before = Grant(role=old.role, scopes=old.scopes, expires_at=old.expires_at, pins=old.pins)
        granted = before if change is None else change(before).checked()
        changed = await keys.update(
            conn,
            project.id,
            key_id,
            name=old.name if name is None else _name(name),
            role=granted.role,
            scopes=granted.scopes or KEY_SCOPES,
            expires_at=granted.expires_at,
            pins=granted.pins,
        )
        await audit.note(conn, "key.change", project=project, objects=[key_id])
    forget()
    return changed


async def _insert_key(conn: Conn, project: Project, name: str, granted: Grant) -> tuple[ApiKey, str]:
    secret = new_secret()
    key = await keys.insert(
        conn,
        project.id,
        id=uuid7(),
        name=name,
        prefix=secret[:SHOWN_LENGTH],
        digest=digest_of(secret),
        role=granted.role,
        scopes=granted.scopes or KEY_SCOPES,
        expires_at=granted.expires_at,
        pins=granted.pins,
    )
    return key, secret


async def rotate_key(
    rt: Runtime, project: Project, key_id: UUID, *, overlap_s: float = OVERLAP_S, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Make a key that may do what another one may, and let that one end after `overlap_s` seconds, 0 at once.

    `expires_at` of the new one, aware; None: it lives as long as the old one was meant to, counted from now.
    Raises: NotFound; Conflict when the key was revoked or has expired.
    """
    async with rt.db.transaction(None) as conn:
        old = await keys.lock(conn, project.id, key_id)
        if old is None:
            raise errors.NotFound(_NO_KEY)
        now = datetime.now(UTC)
        if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            raise errors.Conflict("The key does not work any more, so there is nothing to rotate: make a new one.")
        if expires_at is None and old.expires_at is not None:
            expires_at = now + (old.expires_at - old.created_at)
        granted = Grant(role=old.role, scopes=old.scopes, expires_at=expires_at, pins=old.pins).checked()
        made = await _insert_key(conn, project, old.name, granted)
        await keys.expire_in(conn, project.id, key_id, overlap_s)
        await audit.note(conn, "key.rotate", project=project, objects=[key_id, made[0].id])
    forget()
    return made


async def list_keys(rt: Runtime, project: Project) -> list[ApiKey]:
    """Return the keys of `project`, revoked ones too, oldest first."""
    async with rt.db.acquire(None) as conn:
        return await keys.list_for(conn, project.id)


async def revoke_key(rt: Runtime, project: Project, key_id: UUID) -> None:
    """Make a key useless within `CACHE_S` seconds. Safe to repeat.

    Raises: NotFound.
    """
    async with rt.db.transaction(None) as conn:
        if not await keys.revoke(conn, project.id, key_id):
            raise errors.NotFound(_NO_KEY)
        await audit.note(conn, "key.revoke", project=project, objects=[key_id])
    forget()
