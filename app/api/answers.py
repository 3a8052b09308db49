"""Every JSON shape that goes out: a model that documents it, and a function that fills it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app.api import explanations, pages
from app.domain import add, parts
from app.model import OWNER_FIELDS, Change, Event, Hit, Memory

# What every answer may be


class Detail(BaseModel):
    """Why a request was refused."""

    detail: str = Field(description="The reason, for people.")


class Error(Detail):
    """Why a request was refused."""

    error: str = Field(description="The same reason, for clients that read this key.")


class ErrorDetails(BaseModel):
    message: str = Field(description="The reason.")


class AddError(Detail):
    """Why an add was refused."""

    error: str = Field(description="The status in words, such as `400 Bad Request`.")
    details: ErrorDetails = Field(description="The reason, for clients that read it here.")


class InternalError(Error):
    """A fault of the service."""

    request_id: str = Field(description="Under which the log has the cause.")


class Message(Detail):
    """Why a request was refused."""

    message: str = Field(description="The same reason, for clients that read this key.")


class BothErrors(Error):
    """Why a request was refused."""

    message: str = Field(description="The same reason once more.")


class FieldErrors(Message):
    """Why a request was refused, by field."""

    errors: dict[str, list[str]] = Field(description="The reason under the field's name, or `non_field_errors`.")


class WebhookErrors(Detail):
    """Why an endpoint was refused: the reason under the name of the field."""

    name: list[str] = Field([], description="What is wrong with the name.")
    url: list[str] = Field([], description="What is wrong with the URL.")
    event_types: list[str] = Field([], description="What is wrong with the events.")
    is_active: list[str] = Field([], description="What is wrong with the switch.")
    non_field_errors: list[str] = Field([], description="What is wrong with the whole.")


class Done(BaseModel):
    """The request was carried out."""

    message: str = Field(description="What was done.")


# Memories


class StructuredAttributes(BaseModel):
    """The parts of `created_at`, in UTC."""

    year: int = Field(description="Such as 2026.")
    month: int = Field(description="1 to 12.")
    day: int = Field(description="1 to 31.")
    hour: int = Field(description="0 to 23.")
    minute: int = Field(description="0 to 59.")
    day_of_week: str = Field(description="In lower case, such as `monday`.")
    week_of_year: int = Field(description="ISO 8601, 1 to 53.")
    day_of_year: int = Field(description="1 to 366.")
    quarter: int = Field(description="1 to 4.")
    is_weekend: bool = Field(description="Saturday or Sunday.")


class MemoryOut(BaseModel):
    """A stored fact. Every route that reads memories shows the same fields."""

    id: UUID = Field(description="Identifies the memory.")
    memory: str = Field(description="Its text.")
    user_id: str | None = Field(description="The user whom it is about.")
    agent_id: str | None = Field(description="The agent whom it is about.")
    app_id: str | None = Field(description="The application that it belongs to.")
    run_id: str | None = Field(description="The session that it belongs to.")
    session_id: str | None = Field(description="The same as `run_id`, under its older name.")
    hash: str = Field(description="MD5 of the text; unique among the memories of the same owners.")
    metadata: dict[str, Any] | None = Field(description="As given by the caller; null when never set.")
    categories: list[str] | None = Field(description="Its categories; null until it is classified.")
    structured_attributes: StructuredAttributes = Field(description="The parts of `created_at`.")
    immutable: bool = Field(description="It can be deleted, but not changed.")
    expiration_date: date | None = Field(description="Last day on which it is found, UTC.")
    lifecycle_state: Literal["active", "superseded", "merged"] = Field(
        description="`superseded`: a newer memory contradicts it. `merged`: a fuller one says the same."
    )
    replaced_by: UUID | None = Field(description="The memory that superseded it or that it was merged into.")
    synthesized: bool = Field(description="Made from several memories instead of from a message.")
    created_at: datetime = Field(description="When it was said or added, UTC.")
    updated_at: datetime = Field(description="When it was changed last, UTC.")


class ScoreBreakdown(BaseModel):
    """What each way of finding said."""

    semantic: float = Field(description="Cosine similarity to the query, -1 to 1.")
    bm25: float = Field(description="BM25 of the words, 0 and up.")
    entity: float = Field(description="Share of the query's names that it mentions, 0 to 1.")


class HitOut(MemoryOut):
    """A memory that was found."""

    score: float = Field(description="How well it fits, 0 to 1; comparable between queries.")
    score_breakdown: ScoreBreakdown = Field(description="What each way of finding said.")
    explain: explanations.HitExplanation | None = Field(None, description="Only with `explain`: how it came here.")


class SearchResults(BaseModel):
    """What was found, best first."""

    results: list[HitOut] = Field(description="The hits. With `fields`, only those fields of each.")
    answerable: float = Field(description="Chance that the memories hold an answer to the query at all, 0 to 1.")
    explain: explanations.SearchExplanation | None = Field(None, description="Only with `explain`: the query as read.")


class MemoryPage(pages.Page):
    results: list[MemoryOut] = Field(
        description="The memories, newest first. With `fields`, only those fields of each."
    )


def memory(item: Memory) -> dict[str, Any]:
    """Return a memory as every read route shows it."""
    return {
        "id": item.id,
        "memory": item.text,
        "user_id": item.owners.user_id,
        "agent_id": item.owners.agent_id,
        "app_id": item.owners.app_id,
        "run_id": item.owners.run_id,
        "session_id": item.owners.run_id,
        "hash": item.hash,
        "metadata": item.metadata,
        "categories": item.categories,
        "structured_attributes": structured(item.created_at),
        "immutable": item.immutable,
        "expiration_date": item.expiration_date,
        "lifecycle_state": item.state.value,
        "replaced_by": item.replaced_by,
        "synthesized": item.synthesized,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


def hit(item: Hit) -> dict[str, Any]:
    """Return a memory with what the search says about it."""
    breakdown = {"semantic": item.semantic, "bm25": item.bm25, "entity": item.entity}
    return {**memory(item.memory), "score": item.score, "score_breakdown": breakdown}


def structured(moment: datetime) -> dict[str, Any]:
    """Return the parts of an instant in UTC."""
    return {
        "year": moment.year,
        "month": moment.month,
        "day": moment.day,
        "hour": moment.hour,
        "minute": moment.minute,
        "day_of_week": _DAYS[moment.weekday()],
        "week_of_year": moment.isocalendar().week,
        "day_of_year": moment.timetuple().tm_yday,
        "quarter": (moment.month + 2) // 3,
        "is_weekend": moment.weekday() >= 5,
    }


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def projected(items: Sequence[dict[str, Any]], names: Collection[str] | None) -> Sequence[dict[str, Any]]:
    """Return only the named fields of each item, and always `id`; unknown names are ignored, no names mean all."""
    if not names:
        return items
    return [{key: value for key, value in item.items() if key in names or key == "id"} for item in items]


# Add


class AddedData(BaseModel):
    memory: str = Field(description="The text.")


class Added(BaseModel):
    """A memory that an add stored."""

    id: UUID = Field(description="Identifies the memory.")
    event: Literal["ADD"] = Field(description="An add never changes what exists.")
    memory: str = Field(description="The text.")
    data: AddedData = Field(description="The text once more, where older clients read it.")
    user_id: str | None = Field(description="The user whom it is about.")
    agent_id: str | None = Field(description="The agent whom it is about.")
    app_id: str | None = Field(description="The application that it belongs to.")
    run_id: str | None = Field(description="The session that it belongs to.")


class Skipped(BaseModel):
    """A message, or a part of one, that was not stored."""

    index: int = Field(description="Position in `messages`, from 0.")
    role: str = Field(description="Who speaks.")
    reason: str = Field(description="Why.")


class AddAccepted(BaseModel):
    """The add is recorded; with `infer: false` it is also done."""

    message: str = Field(description="What happened, for people.")
    status: Literal["PENDING", "SUCCEEDED"] = Field(description="PENDING: poll the event for the outcome.")
    event_id: UUID = Field(description="The event that holds the outcome.")
    results: list[Added] | None = Field(None, description="Only with `infer: false`: what was stored.")
    skipped: list[Skipped] | None = Field(None, description="Only with `infer: false`: what was not, and why.")


def accepted(item: add.Accepted, unread: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the answer to an add. `unread`: what the door itself left out."""
    answer: dict[str, Any] = {"message": item.message, "status": item.event.status.value, "event_id": item.event.id}
    if item.results is None:
        return answer
    nobody: dict[str, Any] = dict.fromkeys(OWNER_FIELDS)
    skipped = sorted([*item.skipped, *unread], key=lambda entry: entry["index"])
    return {**answer, "results": [{**nobody, **result} for result in item.results], "skipped": skipped}


class DeleteAccepted(Done):
    """The memories are gone; the event says how many."""

    event_id: UUID = Field(description="The event that holds the outcome.")


class Deleted(Done):
    """The memory is gone."""

    cascade_count: int | None = Field(None, description="Only with `delete_linked`: older memories deleted with it.")


# History


class MessageOut(BaseModel):
    role: str = Field(description="Who speaks.")
    content: str = Field(description="What was said.")


class ChangeOut(BaseModel):
    """One change of a memory."""

    id: UUID = Field(description="Identifies the change.")
    memory_id: UUID = Field(description="The memory that changed.")
    input: list[MessageOut] = Field(description="The messages that it was made from.")
    old_memory: str | None = Field(description="The text before; null for an ADD.")
    new_memory: str = Field(description="The text after; empty for a DELETE.")
    event: Literal["ADD", "UPDATE", "DELETE"] = Field(description="What happened.")
    user_id: str | None = Field(description="The user whom the memory is about.")
    agent_id: str | None = Field(description="The agent whom it is about.")
    app_id: str | None = Field(description="The application that it belongs to.")
    run_id: str | None = Field(description="The session that it belongs to.")
    session_id: str | None = Field(description="The same as `run_id`.")
    categories: list[str] | None = Field(description="Its categories at that time.")
    metadata: dict[str, Any] | None = Field(description="Its metadata at that time.")
    created_at: datetime = Field(description="When the memory was made.")
    updated_at: datetime = Field(description="When this change was made.")


def change(item: Change) -> dict[str, Any]:
    """Return one row of a memory's history."""
    return {
        "id": item.id,
        "memory_id": item.memory_id,
        "input": item.input,
        "old_memory": item.old_text,
        "new_memory": item.new_text or "",
        "event": item.event,
        "user_id": item.owners.user_id,
        "agent_id": item.owners.agent_id,
        "app_id": item.owners.app_id,
        "run_id": item.owners.run_id,
        "session_id": item.owners.run_id,
        "categories": item.categories,
        "metadata": item.metadata,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


# Events


class EventOut(BaseModel):
    """One requested change and what came of it."""

    id: UUID = Field(description="Identifies the event.")
    event_type: str = Field(description="ADD, UPDATE, DELETE, DELETE_ALL, …")
    status: Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED"] = Field(description="The last two are final.")
    payload: dict[str, Any] = Field(description="The request, without what was ignored.")
    metadata: dict[str, Any] | None = Field(description="Notes about the outcome.")
    results: list[dict[str, Any]] = Field(description="What changed: `id`, `event`, `memory`, `data`, and the owners.")
    created_at: datetime = Field(description="When it was accepted.")
    updated_at: datetime = Field(description="When it moved last.")
    started_at: datetime | None = Field(description="When work on it began.")
    completed_at: datetime | None = Field(description="When it ended.")
    latency: float | None = Field(description="Milliseconds from the start to the end.")
    graph_status: str | None = Field(description="Always null.")
    error: str | None = Field(description="Why it failed, or why its last attempt did.")
    error_code: str | None = Field(description="The same as a stable word.")


class EventPage(pages.Page):
    results: list[EventOut] = Field(description="The events, newest first.")


def event(item: Event) -> dict[str, Any]:
    """Return an event as its routes show it."""
    return {
        "id": item.id,
        "event_type": item.kind,
        "status": item.status.value,
        "payload": parts.abridged(item.payload),
        "metadata": item.metadata,
        "results": item.results,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "started_at": item.started_at,
        "completed_at": item.completed_at,
        "latency": item.latency_ms,
        "graph_status": None,
        "error": item.error,
        "error_code": item.error_code,
    }


# Service


class Pong(BaseModel):
    """Whose key it is."""

    status: Literal["ok"] = Field(description="Always `ok`.")
    org_id: str = Field(description="The key's organization.")
    project_id: str = Field(description="The key's project.")
    user_email: str = Field(description="The address of the key's owner.")


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = Field(description="Always `ok`.")
    version: str = Field(description="Of memoryd.")


class Readiness(BaseModel):
    """Whether the service can do its work."""

    status: Literal["ok", "degraded", "unavailable"] = Field(
        description="`degraded`: it answers, and something slows it down or stops the work behind it."
    )
    database: str = Field(description="`ok`, or what is wrong.")
    migrations: str = Field(description="`ok`, or what is wrong.")
    redis: str = Field(description="`ok`, `off`, or what is wrong; work goes on without it, only slower.")
    workers: int = Field(description="Live worker processes.")
    detail: str | None = Field(description="What is wrong, in a sentence; null when all is well.")
    oldest_pending_s: float | None = Field(
        description="Seconds that the oldest due event has waited; null: none waits."
    )
