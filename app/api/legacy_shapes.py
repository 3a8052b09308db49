"""JSON shapes of the first two generations of memory routes, in and out."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field

from app.api import answers, schemas, tenant
from app.api import fields as read
from app.model import OWNER_FIELDS

V1_1 = "v1.1"  #: the `output_format` that asks for objects instead of arrays
NO_OWNER_V1 = "At least one of the filters: agent_id, user_id, app_id, run_id is required!"
TOP_K = 10  #: of the older searches, where neither the request nor the project says another

_FORMAT = Field(None, description="`v1.1`: an object with `results` instead of an array.")
_IGNORED = "Accepted, without effect: "

# In


class AddV1(schemas.AddRequest):
    """A conversation to remember, and whose it is."""

    output_format: str | None = _FORMAT
    async_mode: read.Flag = Field(True, description="False: wait for the outcome, for half a minute at most.")
    version: Any = Field(None, description=_IGNORED + "every add works like the third generation's.")
    org_id: Any = tenant.field(tenant.ORGANIZATION)
    project_id: Any = tenant.field(tenant.PROJECT)


class _OwnersBeside(schemas.Selection):
    """Owner ids at the top level count like conditions of the filters, and narrow them."""

    filters: dict[str, Any] = Field(
        {}, description="Which memories: owner ids, metadata, categories, dates, combined by AND, OR, NOT."
    )
    user_id: Any = Field(None, description="Only this user's.", json_schema_extra={"type": "string"})
    agent_id: Any = Field(None, description="Only this agent's.", json_schema_extra={"type": "string"})
    app_id: Any = Field(None, description="Only this app's.", json_schema_extra={"type": "string"})
    run_id: Any = Field(None, description="Only this run's.", json_schema_extra={"type": "string"})
    org_id: Any = tenant.field(tenant.ORGANIZATION)
    project_id: Any = tenant.field(tenant.PROJECT)

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Move the owner ids into the filters."""
        owners = {name: data[name] for name in OWNER_FIELDS if name in data}
        rest = {name: value for name, value in data.items() if name not in owners}
        given = rest.get("filters")
        if owners:
            rest["filters"] = {"AND": [owners, given]} if given else owners
        return super().prepare(rest)


class ListV2(_OwnersBeside, schemas.ListRequest):
    """Which memories to list."""


class SearchV2(_OwnersBeside, schemas.SearchRequest):
    """A question, and where to look."""

    threshold: Annotated[float, BeforeValidator(read.whole)] = Field(
        0.3, ge=0, le=1, description="Least score of a hit; 0 keeps all."
    )
    version: Any = Field(None, description=_IGNORED + "the path says it.")
    keyword_search: Any = Field(None, description=_IGNORED + "words always count.")
    filter_memories: Any = Field(None, description=_IGNORED + "use `threshold`.")


class SearchV1(_OwnersBeside, schemas.SearchRequest):
    """A question, and whose memories to search."""

    threshold: Annotated[float, BeforeValidator(read.whole)] = Field(
        0.0, ge=0, le=1, description="Least score of a hit; 0 keeps all."
    )
    output_format: str | None = _FORMAT
    keyword_search: Any = Field(None, description=_IGNORED + "words always count.")
    filter_memories: Any = Field(None, description=_IGNORED + "use `threshold`.")
    only_metadata_based_search: Any = Field(None, description=_IGNORED + "`metadata` always narrows.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Take `limit` for `top_k`."""
        if not set(OWNER_FIELDS) & set(data) and not data.get("filters"):
            raise ValueError(NO_OWNER_V1)
        if "limit" in data:
            data = {"top_k": data["limit"], **data}
        return super().prepare(data)


# Out


class AddedV1(answers.Added):
    """A memory that an add stored."""

    event_id: UUID = Field(description="The event of the add.")


class PendingV1(BaseModel):
    """An add that is not done yet, or that failed."""

    message: str = Field(description="What happened, for people.")
    status: Literal["PENDING", "RUNNING", "FAILED"] = Field(description="Before the end, poll the event.")
    event_id: UUID = Field(description="The event that holds the outcome.")


class AddedObject(BaseModel):
    results: list[AddedV1 | PendingV1] = Field(description="What was stored, or one entry that says where it will be.")
    relations: list[Any] = Field(description="Always empty.")
    skipped: list[answers.Skipped] | None = Field(None, description="Only with `infer: false`: what was not stored.")


class ListObject(BaseModel):
    results: list[answers.MemoryOut] = Field(description="The memories, newest first.")
    relations: list[Any] = Field(description="Always empty.")


class SearchObject(BaseModel):
    results: list[answers.HitOut] = Field(description="The hits, best first.")
    relations: list[Any] = Field(description="Always empty.")
