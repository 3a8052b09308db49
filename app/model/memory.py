"""What is remembered: owners, conversation, events, memories, and what schemas make of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]  #: float32[n, dims], rows of unit length
Vector = npt.NDArray[np.float32]  #: float32[dims], unit length

OWNER_FIELDS = ("user_id", "agent_id", "app_id", "run_id")  #: the four dimensions of a scope, in wire order
OwnerKind = Literal["user", "agent", "app", "run"]

DEFAULT_CATEGORIES = (  #: the hosted platform's list; a memory gets them only after classification
    "personal_details", "family", "professional_details", "sports", "travel", "food", "music", "health",
    "technology", "hobbies", "fashion", "entertainment", "milestones", "user_preferences", "misc",
)  # fmt: skip


# Owners and scopes


@dataclass(frozen=True, slots=True)
class Owners:
    """One of each at most; at least one. Compared whole and case-sensitively."""

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    def named(self) -> dict[str, str]:
        """Return the owners that are set, by field name, in wire order."""
        return {name: value for name in OWNER_FIELDS if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Scope:
    """The combination of owners that a memory belongs to: one record set of its own."""

    project_id: int
    id: int
    owners: Owners


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, agent, app or run of a project."""

    project_id: int
    id: int
    kind: OwnerKind
    name: str  # the id that requests use
    title: str | None  # what people call it, if anybody said so
    metadata: dict[str, Any] | None
    memory_count: int  # memories whose scope names it
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers of a project."""

    memories: int
    of_users: int  # memories whose scope names a user; the next two likewise
    of_agents: int
    of_runs: int
    users: int  # that have memories
    agents: int
    runs: int
    adds: int  # accepted
    retrievals: int  # searches, lists and reads that were answered


# Conversation


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message's content, as it was sent."""

    kind: Literal["text", "image", "pdf", "mdx", "txt"]
    value: str  # the text; else where the rest is: an http(s) URL, a data: URL, or base64
    detail: str | None = None  # of an image, for the model: low, high, auto


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of input."""

    role: str  # user, assistant or system
    content: str
    name: str | None = None  # who speaks, when the application says so
    index: int = 0  # position in its add, from 0
    id: UUID | None = None  # set once stored
    said_at: datetime | None = None
    parts: tuple[Part, ...] = ()  # all of the content, when it holds more than text; `content` has the text alone then


@dataclass(frozen=True, slots=True)
class Source:
    """The part of a message that a fact was made from."""

    message_index: int  # position in the add's messages
    start: int  # characters, from 0
    end: int  # exclusive


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that the extractor proposes; not stored yet."""

    text: str
    role: str = "user"  # whose statement it is: user or assistant
    actor: str | None = None  # the speaker's name, if known
    sources: tuple[Source, ...] = ()
    linked_ids: tuple[UUID, ...] = ()  # existing memories that it belongs with
    happened_from: datetime | None = None  # when what it tells took place, if it says so
    happened_to: datetime | None = None
    replaces: tuple[UUID, ...] = ()  # existing memories that are no longer so because of it
    same: tuple[UUID, ...] = ()  # existing memories that say the same in other words


# Events


class Status(StrEnum):
    """States of an event; there is no fifth."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


#: Kinds of events that nobody requested: what follows a change, put down with it. They are listed nowhere, and go when done.
INTERNAL_KINDS = ("CATEGORIZE",)


@dataclass(frozen=True, slots=True)
class Event:
    """The durable record of one requested change and what came of it; also the outbox row."""

    project_id: int
    id: UUID
    kind: str  # ADD, UPDATE, DELETE, SEARCH, GET_ALL, GET, DELETE_ALL, DELETE_USER, or one of INTERNAL_KINDS
    status: Status
    scope_id: int | None
    target_scope_ids: tuple[int, ...]  # scopes that its memories go to, as known at acceptance
    payload: dict[str, Any]  # the validated request
    attempts: int
    lease_epoch: int  # fence: only the holder of this number may finish the event
    checkpoint: list[dict[str, Any]] | None  # validated facts of an earlier attempt
    results: list[dict[str, Any]]
    metadata: dict[str, Any] | None
    error_code: str | None
    error: str | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds from the start of work to its end; None before the end."""
        if self.completed_at is None:
            return None
        return round((self.completed_at - (self.started_at or self.created_at)).total_seconds() * 1000, 3)


# Memories


class State(StrEnum):
    """Life of a memory; its text is never rewritten by an add."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"  # a newer memory contradicts it, see replaced_by
    MERGED = "merged"  # a fuller memory says the same; hidden by default


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored fact."""

    project_id: int
    id: UUID
    scope_id: int
    owners: Owners
    text: str
    hash: str  # MD5 of the text, hexadecimal; unique in its scope
    role: str | None  # whose statement it is
    actor: str | None  # the speaker's name
    metadata: dict[str, Any] | None
    categories: tuple[str, ...] | None  # None: not classified yet
    immutable: bool
    expiration_date: date | None  # visible through this day, UTC
    state: State
    replaced_by: UUID | None
    synthesized: bool
    event_id: UUID | None
    position: int  # order within its add, from 0
    happened_from: datetime | None
    happened_to: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory that is ready to be stored, with everything that finds it."""

    id: UUID
    scope_id: int
    owners: Owners
    text: str
    hash: str
    embedding: Vector
    terms: dict[str, int]  # analysed term → how often; the keyword arm's document
    entities: tuple[Entity, ...]
    role: str | None = None
    actor: str | None = None
    metadata: dict[str, Any] | None = None
    categories: tuple[str, ...] | None = None
    immutable: bool = False
    expiration_date: date | None = None
    event_id: UUID | None = None
    position: int = 0
    happened_from: datetime | None = None
    happened_to: datetime | None = None
    created_at: datetime | None = None  # None: the database's clock
    updated_at: datetime | None = None  # None: the database's clock
    state: State = State.ACTIVE
    replaced_by: UUID | None = None
    synthesized: bool = False
    message_ids: tuple[UUID, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()  # characters in each message of message_ids
    input: tuple[dict[str, Any], ...] = ()  # the messages, as the history shows them


@dataclass(frozen=True, slots=True)
class Change:
    """One ADD, UPDATE or DELETE of one memory: a row of its history."""

    id: UUID
    memory_id: UUID
    event: Literal["ADD", "UPDATE", "DELETE"]
    old_text: str | None
    new_text: str | None
    owners: Owners
    categories: tuple[str, ...] | None
    metadata: dict[str, Any] | None
    input: list[dict[str, Any]]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Entity:
    """A named thing that texts mention."""

    name: str  # as written
    norm: str  # folded form, its identity in a scope
    kind: str = "PROPER"  # PROPER, QUOTED, IDENTIFIER


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory found for one query."""

    memory: Memory
    score: float  # 0..1, higher is better, calibrated: comparable between queries
    semantic: float  # cosine similarity, -1..1
    bm25: float  # raw BM25 of the keyword arm, 0 and up
    entity: float  # 0..1, share of the query's entities that the memory is linked to


# What schemas shape


@dataclass(frozen=True, slots=True)
class Export:
    """An object that a caller's schema shapes, filled from memories. Its event has the same id."""

    project_id: int
    id: UUID
    schema: dict[str, Any]
    instructions: str | None
    filters: dict[str, Any]  # as they were sent
    null_scoping: bool  # of the project when it was asked for
    result: dict[str, Any] | None  # None: not made yet
    created_at: datetime
    updated_at: datetime


ProfileKind = Literal["user", "agent"]
ProfileStatus = Literal["pending", "succeeded", "insufficient_data", "failed"]


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a user or an agent, in the shape that its project chose."""

    project_id: int
    kind: ProfileKind
    name: str  # the id that requests use
    status: ProfileStatus
    profile: dict[str, Any] | None  # None unless it succeeded
    error: str | None
    generation_count: int
    updated_at: datetime
