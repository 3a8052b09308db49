"""Nothing of an owner stays: what is found, deleted, and counted once more. What each table keeps is in traces.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from app.model import Condition, Operator, OwnerKind
from app.store import entities, event_rows, memory_index, memory_rows, scopes, traces
from app.store.db import Conn
from app.store.traces import Reach

TOMBSTONE_S = 3600  #: for so long an owner that went along with another one is known to be gone, not unknown
ERASED = "erased"  #: the code of a failed event that was erased; it cannot be tried again

SENDING_MARGIN_S = 18.0  #: the end of a delivery's lease, in seconds, in which its request is over for sure
_SENDING_NOW = (
    f"(t.status = 'RUNNING' AND t.lease_until > clock_timestamp() + make_interval(secs => {SENDING_MARGIN_S}))"
)

_COUNTS = {
    table: traces.statement(f"SELECT count(*) FROM {table} t WHERE t.project_id = $1 AND ({where})")  # noqa: S608
    for table, where in traces.OF_OWNER.items()
}
_DELETES = {
    table: traces.statement(f"DELETE FROM {table} t WHERE t.project_id = $1 AND ({where})")  # noqa: S608
    for table, where in traces.OF_OWNER.items()
}
_SENDING = traces.statement(
    f"SELECT count(*) FROM deliveries t WHERE t.project_id = $1 AND {traces.DELIVERY} AND {_SENDING_NOW}"  # noqa: S608
)
_SETTLED = traces.statement(
    f"DELETE FROM deliveries t WHERE t.project_id = $1 AND {traces.DELIVERY} AND NOT {_SENDING_NOW}"  # noqa: S608
)
#: Those that are: whoever sends one drops the row when it knows the answer, as `deliveries.settle` does.
_EMPTY_SENT = traces.statement(f"""
UPDATE deliveries t
SET details = '{{}}', event_id = NULL, memory_id = NULL, user_id = NULL, agent_id = NULL, app_id = NULL, run_id = NULL
WHERE t.project_id = $1 AND {traces.DELIVERY}
RETURNING t.id
""")  # noqa: S608 - constants
_STILL_SENDING = f"""
SELECT count(*) FROM deliveries t WHERE t.project_id = $1 AND t.id = ANY ($2::uuid[]) AND {_SENDING_NOW}
"""  # noqa: S608 - a constant


def statements() -> dict[str, str]:
    """Return the statements that are built here, by what they do; a test prepares them."""
    built = {f"count {table}": one.sql for table, one in _COUNTS.items()}
    built |= {f"delete {table}": one.sql for table, one in _DELETES.items()}
    changes = {"sending": _SENDING, "settled": _SETTLED, "shrink": _SHRINK, "unname": _UNNAME}
    changes |= {"empty": _EMPTY_EVENTS, "drop": _DROP_INTERNAL, "empty sent": _EMPTY_SENT}
    return built | {what: one.sql for what, one in changes.items()}


# What there is


_ADDS = """
SELECT e.id, e.target_scope_ids, ARRAY(
    SELECT (r ->> 'id')::uuid FROM jsonb_array_elements(e.results) AS r WHERE r ? 'id') AS memory_ids
FROM events e                                                   -- events_scope
WHERE e.project_id = $1 AND e.scope_id = ANY ($2::bigint[])
ORDER BY e.seq
"""
_MEMORIES = """
SELECT h.memory_id AS id FROM history h WHERE h.project_id = $1 AND h.scope_id = ANY ($2::bigint[])     -- history_scope
UNION
SELECT m.id FROM memories m WHERE m.project_id = $1 AND m.scope_id = ANY ($2::bigint[])
"""
_MADE_FROM = """
SELECT DISTINCT s.memory_id AS id, o.scope_id
FROM messages g
JOIN memory_sources s ON s.project_id = $1 AND s.message_id = g.id
JOIN memories o ON o.project_id = $1 AND o.id = s.memory_id
WHERE g.project_id = $1 AND g.scope_id = ANY ($2::bigint[]) AND o.scope_id <> ALL ($2::bigint[])
"""
_LOCK = """
SELECT id FROM scopes WHERE project_id = $1 AND id = ANY ($2::bigint[])
ORDER BY id                                                     -- one order for everybody: no deadlock
FOR UPDATE                                                      -- an add that is being accepted waits, and finds it gone
"""


async def find(
    conn: Conn, project_id: int, kind: OwnerKind, name: str, *, fields: Collection[str], hold: bool = False
) -> Reach:
    """Return what the owner's rows are found by. `hold`: its scopes, until the end of the transaction.

    What was said with a user is the user's, and so is what an agent remembers of it. The other way round, what a user told
    an agent stays the user's when the agent is erased.
    """
    node = Condition(f"{kind}_id", Operator.EQ, name)  # the name as it is: "*" is no wildcard here
    scope_ids = await scopes.matching(conn, project_id, node)
    if hold:
        targets = {scope for row in await conn.fetch(_ADDS, project_id, scope_ids) for scope in row["target_scope_ids"]}
        made = {row["scope_id"] for row in await conn.fetch(_MADE_FROM, project_id, scope_ids)}
        await conn.fetch(_LOCK, project_id, sorted({*scope_ids, *targets, *made}))
    adds = await conn.fetch(_ADDS, project_id, scope_ids)
    own = {row["id"] for row in await conn.fetch(_MEMORIES, project_id, scope_ids)}
    elsewhere = await conn.fetch(_MADE_FROM, project_id, scope_ids)
    shared = {scope for row in adds for scope in row["target_scope_ids"]} | {row["scope_id"] for row in elsewhere}
    made = {memory_id for row in adds for memory_id in row["memory_ids"]} | {row["id"] for row in elsewhere}
    erased, kept = (own | made, set[UUID]()) if kind == "user" else (own, made - own)
    return Reach(
        kind=kind,
        name=name,
        fields=tuple(fields),
        scopes=tuple(scope_ids),
        shared=tuple(sorted(shared - set(scope_ids))),
        adds=tuple(row["id"] for row in adds),
        memories=tuple(sorted(erased)),
        kept=tuple(sorted(kept)),
    )


async def hold(conn: Conn, project_id: int, reach: Reach) -> None:
    """Hold its scopes, and those that it shares, until the end of the transaction."""
    await conn.fetch(_LOCK, project_id, sorted({*reach.scopes, *reach.shared}))


async def count(conn: Conn, project_id: int, reach: Reach) -> dict[str, int]:
    """Return by table how many rows there are of it now."""
    return {
        table: await conn.fetchval(statement.sql, *statement.args(project_id, reach))
        for table, statement in _COUNTS.items()
    }


async def sending(conn: Conn, project_id: int, reach: Reach) -> int:
    """Return how many deliveries of it are just being sent."""
    found: int = await conn.fetchval(_SENDING.sql, *_SENDING.args(project_id, reach))
    return found


async def still_sending(conn: Conn, project_id: int, delivery_ids: Collection[UUID]) -> int:
    """Return how many of these deliveries, which `remove` found being sent, still are."""
    found: int = await conn.fetchval(_STILL_SENDING, project_id, list(delivery_ids))
    return found


async def unsend(conn: Conn, project_id: int, reach: Reach) -> Counter[str]:
    """Delete its deliveries that are not just being sent; return how many rows went, by table."""
    log = _DELETES["delivery_attempts"]
    return Counter(
        delivery_attempts=event_rows.count(await conn.execute(log.sql, *log.args(project_id, reach))),
        deliveries=event_rows.count(await conn.execute(_SETTLED.sql, *_SETTLED.args(project_id, reach))),
    )


# What may still become of something


#: Only that it was asked for and has ended stays of an event, so that whoever waits for it learns that.
_EMPTIED = f"""payload = '{{}}', checkpoint = NULL, results = '[]', error = NULL,
    error_code = CASE WHEN e.status = 'FAILED' THEN '{ERASED}' END,
    metadata = CASE WHEN e.status IN ('PENDING', 'RUNNING') THEN jsonb_build_object('cancelled_by', 'erase')
                    ELSE jsonb_build_object('erased', true) END,
    status = CASE WHEN e.status = 'FAILED' THEN 'FAILED' ELSE 'SUCCEEDED' END, lease_until = NULL,
    scope_id = NULL, target_scope_ids = '{{}}', cancelled_scope_ids = '{{}}', idempotency_key = NULL,
    idempotency_print = NULL, completed_at = coalesce(e.completed_at, clock_timestamp()), updated_at = clock_timestamp()"""
_FENCE = f"""
WITH hit AS (                                   -- events_open; in one order, so that nobody deadlocks
    SELECT project_id, id FROM events
    WHERE project_id = $1 AND status IN ('PENDING', 'RUNNING') AND scope_id = ANY ($2::bigint[])
    ORDER BY seq
    FOR UPDATE
)
UPDATE events e SET {_EMPTIED}
FROM hit
WHERE e.project_id = hit.project_id AND e.id = hit.id
"""  # noqa: S608 - a constant
_EMPTY_EVENTS = traces.statement(
    f"UPDATE events e SET {_EMPTIED} WHERE e.project_id = $1 AND ({traces.as_('e', traces.OF_OWNER['events'])})"  # noqa: S608
)
_DROP_INTERNAL = traces.statement(
    f"DELETE FROM events t WHERE t.project_id = $1 AND {traces.OF_CHANGES} AND t.kind = 'CATEGORIZE' AND {traces.SOME}"  # noqa: S608
)
_AGAIN = """
UPDATE events SET status = 'PENDING', attempts = greatest(attempts - 1, 0), next_at = clock_timestamp(),
    lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND status = 'RUNNING' AND kind <> 'ADD'
"""


async def fence(conn: Conn, project_id: int, scope_ids: Collection[int]) -> int:
    """End the adds that are said in these scopes and not done; nothing comes of them. Return how many.

    A worker that has one finds itself fenced off; one that is just writing is waited for.
    """
    return event_rows.count(await conn.execute(_FENCE, project_id, list(scope_ids)))


async def read_again(conn: Conn, project_id: int) -> None:
    """Let exports and profiles that are being made begin anew: they may have read what is erased here."""
    await conn.execute(_AGAIN, project_id)


# What goes


_SHRINK = traces.statement(f"""
UPDATE events t
SET payload = t.payload
        || CASE WHEN t.payload ? 'memories' THEN jsonb_build_object('memories', (
            SELECT coalesce(jsonb_agg(x ORDER BY n), '[]') FROM jsonb_array_elements(t.payload -> 'memories')
                WITH ORDINALITY AS e (x, n) WHERE x ->> 'memory_id' <> ALL (:memories::text[]))) ELSE '{{}}' END
        || CASE WHEN t.payload ? 'memory_ids' THEN jsonb_build_object('memory_ids', (
            SELECT coalesce(jsonb_agg(x ORDER BY n), '[]') FROM jsonb_array_elements_text(t.payload -> 'memory_ids')
                WITH ORDINALITY AS e (x, n) WHERE x <> ALL (:memories::text[]))) ELSE '{{}}' END,
    results = (SELECT coalesce(jsonb_agg(x ORDER BY n), '[]') FROM jsonb_array_elements(t.results)
               WITH ORDINALITY AS e (x, n) WHERE (x ->> 'id' <> ALL (:memories::text[])) IS NOT FALSE),
    idempotency_key = NULL, idempotency_print = NULL, updated_at = clock_timestamp()
WHERE t.project_id = $1 AND {traces.OF_CHANGES} AND {traces.SOME} AND {traces.OTHERS}
""")  # noqa: S608 - constants
_UNNAME = traces.statement(f"""
UPDATE events t
SET payload = jsonb_set(t.payload, '{{entity_ids}}', (t.payload -> 'entity_ids') - :name),
    results = (SELECT coalesce(jsonb_agg(x ORDER BY n), '[]') FROM jsonb_array_elements(t.results)
               WITH ORDINALITY AS e (x, n) WHERE x ->> 'entity_id' IS DISTINCT FROM :name),
    checkpoint = (SELECT jsonb_agg(x ORDER BY n) FROM jsonb_array_elements(t.checkpoint)
                  WITH ORDINALITY AS e (x, n) WHERE x ->> 'entity_id' IS DISTINCT FROM :name),
    idempotency_key = NULL, idempotency_print = NULL, updated_at = clock_timestamp()
WHERE t.project_id = $1 AND {traces.PROFILE_OF} AND jsonb_array_length(t.payload -> 'entity_ids') > 1
""")  # noqa: S608 - constants
_BLANK = """
UPDATE history SET input = '[]'
WHERE project_id = $1 AND memory_id = ANY ($2::uuid[]) AND event_id = ANY ($3::uuid[])           -- history_memory
"""


@dataclass(frozen=True, slots=True)
class Removed:
    """What `remove` has done."""

    rows: Counter[str]  # by table
    memories: list[UUID]  # that were there
    sending: list[UUID]  # deliveries that are just being sent: empty now, and gone when their senders know the answer


async def remove(conn: Conn, project_id: int, reach: Reach) -> Removed:
    """Delete what is found by `reach`, scopes and owner too, and empty its events; the caller holds the scopes."""
    rows: Counter[str] = Counter()
    for change in (_SHRINK, _UNNAME, _DROP_INTERNAL):
        rows["events"] += event_rows.count(await conn.execute(change.sql, *change.args(project_id, reach)))
    await conn.execute(_BLANK, project_id, list(reach.kept), list(reach.adds))
    mentioned = await entities.linked_to(conn, project_id, reach.memories)
    rows["terms"] += await memory_index.delete_terms(conn, project_id, reach.memories)
    there: list[UUID] = []
    sending: list[UUID] = []
    for table, statement in _DELETES.items():
        if table == "memories":
            there, deltas = await memory_rows.delete(conn, project_id, reach.memories)
            rows[table] += len(there)
            rows["entities"] += await entities.delete_unmentioned(conn, project_id, mentioned)
            await scopes.count(conn, project_id, deltas)
            continue
        one = {"deliveries": _SETTLED, "events": _EMPTY_EVENTS}.get(table, statement)
        rows[table] += event_rows.count(await conn.execute(one.sql, *one.args(project_id, reach)))
        if table == "deliveries":
            sent = await conn.fetch(_EMPTY_SENT.sql, *_EMPTY_SENT.args(project_id, reach))
            sending = [row["id"] for row in sent]
            rows[table] += len(sending)
    return Removed(rows, there, sending)


# Whoever went along


_OTHERS_NAMED = """
SELECT DISTINCT n.kind, n.name
FROM scopes s
CROSS JOIN LATERAL (VALUES ('agent', s.agent_id), ('app', s.app_id), ('run', s.run_id)) AS n (kind, name)
WHERE s.project_id = $1 AND s.id = ANY ($2::bigint[]) AND n.name IS NOT NULL
"""
_EMPTY = """
DELETE FROM scopes s
WHERE s.project_id = $1 AND s.id = ANY ($2::bigint[]) AND s.memory_count = 0
  AND NOT EXISTS (SELECT FROM messages m WHERE m.project_id = $1 AND m.scope_id = s.id)
  AND NOT EXISTS (SELECT FROM history h WHERE h.project_id = $1 AND h.scope_id = s.id)
  AND NOT EXISTS (SELECT FROM events e WHERE e.project_id = $1 AND e.scope_id = s.id)
  AND NOT EXISTS (SELECT FROM events e WHERE e.project_id = $1 AND e.status IN ('PENDING', 'RUNNING')
                  AND s.id = ANY (e.target_scope_ids))          -- events_open
"""
_ALONG = """
WITH gone AS (
    DELETE FROM owners o USING unnest($2::text[], $3::text[]) AS n (kind, name)
    WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name
      AND (o.kind = 'run' OR (o.title IS NULL AND o.metadata IS NULL))          -- not one that was made by hand
      AND NOT EXISTS (SELECT FROM scopes s WHERE s.project_id = $1 AND n.kind = 'agent' AND s.agent_id = n.name)
      AND NOT EXISTS (SELECT FROM scopes s WHERE s.project_id = $1 AND n.kind = 'app' AND s.app_id = n.name)
      AND NOT EXISTS (SELECT FROM scopes s WHERE s.project_id = $1 AND n.kind = 'run' AND s.run_id = n.name)
    RETURNING o.kind, o.id, o.name
), known AS (
    INSERT INTO erased_owners (project_id, kind, owner_id, digest)
    SELECT $1, kind, id, sha256(convert_to($1::bigint || ':' || kind || ':' || name, 'UTF8')) FROM gone
)
SELECT kind, name FROM gone
"""


async def others_named(conn: Conn, project_id: int, reach: Reach) -> list[tuple[OwnerKind, str]]:
    """Return the agents, applications and runs that its scopes name, as they may go along; before they are deleted."""
    rows = await conn.fetch(_OTHERS_NAMED, project_id, [*reach.scopes, *reach.shared])
    return [(row["kind"], row["name"]) for row in rows if (row["kind"], row["name"]) != (reach.kind, reach.name)]


async def delete_along(
    conn: Conn, project_id: int, reach: Reach, named: Collection[tuple[OwnerKind, str]]
) -> tuple[Counter[str], list[tuple[OwnerKind, str]]]:
    """Delete the shared scopes that are empty now, and of these owners those that no scope names any more and nobody made by
    hand. Return how many rows went, and which owners.
    """
    gone: Counter[str] = Counter()
    gone["scopes"] = event_rows.count(await conn.execute(_EMPTY, project_id, list(reach.shared)))
    rows = await conn.fetch(_ALONG, project_id, [kind for kind, _ in named], [name for _, name in named])
    gone["owners"] = len(rows)
    return gone, [(row["kind"], row["name"]) for row in rows]


_WENT_ALONG = """
DELETE FROM erased_owners
WHERE project_id = $1 AND kind = $2 AND erased_at > clock_timestamp() - make_interval(secs => $5)
  AND (owner_id = $4 OR digest = sha256(convert_to($1::bigint || ':' || $2::text || ':' || $3::text, 'UTF8')))
"""


async def went_along(
    conn: Conn, project_id: int, kind: OwnerKind, *, name: str | None = None, owner_id: int | None = None
) -> bool:
    """Return whether this owner, by name or number, was erased along with another one lately; it is asked once."""
    return event_rows.count(await conn.execute(_WENT_ALONG, project_id, kind, name, owner_id, float(TOMBSTONE_S))) > 0


_FORGET_OLD = "DELETE FROM erased_owners WHERE erased_at <= clock_timestamp() - make_interval(secs => $1)"


async def forget_old(conn: Conn) -> None:
    """Forget, in all projects, the owners that went along long ago; index erased_owners_age."""
    await conn.execute(_FORGET_OLD, float(TOMBSTONE_S))
