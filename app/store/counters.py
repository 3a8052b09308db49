"""Numbers of the whole installation: what workers have counted, and what waits. Directory work, no project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.store.db import Conn

MOST = 1_000_000  #: rows that are counted at most; more are shown as this many

Labels = tuple[tuple[str, str], ...]

_ADD = """
INSERT INTO counters (name, value) SELECT n.name, n.value FROM unnest($1::text[], $2::bigint[]) AS n (name, value)
ORDER BY n.name                                 -- one order for all workers: no deadlock
ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value
"""
_LIST = "SELECT name, value FROM counters ORDER BY name"

_WAITING = """
SELECT (SELECT count(*) FROM (SELECT FROM events WHERE status = 'PENDING' LIMIT $1) w) AS pending,
       (SELECT count(*) FROM (SELECT FROM events WHERE status = 'PENDING' AND next_at <= statement_timestamp() LIMIT $1) w)
           AS due,
       (SELECT count(*) FROM (SELECT FROM events WHERE status = 'RUNNING' LIMIT $1) w) AS running
"""


async def add(conn: Conn, counted: Mapping[tuple[str, Labels], int]) -> None:
    """Add to the counters."""
    if counted:
        names = [json.dumps([name, *map(list, labels)]) for name, labels in counted]
        await conn.execute(_ADD, names, list(counted.values()))


async def totals(conn: Conn) -> dict[tuple[str, Labels], int]:
    """Return every counter."""
    found: dict[tuple[str, Labels], int] = {}
    for row in await conn.fetch(_LIST):
        name, *labels = json.loads(row["name"])
        found[name, tuple((label, value) for label, value in labels)] = row["value"]
    return found


async def waiting(conn: Conn) -> Mapping[str, Any]:
    """Return how many events are pending, due and running, each counted up to `MOST`."""
    row: Mapping[str, Any] = await conn.fetchrow(_WAITING, MOST)
    return row
