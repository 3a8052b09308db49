"""The numbers of a project."""

from __future__ import annotations

from pydantic import BaseModel, Field
from starlette.types import Scope

from app import errors, log
from app.api import auth, docs, tenant
from app.api.auth import Caller, RuntimeDep
from app.api.wire import Reply, Shape, router
from app.domain import stats

NO_LIMIT = 2_147_483_647  #: what stands where the hosted platform has a quota: clients expect an integer

#: Which routes read memories, by the name of their function, and as what a read counts.
READS = {
    "search_memories": "SEARCH", "search_memories_v1": "SEARCH", "search_memories_v2": "SEARCH",
    "make_context": "SEARCH", "explain_search": "SEARCH",
    "list_memories": "GET_ALL", "list_memories_v1": "GET_ALL", "list_memories_v2": "GET_ALL",
    "list_memories_of_entity": "GET_ALL", "get_memory": "GET",
}  # fmt: skip

routes = router(Shape.ERROR, tag="service")
_log = log.get(__name__)


class StatsOut(BaseModel):
    """The numbers of a project."""

    total_memories: int = Field(description="Memories.")
    total_add_events: int = Field(description="Adds that were accepted.")
    total_retrieval_events: int = Field(description="Searches, lists and reads that were answered.")
    total_api_retrieval_events: int = Field(description="The same: everything comes through the API.")
    total_retrieval_events_limit: int = Field(description="There is no limit; always 2147483647.")
    total_users_with_memories: int = Field(description="Users that have memories.")
    total_agents_with_memories: int = Field(description="Agents that have memories.")
    total_runs_with_memories: int = Field(description="Runs that have memories.")
    memories_per_user: int = Field(description="Memories of users by number of users, rounded.")
    memories_per_agent: int = Field(description="Memories of agents by number of agents, rounded.")
    memories_per_run: int = Field(description="Memories of runs by number of runs, rounded.")


@routes.get(
    "/v1/stats/",
    response_model=StatsOut,
    responses=docs.statuses(403, shape=Shape.ERROR),
    dependencies=tenant.IN_QUERY,
)
async def get_stats(caller: Caller, rt: RuntimeDep) -> Reply:
    """Return the project's numbers. Reads that another process answered are counted within seconds."""
    numbers = await stats.read(rt, caller)
    return Reply({
        "total_memories": numbers.memories,
        "total_add_events": numbers.adds,
        "total_retrieval_events": numbers.retrievals,
        "total_api_retrieval_events": numbers.retrievals,
        "total_retrieval_events_limit": NO_LIMIT,
        "total_users_with_memories": numbers.users,
        "total_agents_with_memories": numbers.agents,
        "total_runs_with_memories": numbers.runs,
        "memories_per_user": _each(numbers.of_users, numbers.users),
        "memories_per_agent": _each(numbers.of_agents, numbers.agents),
        "memories_per_run": _each(numbers.of_runs, numbers.runs),
    })  # fmt: skip


def _each(memories: int, owners: int) -> int:
    return round(memories / owners) if owners else 0


async def note_read(scope: Scope, status: int) -> None:
    """Count an answer that showed memories; after it was sent."""
    kind = READS.get(getattr(scope.get("route"), "name", ""))
    caller = scope.get(auth.CALLER)
    if kind is None or caller is None or status != 200:
        return
    try:
        await stats.note(scope["app"].state.runtime, caller.project.id, kind)
    except errors.AppError as error:  # a number that is shown to people; the request itself is answered
        _log.warning("stats.read_not_noted", code=error.code)
