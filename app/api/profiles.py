"""Profiles of users and agents: what they look like, jobs that make them, and the profiles themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from app import errors
from app.api import docs, schemas, tenant
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.entities import Name
from app.api.memories import IdempotencyKey
from app.api.wire import Reply, Shape, router
from app.domain import profile
from app.model import OwnerKind, ProfileKind, Status

routes = router(Shape.ERROR, tag="profiles")

JobStatus = Literal["QUEUED", "RUNNING", "SUCCEEDED", "FAILED"]
_STATUS: dict[Status, JobStatus] = {
    Status.PENDING: "QUEUED",
    Status.RUNNING: "RUNNING",
    Status.SUCCEEDED: "SUCCEEDED",
    Status.FAILED: "FAILED",
}
#: Sent by clients with every request, and no settings.
_NO_SETTINGS = frozenset({"org_id", "project_id", "source"})


def _kind(value: object) -> ProfileKind:
    for kind in profile.KINDS:
        if value == kind:
            return kind
    raise errors.InvalidRequest(f"entity_type must be {' or '.join(profile.KINDS)}.")


# Settings


class EntitySettings(BaseModel):
    """What the profiles of one kind of owner look like."""

    model_config = ConfigDict(populate_by_name=True)

    shape: dict[str, Any] | None = Field(
        alias="schema", description="A JSON Schema whose every property has a description; null: not configured."
    )
    custom_instructions: str | None = Field(description="How to fill it, in words, for the language model.")


class Entities(BaseModel):
    user: EntitySettings = Field(description="Of users.")
    agent: EntitySettings = Field(description="Of agents.")


class Capabilities(BaseModel):
    full_rebuild: Literal[False] = Field(description="Whether all profiles can be made anew at once.")


class ProfileSettingsOut(BaseModel):
    """How profiles are made."""

    enabled: bool = Field(description="Whether they are made at all.")
    entities: Entities = Field(description="What they look like.")
    capabilities: Capabilities = Field(description="What else can be done.")


class ProfileSettings(schemas.Body):
    """What changes; what is absent stays."""

    cleaned = frozenset({"entities"})

    enabled: read.Flag | None = Field(None, description="Whether profiles are made, in the whole project.")
    entities: read.Mapping | None = Field(
        None,
        description="By `user` and `agent`: `schema`, a JSON Schema whose every property has a description, of about "
        f"{profile.SCHEMA_TOKENS} tokens at most, and `custom_instructions`. Null clears.",
    )

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse what is no setting: the schema belongs to a kind of owner."""
        unknown = sorted(set(data) - set(cls.model_fields) - _NO_SETTINGS)
        if unknown:
            raise ValueError(
                f"Unsupported settings: {', '.join(unknown)[:200]}. Send enabled, and schema and custom_instructions under "
                "entities.user or entities.agent."
            )
        return data

    def changes(self) -> dict[str, dict[str, Any]]:
        """Return what changes, by kind of owner. Raises: InvalidRequest."""
        made: dict[str, dict[str, Any]] = {}
        for kind, changes in (self.entities or {}).items():
            if kind not in profile.KINDS:
                raise errors.InvalidRequest(f"Unsupported settings: entities.{kind[:80]}; there are user and agent.")
            changes = dict.fromkeys(profile.SETTINGS) if changes is None else changes
            if not isinstance(changes, dict) or set(changes) - set(profile.SETTINGS):
                raise errors.InvalidRequest(
                    f"Unsupported settings: entities.{kind} takes schema and custom_instructions alone."
                )
            made[kind] = dict(changes)
            if changes.get("custom_instructions") is not None:
                try:
                    made[kind]["custom_instructions"] = read.words(changes["custom_instructions"])
                except ValueError as error:
                    raise errors.InvalidRequest(f"entities.{kind}.custom_instructions {error}") from error
        return made


def _settings(found: tuple[bool, dict[str, Any]]) -> Reply:
    return Reply({"enabled": found[0], "entities": found[1], "capabilities": {"full_rebuild": False}})


@routes.get("/v2/profiles/settings/", response_model=ProfileSettingsOut, responses=docs.statuses(shape=Shape.ERROR))
async def get_profile_settings(caller: Caller, rt: RuntimeDep) -> Reply:
    """Return how the project's profiles are made."""
    return _settings(await profile.settings(rt, caller))


@routes.post(
    "/v2/profiles/settings/",
    response_model=ProfileSettingsOut,
    responses=docs.statuses(shape=Shape.ERROR, body=True),
)
async def update_profile_settings(body: ProfileSettings, caller: Caller, rt: RuntimeDep) -> Reply:
    """Change how the project's profiles are made, and return it as it is then. Null clears."""
    return _settings(await profile.change_settings(rt, caller, enabled=body.enabled, entities=body.changes()))


# Jobs


class JobRequest(schemas.Body):
    """Whose profiles to make."""

    operation: Any = Field(
        None,
        description="`trigger`: one owner's. `sample`: those of a few owners, to judge a schema. `rebuild` is not offered.",
        json_schema_extra={"type": "string", "enum": ["trigger", "sample", "rebuild"]},
    )
    entity_type: Any = Field(
        "user", description="Whose.", json_schema_extra={"type": "string", "enum": list(profile.KINDS)}
    )
    entity_id: read.Owner | None = Field(None, description="Of a trigger: the id that requests use.")
    limit: Any = Field(
        None,
        description=f"Of a sample: how many, 1 to {profile.MAX_SAMPLE}; default {profile.SAMPLE}.",
        json_schema_extra={"type": "integer", "minimum": 1, "maximum": profile.MAX_SAMPLE},
    )
    org_id: Any = tenant.field(tenant.ORGANIZATION)
    project_id: Any = tenant.field(tenant.PROJECT)


class JobAccepted(BaseModel):
    """The profiles will be made."""

    job_id: UUID = Field(description="Of the job.")
    status: JobStatus = Field(description="QUEUED, unless the job was asked for before.")
    status_url: str = Field(description="Path that tells how the job goes.")
    operation: Literal["trigger", "sample"] = Field(description="What was asked for.")
    entity_type: ProfileKind = Field(description="Whose profiles.")
    entity_count_reserved: int = Field(description="How many.")
    event_id: UUID = Field(description="The event of the job; its id is the job's.")
    replayed: bool = Field(description="The Idempotency-Key was used before: this is the job of that time.")
    sampled: int | None = Field(None, description="Only of a sample: how many owners were picked.")
    entity_ids: list[str] | None = Field(None, description="Only of a sample: the owners that were picked.")


class Outcome(BaseModel):
    entity_id: str = Field(description="The owner.")
    status: Literal["succeeded", "insufficient_data", "failed", "skipped"] = Field(
        description="Of its profile; skipped: the owner was deleted meanwhile."
    )
    error: str | None = Field(description="Why it failed.")


class JobState(BaseModel):
    """How a job goes."""

    id: UUID = Field(description="Of the job.")
    operation: Literal["trigger", "sample"] = Field(description="What was asked for.")
    entity_type: ProfileKind = Field(description="Whose profiles.")
    status: JobStatus = Field(description="The last two are final.")
    total: int | None = Field(description="Owners.")
    enumeration_complete: bool = Field(description="Always true: the owners are picked when the job is asked for.")
    completed: int = Field(description="Those that are dealt with.")
    succeeded: int = Field(description="Those with a profile now.")
    failed: int = Field(description="Those whose profile could not be made.")
    skipped: int = Field(description="Those without enough memories, and those deleted meanwhile.")
    results: list[Outcome] = Field(description="What came of each that is dealt with.")
    error: str | None = Field(description="Why the job failed, or why its last attempt did.")


class JobOut(BaseModel):
    job: JobState = Field(description="The job.")


@routes.post(
    "/v2/profiles/jobs/",
    status_code=202,
    response_model=JobAccepted,
    response_model_exclude_none=True,
    responses=docs.statuses(403, 404, 409, 422, 429, 501, shape=Shape.ERROR, body=True),
)
async def create_profile_job(
    body: JobRequest, caller: Caller, rt: RuntimeDep, idempotency_key: IdempotencyKey
) -> Reply:
    """Ask for profiles: by the language model, or by rules without one. Answers at once; poll `status_url`.

    400 when profiles are not enabled and configured; 404 for an owner that nothing names.
    """
    tenant.check(caller, body.org_id, body.project_id)
    kind = _kind(body.entity_type)
    if body.operation == "rebuild":
        raise errors.NotOffered("not_yet_available: profiles are made one by one (trigger) or in samples.")
    if body.operation == "trigger":
        if body.entity_id is None:
            raise errors.InvalidRequest("entity_id is required: whose profile to make.")
        job = await profile.trigger(rt, caller, kind, body.entity_id, idempotency_key=idempotency_key)
    elif body.operation == "sample":
        limit = read.number("limit", body.limit, default=profile.SAMPLE, most=profile.MAX_SAMPLE)
        job = await profile.sample(rt, caller, kind, limit=limit, idempotency_key=idempotency_key)
    else:
        raise errors.InvalidRequest("operation must be trigger or sample.")
    return Reply(_accepted(job), status_code=202)


def _accepted(job: profile.Job) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "job_id": job.event.id,
        "status": _STATUS[job.event.status],
        "status_url": f"/v2/profiles/jobs/{job.event.id}/",
        "operation": job.operation,
        "entity_type": job.kind,
        "entity_count_reserved": len(job.names),
        "event_id": job.event.id,
        "replayed": job.replayed,
    }
    return answer | ({"sampled": len(job.names), "entity_ids": job.names} if job.operation == "sample" else {})


@routes.get("/v2/profiles/jobs/{job_id}/", response_model=JobOut, responses=docs.statuses(404, shape=Shape.ERROR))
async def get_profile_job(
    caller: Caller, rt: RuntimeDep, job_id: Annotated[str, Path(description="From the answer of the request.")]
) -> Reply:
    """Say how a job goes. It is done when `status` is SUCCEEDED or FAILED."""
    known = read.uuid(job_id)
    if known is None:
        raise errors.NotFound("Profile job not found")
    job = await profile.find_job(rt, caller, known)
    outcomes = job.outcomes()
    counts = {status: sum(one["status"] == status for one in outcomes) for status in ("succeeded", "failed")}
    return Reply({"job": {
        "id": job.event.id,
        "operation": job.operation,
        "entity_type": job.kind,
        "status": _STATUS[job.event.status],
        "total": len(job.names),
        "enumeration_complete": True,
        "completed": len(outcomes),
        **counts,
        "skipped": len(outcomes) - sum(counts.values()),
        "results": outcomes,
        "error": job.event.error,
    }})  # fmt: skip


# Profiles


class ProfileOut(BaseModel):
    """What is known of an owner."""

    profile: dict[str, Any] = Field(description="In the shape of the project's schema; empty unless it succeeded.")
    status: Literal["succeeded", "pending", "insufficient_data", "not_enabled", "failed"] = Field(
        description="`insufficient_data`: too little is known, or nobody has asked for a profile yet."
    )
    entity_type: ProfileKind = Field(description="Whose.")
    entity_id: str = Field(description="The id that requests use.")
    updated_at: datetime | None = Field(description="When it was made or asked for last.")
    generation_count: int = Field(description="How often it was made.")
    error: str | None = Field(description="Why it failed.")


@routes.get(
    "/v2/entities/{entity_type}/{entity_id:path}/profile/",
    response_model=ProfileOut,
    responses=docs.statuses(400, 403, 404, shape=Shape.ERROR),
    dependencies=tenant.IN_QUERY,
)
async def get_profile(
    entity_type: Annotated[str, Path(description="user or agent.")], name: Name, caller: Caller, rt: RuntimeDep
) -> Reply:
    """Return the profile of a user or an agent. 404 only for one that nothing names."""
    if entity_type not in get_args(OwnerKind):
        raise errors.InvalidRequest("Invalid entity type")
    kind = _kind(entity_type)
    enabled, found = await profile.find(rt, caller, kind, name)
    status = found.status if found else "insufficient_data"
    return Reply({
        "profile": (found.profile if found and enabled else None) or {},
        "status": status if enabled else "not_enabled",
        "entity_type": kind,
        "entity_id": name,
        "updated_at": found.updated_at if found else None,
        "generation_count": found.generation_count if found else 0,
        "error": found.error if found and enabled else None,
    })  # fmt: skip
