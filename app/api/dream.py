"""Routes of the hosted platform that memoryd does not have: they say so, instead of being unknown."""

from __future__ import annotations

from typing import Annotated, NoReturn

from fastapi import Path

from app import errors
from app.api import docs
from app.api.auth import Caller
from app.api.directory import OrgId, ProjectId
from app.api.wire import Shape, router

_PREFIX = "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/dream"
_TEXT = (
    "not_yet_available: memoryd makes no pattern memories and has no dream API. Newer memories supersede older ones with "
    "every add; `lifecycle_state` and `replaced_by` of a memory show it."
)

routes = router(Shape.ERROR, tag="dream")


async def _refuse(org_id: OrgId, project_id: ProjectId, caller: Caller) -> NoReturn:
    """Not offered: the answer says so, and nothing else."""
    raise errors.NotOffered(_TEXT)


async def _refuse_run(
    org_id: OrgId, project_id: ProjectId, caller: Caller, run_id: Annotated[str, Path(description="Of a run.")]
) -> NoReturn:
    """Not offered: the answer says so, and nothing else."""
    raise errors.NotOffered(_TEXT)


async def _refuse_memory(
    org_id: OrgId, project_id: ProjectId, caller: Caller, memory_id: Annotated[str, Path(description="Of a memory.")]
) -> NoReturn:
    """Not offered: the answer says so, and nothing else."""
    raise errors.NotOffered(_TEXT)


for _name, _method, _path, _endpoint in (
    ("get_dream_config", "GET", "config", _refuse),
    ("update_dream_config", "PATCH", "config", _refuse),
    ("preview_dream", "POST", "preview", _refuse),
    ("list_dream_activity", "GET", "activity", _refuse),
    ("list_dream_runs", "GET", "runs", _refuse),
    ("list_dream_run_memories", "GET", "runs/{run_id}/memories", _refuse_run),
    ("list_dream_memory_sources", "GET", "memory/{memory_id}/sources", _refuse_memory),
    ("get_dream_stats", "GET", "stats", _refuse),
):
    routes.add_api_route(
        f"{_PREFIX}/{_path}/",
        _endpoint,
        methods=[_method],
        name=_name,
        status_code=501,
        response_model=None,
        responses=docs.statuses(404, 501, shape=Shape.ERROR),
    )
