"""Count how often memories are read, and tell a project's numbers."""

from __future__ import annotations

import time
from collections import Counter

from app.model import Caller, Stats
from app.runtime import Runtime
from app.store import stats

FLUSH_S = 5.0  #: a read is in memory for so long at most while others follow; a process that dies loses these

_counts: dict[int, Counter[str]] = {}  # by project: reads of this process that are not in the database yet
_flushed: dict[int, float] = {}  # by project: when, on the clock of time.monotonic


async def note(rt: Runtime, project_id: int, kind: str) -> None:
    """Count one read: SEARCH, GET_ALL or GET. Writes to the database every few seconds only.

    Raises: DatabaseUnavailable; the read is counted all the same.
    """
    _counts.setdefault(project_id, Counter())[kind] += 1
    if time.monotonic() - _flushed.get(project_id, -FLUSH_S) >= FLUSH_S:
        await flush(rt, project_id)


async def flush(rt: Runtime, project_id: int) -> None:
    """Write down what this process has counted for a project. Raises: DatabaseUnavailable."""
    counted = _counts.pop(project_id, None)
    if counted is None:
        return
    _flushed[project_id] = time.monotonic()
    try:
        async with rt.db.transaction(project_id) as conn:
            await stats.add_retrievals(conn, project_id, counted)
    except BaseException:
        _counts.setdefault(project_id, Counter()).update(counted)
        raise


async def read(rt: Runtime, caller: Caller) -> Stats:
    """Return the numbers of the caller's project. Raises: DatabaseUnavailable."""
    await flush(rt, caller.project.id)
    async with rt.db.acquire(caller.project.id) as conn:
        return await stats.read(conn, caller.project.id)
