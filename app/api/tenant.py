"""`org_id` and `project_id`: older clients send them with most requests. The key alone says which project is meant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import Field

from app import errors, model
from app.api.auth import Caller

ORGANIZATION = "The key's organization, which need not be named."
PROJECT = "The key's project, which need not be named; another one is refused."


def check(caller: model.Caller, org_id: object, project_id: object) -> None:
    """Refuse ids that are not the key's: the caller means another project than the one that would answer.

    Raises: NotAllowed.
    """
    known = (
        ("org_id", org_id, caller.project.organization_public_id),
        ("project_id", project_id, caller.project.public_id),
    )
    for name, given, own in known:
        if given is not None and given != "" and given != own:
            raise errors.NotAllowed(
                f"You don't have access to this project: {name} is not the key's own. Leave it out, or ask /v1/ping/."
            )


async def _query(
    caller: Caller,
    org_id: Annotated[str | None, Query(description=ORGANIZATION)] = None,
    project_id: Annotated[str | None, Query(description=PROJECT)] = None,
) -> None:
    check(caller, org_id, project_id)


#: For `dependencies=` of routes that older clients call with the ids in the query.
IN_QUERY = [Depends(_query)]


def field(description: str) -> Any:
    """Return the field of a body for one of the ids."""
    return Field(None, description=description, json_schema_extra={"type": "string"})
