"""Profiles: what is known of a user or an agent, in the shape that its project chose. Made by jobs, which are events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from uuid_utils.compat import uuid7

from app import errors
from app.domain import attempt, audit, backlog, filters, json_schema, shaping
from app.domain.request import fingerprint
from app.model import Caller, Condition, Event, Operator, Profile, ProfileKind, Project
from app.providers import tokens
from app.runtime import Runtime
from app.store import claims, events, orgs, owners, profiles

EVENT = "PROFILE"
KINDS: tuple[ProfileKind, ...] = ("user", "agent")
MAX_SAMPLE = 10  #: owners in one sample, as on the hosted platform
SAMPLE = 3  #: of one that names no number
SCHEMA_TOKENS = 10_000  #: of a schema as JSON, as there
SETTINGS = ("schema", "custom_instructions")  #: of one kind of owner


@dataclass(frozen=True, slots=True)
class Job:
    """One request for profiles."""

    event: Event
    replayed: bool = False  # it was requested before, under the same Idempotency-Key

    @property
    def operation(self) -> str:
        """trigger: one owner's profile; sample: those of a few."""
        return str(self.event.payload["operation"])

    @property
    def kind(self) -> str:
        """Whose profiles."""
        return str(self.event.payload["entity_type"])

    @property
    def names(self) -> list[str]:
        """The owners, by the ids that requests use."""
        return list(self.event.payload["entity_ids"])

    def outcomes(self) -> list[dict[str, Any]]:
        """Return what has come of each owner that is dealt with: `entity_id`, `status`, `error`."""
        return self.event.results or self.event.checkpoint or []


# Settings


async def settings(rt: Runtime, caller: Caller) -> tuple[bool, dict[str, Any]]:
    """Return whether profiles are made, and for each kind of owner its `schema` and `custom_instructions`."""
    async with rt.db.acquire(caller.project.id) as conn:
        enabled, entities = await profiles.settings(conn, caller.project.id)
    return enabled, _whole(entities)


async def change_settings(
    rt: Runtime, caller: Caller, *, enabled: bool | None, entities: Mapping[str, Mapping[str, Any]]
) -> tuple[bool, dict[str, Any]]:
    """Write what is given, a None in `entities` clears; return the settings as they are then.

    Raises: InvalidRequest when a schema cannot be used.
    """
    for kind, changes in entities.items():
        if changes.get("schema") is not None:
            # A large one takes a second.
            await asyncio.to_thread(check_schema, kind, changes["schema"])
    async with rt.db.transaction(caller.project.id) as conn:
        before, stored = await profiles.lock_settings(conn, caller.project.id)
        merged: dict[str, dict[str, Any]] = {kind: {**stored.get(kind, {}), **entities.get(kind, {})} for kind in KINDS}
        now = before if enabled is None else enabled
        await profiles.put_settings(conn, caller.project.id, now, merged)
        await audit.note(conn, "profiles.settings", project=caller.project)
    return now, _whole(merged)


def _whole(entities: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {kind: {name: entities.get(kind, {}).get(name) for name in SETTINGS} for kind in KINDS}


def check_schema(kind: str, schema: object) -> None:
    """Refuse a schema that is no JSON Schema of an object, is too long, or has a property without a description.

    Raises: InvalidRequest, the text names the place.
    """
    place = f"entities.{kind}.schema"
    if not isinstance(schema, dict) or not schema:
        raise errors.InvalidRequest(f"{place} must be a JSON Schema object, or null.")
    try:
        json_schema.check(schema)
    except ValueError as error:
        raise errors.InvalidRequest(f"{place}: {error}.") from error
    bare = next(json_schema.undescribed(schema), None)
    if bare is not None:
        raise errors.InvalidRequest(f"{place}: the property {bare[:100]} needs a description.")
    size = tokens.count(orjson.dumps(schema).decode())
    if size > SCHEMA_TOKENS:
        raise errors.InvalidRequest(f"{place} has {size} tokens; at most {SCHEMA_TOKENS} are taken.")


# Jobs


async def trigger(
    rt: Runtime, caller: Caller, kind: ProfileKind, name: str, *, idempotency_key: str | None = None
) -> Job:
    """Ask for the profile of one owner.

    Raises: InvalidRequest when profiles are not enabled and configured; NotFound; KeyReused; RateLimited.
    """
    return await _ask(rt, caller, "trigger", kind, [name], {"entity_id": name}, idempotency_key)


async def sample(
    rt: Runtime, caller: Caller, kind: ProfileKind, *, limit: int | None = None, idempotency_key: str | None = None
) -> Job:
    """Ask for the profiles of a few owners that have memories, so that a schema can be judged.

    Those without a profile come first, then those with the oldest. Raises: as `trigger`.
    """
    return await _ask(rt, caller, "sample", kind, None, {"limit": limit or SAMPLE}, idempotency_key)


async def _ask(
    rt: Runtime,
    caller: Caller,
    operation: str,
    kind: ProfileKind,
    names: Sequence[str] | None,
    asked: dict[str, Any],
    key: str | None,
) -> Job:
    project_id, event_id = caller.project.id, uuid7()
    await backlog.require_room(rt, caller.project)
    body_print = fingerprint(EVENT, {"operation": operation, "entity_type": kind, **asked}) if key else None
    async with rt.db.transaction(project_id) as conn:
        if key and (earlier := await events.find_by_key(conn, project_id, key, body_print)):
            return Job(earlier, replayed=True)
        enabled, entities = await profiles.settings(conn, project_id)
        if not enabled or not entities.get(kind, {}).get("schema"):
            raise errors.InvalidRequest(
                f"Profiles of {kind}s are not enabled and configured: send enabled and entities.{kind}.schema to "
                "/v2/profiles/settings/ first."
            )
        if names is None:
            names = await profiles.sample(conn, project_id, kind, limit=asked["limit"])
        elif await owners.find(conn, project_id, kind, names[0]) is None:
            raise errors.NotFound("Entity not found")
        payload = {"operation": operation, "entity_type": kind, **asked, "entity_ids": list(names)}
        event = await events.insert(
            conn, project_id, event_id, EVENT, payload, idempotency_key=key, idempotency_print=body_print
        )
        if event.id != event_id:
            return Job(event, replayed=True)
        await profiles.expect(conn, project_id, kind, names, event_id)
    await rt.queue.ring(event.id)
    return Job(event)


async def process(rt: Runtime, event: Event) -> attempt.Outcome:
    """Make the profiles of a claimed job, and finish, put off or fail it. Safe to run twice: what is made stays made."""
    return await attempt.run(rt, event, _work(rt, event))


async def _work(rt: Runtime, event: Event) -> int:
    kind: ProfileKind = event.payload["entity_type"]
    done = list(event.checkpoint or ())
    async with rt.db.acquire(event.project_id) as conn:
        project = await orgs.get_project(conn, event.project_id)
        _, entities = await profiles.settings(conn, event.project_id)
    for name in event.payload["entity_ids"][len(done) :]:
        made = await _make(rt, project, kind, name, entities.get(kind, {}))
        async with rt.db.transaction(event.project_id) as conn:
            if await claims.lock_for_finish(conn, event) is None:
                raise attempt.Fenced
            status, profile, error = made
            is_there = await profiles.put(conn, event, kind, name, status, profile=profile, error=error)
            done.append({"entity_id": name, "status": status if is_there else "skipped", "error": error})
            if not await claims.save_checkpoint(conn, event, done):
                raise attempt.Fenced
    async with rt.db.transaction(event.project_id) as conn:
        if not await claims.finish(conn, event, done, None):
            raise attempt.Fenced
    return 0


async def _make(
    rt: Runtime, project: Project, kind: ProfileKind, name: str, own: Mapping[str, Any]
) -> tuple[Any, dict[str, Any] | None, str | None]:
    """Return the status of a profile, the profile, and why there is none.

    Raises: ModelUnavailable, ModelRefused, EmbedderUnavailable, EmbedderRefused.
    """
    schema = own.get("schema")
    if not schema:
        return "failed", None, f"There is no schema for profiles of {kind}s any more."
    # Everything that names the owner, whatever else it belongs to: a profile is of the person, not of one session.
    node = filters.narrow(Condition(f"{kind}_id", Operator.EQ, name), today=datetime.now(UTC).date())
    try:
        made = await shaping.make(rt, project, schema, node, instructions=own.get("custom_instructions"))
    except errors.ShapeUnfilled as error:
        return "failed", None, error.message
    known = made.memories and (made.known if made.known is not None else _says_anything(made.value))
    return ("succeeded", made.value, None) if known else ("insufficient_data", None, None)


def _says_anything(value: Any) -> bool:
    """Whether there is anything but nulls and empty values in an object."""
    if isinstance(value, Mapping):
        return any(map(_says_anything, value.values()))
    if isinstance(value, list):
        return any(map(_says_anything, value))
    return value is not None and value != ""


async def find_job(rt: Runtime, caller: Caller, job_id: Any) -> Job:
    """Return a job as it is now. Raises: NotFound."""
    async with rt.db.acquire(caller.project.id) as conn:
        event = await events.get(conn, caller.project.id, job_id)
    if event.kind != EVENT:
        raise errors.NotFound("Profile job not found")
    return Job(event)


# Reading


async def find(rt: Runtime, caller: Caller, kind: ProfileKind, name: str) -> tuple[bool, Profile | None]:
    """Return whether profiles are made in this project, and the owner's, if one was ever asked for.

    Raises: NotFound when there is no such owner.
    """
    async with rt.db.acquire(caller.project.id) as conn:
        enabled, _ = await profiles.settings(conn, caller.project.id)
        if await owners.find(conn, caller.project.id, kind, name) is None:
            raise errors.NotFound("Entity not found")
        return enabled, await profiles.find(conn, caller.project.id, kind, name)
