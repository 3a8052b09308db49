"""Who asks: organizations, projects, keys, members, endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal, get_args
from uuid import UUID

KeyRole = Literal["owner", "member"]  #: an owner's key also makes, sees and deletes projects of its organization
MemberRole = Literal["READER", "OWNER"]
KeyScope = Literal["memories:read", "memories:write", "memories:delete", "webhooks", "exports", "admin"]
KEY_SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)  #: what a key may be allowed; `admin`: settings, members, keys
Pins = Mapping[str, tuple[str, ...]]  #: owner field → patterns of ids, `*` for any characters; see domain.pins


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What a project decides for itself. None: follow the compatibility switch."""

    compatibility: Literal["architecture", "hosted"] = "architecture"
    implicit_null_scoping: bool | None = None
    raw_roles: tuple[str, ...] | None = None
    default_top_k: int | None = None
    split_by_attribution: bool = True
    custom_instructions: str | None = None
    agent_custom_instructions: str | None = None
    custom_categories: list[Any] | None = None
    multilingual: bool = True
    decay: bool = False
    memory_depth: str | None = None
    expiration_date: date | None = None
    adds_per_minute: int | None = None  # None: any number; the next two likewise
    searches_per_minute: int | None = None
    max_memories: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)  # fields that are stored and shown, and have no effect

    @property
    def null_scoping(self) -> bool:
        """True: an owner that a filter does not name must be null."""
        if self.implicit_null_scoping is not None:
            return self.implicit_null_scoping
        return self.compatibility == "architecture"

    @property
    def stored_roles(self) -> tuple[str, ...]:
        """Roles whose messages `infer: false` stores."""
        if self.raw_roles is not None:
            return self.raw_roles
        return ("user",) if self.compatibility == "architecture" else ("user", "assistant")

    @property
    def top_k(self) -> int:
        """Hits of a search that names no `top_k`."""
        return self.default_top_k or (20 if self.compatibility == "architecture" else 10)


@dataclass(frozen=True, slots=True)
class Organization:
    id: int
    public_id: str  # `org_` + 20 characters, on the wire
    name: str
    created_at: datetime
    updated_at: datetime
    creator_id: int | None = None  # the organization whose key made it, and whose owners' keys reach it


@dataclass(frozen=True, slots=True)
class Project:
    """The tenant. Every row and every statement names one."""

    id: int
    public_id: str  # `proj_` + 20 characters, on the wire
    organization_id: int
    organization_public_id: str
    name: str
    description: str | None
    settings: ProjectSettings
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without its secret, which is stored as a digest and shown once."""

    id: UUID
    project_id: int
    name: str
    prefix: str  # the first characters, to recognise it by
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    role: KeyRole = "owner"
    scopes: tuple[KeyScope, ...] = KEY_SCOPES
    expires_at: datetime | None = None  # None: never
    pins: Pins = field(default_factory=dict)  # empty: the whole project


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who belongs to an organization or a project; an address is enough, no account is needed."""

    email: str  # as written; two that differ in case are one
    role: MemberRole

    @property
    def username(self) -> str:
        """What stands before the @."""
        return self.email.partition("@")[0]


class WebhookEvent(StrEnum):
    """What an endpoint can ask for, in the wire's words."""

    MEMORY_ADD = "memory_add"
    MEMORY_UPDATE = "memory_update"
    MEMORY_DELETE = "memory_delete"
    MEMORY_CATEGORIZE = "memory_categorize"
    INGEST_JOB_COMPLETED = "ingest_job_completed"
    INGEST_JOB_PARTIALLY_COMPLETED = "ingest_job_partially_completed"
    INGEST_JOB_FAILED = "ingest_job_failed"
    INGEST_JOB_CANCELLED = "ingest_job_cancelled"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a project's events are delivered to, without the secret that signs them."""

    project_id: int
    id: str  # `wh_` + 20 characters, on the wire
    name: str
    url: str
    event_types: tuple[WebhookEvent, ...]
    is_active: bool
    owner: str  # address of whoever made it
    created_at: datetime
    updated_at: datetime
    disabled_reason: str | None = None  # why memoryd made it inactive; None: it did not


AuditOutcome = Literal["ok", "refused"]


@dataclass(frozen=True, slots=True)
class AuditLine:
    """That somebody has administered or destroyed something, or tried to; without what was in it."""

    actor: str  # id of the API key, or `cli`
    action: str  # one of domain.audit.ACTIONS
    organization: str | None  # public ids of what was acted upon or in
    project: str | None
    objects: tuple[str, ...]  # ids; of owners, digests
    outcome: AuditOutcome
    address: str | None  # where the request came from; None: a shell
    request_id: str | None
    at: datetime | None = None  # None: not written yet


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a valid key and its project."""

    project: Project
    key_id: UUID
    email: str
    role: KeyRole = "owner"
    scopes: tuple[KeyScope, ...] = KEY_SCOPES
    pins: Pins = field(default_factory=dict)  # empty: the whole project
