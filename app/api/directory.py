"""JSON shapes of organizations, projects and members, in and out."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import unquote

from fastapi import Depends, Path
from pydantic import BaseModel, ConfigDict, Field

from app.api import answers, schemas
from app.domain import project_settings
from app.domain.tenancy import OrganizationView, ProjectView
from app.model import Caller, Member, MemberRole

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def public_id(raw: str) -> str:
    """Return the id that a path segment is; what cannot be an id becomes one that nothing has."""
    text = unquote(raw, errors="replace")
    return text if _ID.fullmatch(text) else ""


async def _org_id(
    org_id: Annotated[str, Path(description="Of the organization; the ping names the key's own.")],
) -> str:
    return public_id(org_id)


async def _project_id(
    project_id: Annotated[str, Path(description="Of the project; the ping names the key's own.")],
) -> str:
    return public_id(project_id)


OrgId = Annotated[str, Depends(_org_id)]
ProjectId = Annotated[str, Depends(_project_id)]


# In


def _text(description: str, **schema: Any) -> Any:
    return Field(None, description=description, json_schema_extra={"type": "string", **schema})


class NewOrganization(schemas.Body):
    """An organization to make."""

    name: Any = _text("What people call it.", minLength=1, maxLength=project_settings.NAME_CHARS)


class NewProject(schemas.Body):
    """A project to make."""

    name: Any = _text("What people call it.", minLength=1, maxLength=project_settings.NAME_CHARS)
    description: Any = _text("What it is for.")


class NewMember(schemas.Body):
    """Somebody's place in an organization or a project."""

    email: Any = _text("The address that identifies the member; no account is needed.")
    role: Any = _text("READER may look, OWNER may change.", enum=["READER", "OWNER"])


class FormerMember(schemas.Body):
    """Whom to remove."""

    email: Any = _text("The member's address.")


def _setting(description: str, *types: str, **schema: Any) -> Any:
    return Field(
        None, description=description, json_schema_extra={"type": [*types] if types[1:] else types[0], **schema}
    )


class ProjectPatch(schemas.Body):
    """What changes of a project; what is absent stays. Null takes a setting back to its default."""

    nullable: ClassVar[frozenset[str]] = project_settings.NULLABLE

    name: Any = _setting("Its name.", "string")
    description: Any = _setting("What it is for.", "string", "null")
    custom_instructions: Any = _setting(
        "What to extract and how; a text, or lines of it. Empty clears.", "string", "array", "null"
    )
    agent_custom_instructions: Any = _setting("The same for memories of agents.", "string", "array", "null")
    custom_categories: Any = _setting(
        "Instead of the default categories: names, or objects from names to descriptions. Null and [] give the defaults.",
        "array", "null",
    )  # fmt: skip
    multilingual: Any = _setting("Keep memories in the language of the messages.", "boolean")
    decay: Any = _setting("Rank memories lower that nobody has read for long.", "boolean")
    expiration_date: Any = _setting("Last day of new memories that name none, YYYY-MM-DD.", "string", "null")
    compatibility: Any = _setting(
        "Which of two documented behaviours the project follows.", "string", enum=["architecture", "hosted"]
    )
    implicit_null_scoping: Any = _setting("An owner that a filter does not name must be null.", "boolean", "null")
    raw_roles: Any = _setting("Roles whose messages `infer: false` stores.", "array", "null")
    default_top_k: Any = _setting("Hits of a search that names no `top_k`, 1 to 1000.", "integer", "null")
    split_by_attribution: Any = _setting(
        "With a user and an agent, store each fact under the one who said it.", "boolean"
    )
    adds_per_minute: Any = _setting("Adds that are taken in a minute; null: any number.", "integer", "null")
    searches_per_minute: Any = _setting("Searches that are answered in a minute; null: any number.", "integer", "null")
    max_memories: Any = _setting("Memories that the project may keep; null: any number.", "integer", "null")
    memory_depth: Any = _setting("Stored and shown; no effect.", "string", "null")
    usecase: Any = Field(None, description="Stored and shown; no effect.")
    usecase_setting: Any = Field(None, description="Stored and shown; no effect.")
    retrieval_criteria: Any = Field(None, description="Stored and shown; no effect.")
    inclusion_prompt: Any = _setting("Stored and shown; no effect.", "string", "null")
    exclusion_prompt: Any = _setting("Stored and shown; no effect.", "string", "null")
    update_custom_instructions: Any = _setting("Stored and shown; no effect.", "string", "null")
    summary_custom_instructions: Any = _setting("Stored and shown; no effect.", "string", "null")
    summary_batch_size: Any = _setting("Stored and shown; no effect.", "integer", "null")
    summary_max_tokens: Any = _setting("Stored and shown; no effect.", "integer", "null")
    enable_graph: Any = _setting("Stored and shown; no effect: entities are always linked.", "boolean", "null")
    version: Any = _setting("Stored and shown; no effect.", "string", "null")
    active_prompt_profile: Any = Field(None, description="Stored and shown; no effect.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse a request that changes nothing: it is a misspelling."""
        if not set(data) & set(cls.model_fields):
            raise ValueError("Nothing to change: send at least one setting of a project.")
        return data

    def changes(self) -> dict[str, Any]:
        """Return what was sent, by the names of the wire."""
        return {name: getattr(self, name) for name in self.model_fields_set}


# Out


class MemberOut(BaseModel):
    """Somebody who belongs to an organization or a project."""

    username: str = Field(description="What stands before the @ of the address.")
    role: MemberRole = Field(description="READER or OWNER.")
    email: str = Field(description="The member's address.")


class OrganizationMemberOut(MemberOut):
    """Somebody who belongs to an organization."""

    user_id: str = Field(description="Identifies the member: the address.")


class Members(BaseModel):
    members: list[MemberOut] = Field(description="Oldest first.")


class OrganizationMembers(BaseModel):
    members: list[OrganizationMemberOut] = Field(description="Oldest first.")


def member(one: Member) -> dict[str, Any]:
    """Return a member as projects show it."""
    return {"username": one.username, "role": one.role, "email": one.email}


class OrganizationCreated(answers.Done):
    org_id: str = Field(description="The new organization's id.")


class ProjectCreated(answers.Done):
    project_id: str = Field(description="The new project's id.")


class OrganizationOut(BaseModel):
    """An organization."""

    org_id: str = Field(description="Identifies it.")
    name: str = Field(description="What people call it.")
    created_at: datetime = Field(description="When it was made.")
    updated_at: datetime = Field(description="When it changed last.")
    members: list[MemberOut] = Field(description="Who belongs to it, oldest first.")
    is_default: bool = Field(description="Whether it is the first of this installation.")
    byok_enabled: bool = Field(description="Always false: models are configured by the operator.")
    invitations: list[Any] = Field(description="Always empty: members need not accept.")
    owner_pricing_plan: str = Field(description="Always `self-hosted`.")
    is_owner: bool = Field(description="Whether the key is an owner's.")
    user_role: MemberRole = Field(description="OWNER for an owner's key, else READER.")


def organization(view: OrganizationView, caller: Caller) -> dict[str, Any]:
    """Return an organization as `caller` sees it."""
    return {
        "org_id": view.organization.public_id,
        "name": view.organization.name,
        "created_at": view.organization.created_at,
        "updated_at": view.organization.updated_at,
        "members": [member(one) for one in view.members],
        "is_default": view.is_default,
        "byok_enabled": False,
        "invitations": [],
        "owner_pricing_plan": "self-hosted",
        "is_owner": caller.role == "owner",
        "user_role": "OWNER" if caller.role == "owner" else "READER",
    }


def _without_required(schema: dict[str, Any]) -> None:
    schema.pop("required", None)


class ProjectOut(BaseModel):
    """A project and its settings; with `fields`, only those."""

    model_config = ConfigDict(json_schema_extra=_without_required)

    project_id: str = Field(description="Identifies it.")
    name: str = Field(description="What people call it.")
    description: str | None = Field(description="What it is for.")
    created_at: datetime = Field(description="When it was made.")
    updated_at: datetime = Field(description="When it changed last.")
    members: list[MemberOut] = Field(description="Who belongs to it, oldest first.")
    is_default: bool = Field(description="Whether it is the first of its organization.")
    user_role: MemberRole = Field(description="What the key may do with the settings: always OWNER.")
    custom_instructions: str | None = Field(description="What to extract and how.")
    agent_custom_instructions: str | None = Field(description="The same for memories of agents.")
    custom_categories: list[Any] | None = Field(
        description="As they were sent; null: never set. [] means defaults too."
    )
    multilingual: bool = Field(description="Keep memories in the language of the messages.")
    decay: bool = Field(description="Rank memories lower that nobody has read for long.")
    expiration_date: date | None = Field(description="Last day of new memories that name none.")
    compatibility: Literal["architecture", "hosted"] = Field(description="Which behaviour the next four follow.")
    implicit_null_scoping: bool = Field(description="An owner that a filter does not name must be null.")
    raw_roles: list[str] = Field(description="Roles whose messages `infer: false` stores.")
    default_top_k: int = Field(description="Hits of a search that names no `top_k`.")
    split_by_attribution: bool = Field(description="Each fact is stored under the one who said it.")
    adds_per_minute: int | None = Field(description="Adds that are taken in a minute; null: any number.")
    searches_per_minute: int | None = Field(description="Searches that are answered in a minute; null: any number.")
    max_memories: int | None = Field(description="Memories that the project may keep; null: any number.")
    memory_depth: str | None = Field(description="As it was sent; no effect.")
    usecase: Any = Field(description="As it was sent; no effect.")
    usecase_setting: Any = Field(description="As it was sent; no effect.")
    retrieval_criteria: Any = Field(description="As it was sent; no effect.")
    inclusion_prompt: str | None = Field(description="As it was sent; no effect.")
    exclusion_prompt: str | None = Field(description="As it was sent; no effect.")
    update_custom_instructions: str | None = Field(description="As it was sent; no effect.")
    summary_custom_instructions: str | None = Field(description="As it was sent; no effect.")
    summary_batch_size: int = Field(description="As it was sent; no effect.")
    summary_max_tokens: int | None = Field(description="As it was sent; no effect.")
    enable_graph: bool = Field(description="As it was sent; no effect.")
    version: str = Field(description="As it was sent; no effect.")
    active_prompt_profile: Any = Field(description="As it was sent; no effect.")


#: What a project shows of settings that have no effect and were not sent.
_UNSENT = {
    **dict.fromkeys(project_settings.WITHOUT_EFFECT),
    "summary_batch_size": 10,
    "enable_graph": False,
    "version": "v3",
}


def project(view: ProjectView) -> dict[str, Any]:
    """Return a project with all its settings, as they are in force."""
    settings = view.project.settings
    return {
        "project_id": view.project.public_id,
        "name": view.project.name,
        "description": view.project.description,
        "created_at": view.project.created_at,
        "updated_at": view.project.updated_at,
        "members": [member(one) for one in view.members],
        "is_default": view.is_default,
        "user_role": "OWNER",
        "custom_instructions": settings.custom_instructions,
        "agent_custom_instructions": settings.agent_custom_instructions,
        "custom_categories": settings.custom_categories,
        "multilingual": settings.multilingual,
        "decay": settings.decay,
        "expiration_date": settings.expiration_date,
        "compatibility": settings.compatibility,
        "implicit_null_scoping": settings.null_scoping,
        "raw_roles": settings.stored_roles,
        "default_top_k": settings.top_k,
        "split_by_attribution": settings.split_by_attribution,
        "adds_per_minute": settings.adds_per_minute,
        "searches_per_minute": settings.searches_per_minute,
        "max_memories": settings.max_memories,
        **_UNSENT,
        **{name: value for name, value in settings.extra.items() if name in _UNSENT},
        "memory_depth": settings.memory_depth,
    }


def narrowed(shown: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    """Return what `fields` names of a project; all of it when they name nothing that it has."""
    wanted = {name.strip() for field in fields for name in field.split(",")} & shown.keys()
    return {name: value for name, value in shown.items() if name in wanted} if wanted else shown
