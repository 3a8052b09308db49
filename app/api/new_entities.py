"""Make a user, agent, app or run before its first memory: four routes that differ in a name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from app.api import docs, schemas
from app.api import fields as read
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.config import Settings
from app.domain import limits, owners
from app.model import Owner, OwnerKind

routes = router(Shape.ERROR, tag="entities")

_ERRORS = docs.statuses(shape=Shape.ERROR, body=True)


class _New(schemas.Body):
    cleaned = frozenset({"metadata"})

    metadata: read.Mapping | None = Field(None, description="Any JSON object.")

    def check(self, settings: Settings) -> None:
        """Refuse metadata beyond its limit. Raises: InvalidRequest."""
        if self.metadata is not None:
            limits.check_metadata(settings, self.metadata)


Id = Annotated[read.Owner, Field(description="The id that requests will use.")]
Title = Annotated[read.Owner, Field(description="What people call it.")]


class NewUser(_New):
    """A user to make."""

    user_id: Id


class NewAgent(_New):
    """An agent to make."""

    agent_id: Id
    name: Title


class NewApp(_New):
    """An app to make."""

    app_id: Id
    name: Title


class NewRun(_New):
    """A run to make."""

    run_id: Id
    name: Title


class _Made(BaseModel):
    id: int = Field(description="Its number.")
    metadata: dict[str, Any] | None = Field(description="As given.")
    created_at: datetime = Field(description="When it was first named.")
    updated_at: datetime = Field(description="When it was changed last.")
    graph_entities: None = Field(description="Always null.")
    is_deleted: bool = Field(description="Always false.")
    project: int = Field(description="The project's number.")


class UserMade(_Made):
    """A user."""

    user_id: str = Field(description="The id that requests use.")


class AgentMade(_Made):
    """An agent."""

    agent_id: str = Field(description="The id that requests use.")
    name: str = Field(description="What people call it.")


class AppMade(_Made):
    """An app."""

    app_id: str = Field(description="The id that requests use.")
    name: str = Field(description="What people call it.")


class RunMade(_Made):
    """A run."""

    run_id: str = Field(description="The id that requests use.")
    name: str = Field(description="What people call it.")


@routes.post("/v1/users/", status_code=201, response_model=UserMade, responses=_ERRORS)
async def create_user(body: NewUser, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make a user, or set the metadata of one that exists. Not needed: users appear with their first add."""
    return await _make(rt, caller, "user", body.user_id, None, body.metadata)


@routes.post("/v1/agents/", status_code=201, response_model=AgentMade, responses=_ERRORS)
async def create_agent(body: NewAgent, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make an agent, or set the name and metadata of one that exists."""
    return await _make(rt, caller, "agent", body.agent_id, body.name, body.metadata)


@routes.post("/v1/apps/", status_code=201, response_model=AppMade, responses=_ERRORS)
async def create_app(body: NewApp, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make an app, or set the name and metadata of one that exists."""
    return await _make(rt, caller, "app", body.app_id, body.name, body.metadata)


@routes.post("/v1/runs/", status_code=201, response_model=RunMade, responses=_ERRORS)
async def create_run(body: NewRun, caller: Caller, rt: RuntimeDep) -> Reply:
    """Make a run, or set the name and metadata of one that exists."""
    return await _make(rt, caller, "run", body.run_id, body.name, body.metadata)


async def _make(
    rt: RuntimeDep, caller: Caller, kind: OwnerKind, name: str, title: str | None, metadata: dict[str, Any] | None
) -> Reply:
    made: Owner = await owners.make(rt, caller, kind, name, title=title, metadata=metadata)
    answer: dict[str, Any] = {
        "id": made.id,
        f"{kind}_id": made.name,
        "metadata": made.metadata,
        "created_at": made.created_at,
        "updated_at": made.updated_at,
        "graph_entities": None,
        "is_deleted": False,
        "project": made.project_id,
    }
    return Reply(answer if title is None else {**answer, "name": made.title}, status_code=201)
