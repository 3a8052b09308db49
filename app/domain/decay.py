"""Memories that are not used fade: each hit's score times a factor of when it was found before.

The factor is ACT-R's base-level activation B = ln(Σ age^-d), ages in hours, d = 0.5 (Anderson & Lebiere, The Atomic
Components of Thought, 1998), squashed into [0.3, 1.5]. The squash is fitted to the bands that the hosted platform
publishes: just found or just added about 1.5; today 1.2 to 1.4; idle for days 0.6 to 1.0; for weeks 0.4 to 0.6; for
months about 0.3.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from app import errors, log
from app.model import Hit
from app.runtime import Runtime
from app.store import lifecycle
from app.store.lifecycle import Standing

LOWEST, HIGHEST = 0.3, 1.5  # as published
D = 0.5  # ACT-R's usual decay
#: Chosen so that one access gives 1.50 after a minute, 1.36 after 3 hours, 1.0 after a day, 0.56 after a week, 0.4 after
#: four weeks and 0.34 after three months.
SLOPE, OFFSET = 1.65, 2.96
YOUNGEST_S = 60.0  #: the age of what happened just now
TO_COME = 1.0  #: factor of a memory that tells of something that is still to come, and was never found

MOST_WRITING = 64  #: searches whose accesses are being written; beyond, accesses are not noted

_writing: set[asyncio.Task[None]] = set()
_log = log.get(__name__)


def pool(top_k: int) -> int:
    """Return how many hits are looked at, so that a fresh one further down can rise."""
    return max(3 * top_k, 50)


def factor(standing: Standing, now: datetime) -> float:
    """Return by what a memory's score is multiplied at `now`: 0.3 for one that is forgotten, up to 1.5. Pure."""
    if standing.accessed_at:
        return _squashed(standing.accessed_at, now)
    if standing.happened_from is not None and standing.happened_from > now:
        return TO_COME
    return _squashed([standing.happened_from or standing.updated_at], now)


def _squashed(times: Sequence[datetime], now: datetime) -> float:
    ages_h = (max((now - at).total_seconds(), YOUNGEST_S) / 3600 for at in times)
    activation = math.log(sum(age_h**-D for age_h in ages_h))
    return LOWEST + (HIGHEST - LOWEST) / (1 + math.exp(-(SLOPE * activation + OFFSET)))


def faded(hits: Sequence[Hit], standings: Mapping[UUID, Standing], now: datetime) -> list[Hit]:
    """Return the hits by score times factor, best first; of equal ones the first stays first. Pure.

    Scores that are returned end at 1, the order counts what is beyond. A hit without a standing keeps its score.
    """
    scores = {
        hit.memory.id: hit.score * (factor(standings[hit.memory.id], now) if hit.memory.id in standings else 1.0)
        for hit in hits
    }
    ordered = sorted(hits, key=lambda hit: -scores[hit.memory.id])
    return [replace(hit, score=min(scores[hit.memory.id], 1.0)) for hit in ordered]


# Accesses


def note(rt: Runtime, project_id: int, ids: Collection[UUID]) -> None:
    """Write down, after the answer, that a search has found these memories. Never fails a search, and delays none."""
    if not ids:
        return
    if len(_writing) >= MOST_WRITING:
        _log.warning("accesses.not_noted", reason="too_many")
        return
    task = asyncio.create_task(_note(rt, project_id, list(ids), datetime.now(UTC)))
    _writing.add(task)
    task.add_done_callback(_writing.discard)


async def _note(rt: Runtime, project_id: int, ids: Collection[UUID], at: datetime) -> None:
    try:
        async with rt.db.transaction(project_id) as conn:
            await lifecycle.accessed(conn, project_id, ids, at)
    except errors.AppError as error:  # the database is away, or the project is gone: the next search notes again
        _log.warning("accesses.not_noted", reason=error.code)


async def settled() -> None:
    """Wait until everything that was noted by this event loop is written, or could not be."""
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(task for task in _writing if task.get_loop() is loop))
