"""Workers that live: each writes its row every few seconds. Directory work, no project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.store.db import Conn

FORGET_S = 3600.0  #: a worker that was not seen for so long is dropped from the list

_BEAT = """
INSERT INTO workers (id, slots, running) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET slots = excluded.slots, running = excluded.running, seen_at = clock_timestamp()
RETURNING clock_timestamp()
"""
_FORGET = "DELETE FROM workers WHERE id = $1 OR seen_at < clock_timestamp() - make_interval(secs => $2)"
_ALIVE = """
SELECT id, slots, running, started_at, seen_at FROM workers
WHERE seen_at >= clock_timestamp() - make_interval(secs => $1)
ORDER BY started_at, id
"""


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker process, as it last reported."""

    id: str
    slots: int  # events that it processes at the same time
    running: int  # events that it was processing
    started_at: datetime
    seen_at: datetime


async def beat(conn: Conn, worker_id: str, *, slots: int, running: int) -> datetime:
    """Say that this worker lives; return what time it is by the database."""
    now: datetime = await conn.fetchval(_BEAT, worker_id, slots, running)
    return now


async def forget(conn: Conn, worker_id: str) -> None:
    """Say that this worker ends, and drop those that ended without a word."""
    await conn.execute(_FORGET, worker_id, FORGET_S)


async def alive(conn: Conn, *, within_s: float) -> list[Worker]:
    """Return the workers that were seen in the last `within_s` seconds, longest-running first."""
    return [_worker(row) for row in await conn.fetch(_ALIVE, within_s)]


def _worker(row: Mapping[str, Any]) -> Worker:
    return Worker(row["id"], row["slots"], row["running"], row["started_at"], row["seen_at"])
