"""Answers that were given to requests with an Idempotency-Key, for their repeats."""

from __future__ import annotations

from dataclasses import dataclass

from app.store import event_rows
from app.store.db import Conn

KEPT_HOURS = 24  #: for which an answer is kept at least


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered with."""

    print: bytes  # digest of the request
    status: int  # HTTP, 200 to 299
    body: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a key."""

    print: bytes | None  # digest of the request that has it; None: none has
    answer: Answer | None  # None: there is none yet
    runs: bool  # that request is being carried out just now
    of_event: bool  # an event was requested with the key


# Of one key the pair (project, key) makes one number: two keys that share it wait for each other, which is harmless.
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended($2, $1))"


async def lock(conn: Conn, project_id: int, key: str) -> bool:
    """Keep others from this key until the end of the transaction; False, at once: somebody else has it."""
    taken: bool = await conn.fetchval(_LOCK, project_id, key)
    return taken


_FIND = """
SELECT a.print, a.status, a.answer, coalesce(a.lease_until > clock_timestamp(), false) AS runs,
       EXISTS (SELECT FROM events e WHERE e.project_id = $1 AND e.idempotency_key = $2) AS of_event
FROM (SELECT) one
LEFT JOIN idempotency_answers a ON a.project_id = $1 AND a.key = $2
"""


async def find(conn: Conn, project_id: int, key: str) -> Known:
    """Return what is known of the request with this key, and whether an event has it."""
    row = await conn.fetchrow(_FIND, project_id, key)
    answer = None if row["status"] is None else Answer(row["print"], row["status"], row["answer"])
    return Known(row["print"], answer, row["runs"], row["of_event"])


_KEEP = """
INSERT INTO idempotency_answers AS a (project_id, key, print, status, answer)
SELECT $1, $2, $3, $4, $5 FROM projects WHERE id = $1           -- a request may have deleted its own project
ON CONFLICT (project_id, key) DO UPDATE SET print = $3, status = $4, answer = $5, lease_until = NULL
    WHERE a.lease_until <= clock_timestamp()                    -- left behind by a process that died
"""


async def keep(conn: Conn, project_id: int, key: str, answer: Answer) -> bool:
    """Keep an answer for repeats. False: the key is somebody else's, or the project is gone."""
    done = await conn.execute(_KEEP, project_id, key, answer.print, answer.status, answer.body)
    return event_rows.count(done) == 1


_RESERVE = """
INSERT INTO idempotency_answers AS a (project_id, key, print, lease_until)
VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))
ON CONFLICT (project_id, key) DO UPDATE SET print = $3, lease_until = excluded.lease_until
    WHERE a.lease_until <= clock_timestamp()
"""


async def reserve(conn: Conn, project_id: int, key: str, body_print: bytes, *, lease_s: float) -> bool:
    """Let nobody else carry out the request with this key for so long. False: somebody else has the key."""
    return event_rows.count(await conn.execute(_RESERVE, project_id, key, body_print, lease_s)) == 1


_ANSWER = """
UPDATE idempotency_answers a SET status = $4, answer = $5, lease_until = NULL
WHERE a.project_id = $1 AND a.key = $2 AND a.print = $3 AND a.status IS NULL
  -- An erase takes the key from the event that it erases: nothing of what that event did may be kept then.
  AND (NOT $6 OR EXISTS (SELECT FROM events e WHERE e.project_id = $1 AND e.idempotency_key = $2))
"""


async def answer(conn: Conn, project_id: int, key: str, answer: Answer, *, is_event: bool) -> None:
    """Keep the answer to a request that was reserved, unless it was erased meanwhile. `is_event`: an event has the key."""
    await conn.execute(_ANSWER, project_id, key, answer.print, answer.status, answer.body, is_event)


_RELEASE = "DELETE FROM idempotency_answers WHERE project_id = $1 AND key = $2 AND print = $3 AND status IS NULL"


async def release(conn: Conn, project_id: int, key: str, body_print: bytes) -> None:
    """Free the key of a request that was reserved and came to nothing."""
    await conn.execute(_RELEASE, project_id, key, body_print)


_FORGET = "DELETE FROM idempotency_answers WHERE project_id = $1"


async def forget(conn: Conn, project_id: int) -> int:
    """Delete all answers of a project, which may quote memories and name owners; return how many. For erasing.

    A repeat of one of these requests is then a new request.
    """
    return event_rows.count(await conn.execute(_FORGET, project_id))


_PURGE = """
DELETE FROM idempotency_answers                                 -- idempotency_answers_old
WHERE made_at < statement_timestamp() - make_interval(hours => $1)
"""


async def purge(conn: Conn) -> int:
    """Delete the answers of all projects that need not be kept any longer; return how many."""
    return event_rows.count(await conn.execute(_PURGE, KEPT_HOURS))
