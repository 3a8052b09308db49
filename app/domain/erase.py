"""Erase an owner or a project: every trace of it, with a receipt that a second look has confirmed.

An erase is safe to repeat and to break off: a large one goes in parts, each of which takes whole memories with all that is
known of them, and the owner itself goes last, so that the next one finds what is left.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from uuid_utils.compat import uuid7

from app import errors
from app.domain import announce, audit, pins, request
from app.domain.filter_fields import CAMEL
from app.model import Caller, Event, OwnerKind, Project, Status
from app.runtime import Runtime
from app.store import announcements, erase_owner, events, owners, traces
from app.store import erase as erase_rows
from app.store.db import Conn
from app.store.traces import Reach

T = TypeVar("T")

KIND = "DELETE_USER"  #: of the event that holds the receipt
PAUSE_S = 0.05  #: between two looks whether what is being sent has arrived
LOOKS = 10  #: so many, before the rest is erased all the same
TRIES = 5  #: of a transaction that another one kept from its rows

#: What no statement reaches, for people.
NOT_COVERED_OF_PROJECTS = (
    "backups and archived write-ahead log, until they age out",
    "pages of tables and indexes on disk, and the samples of the query planner, until PostgreSQL has vacuumed and analyzed"
    " them, as it does by itself, or `memoryd erase --vacuum` at once",
    "what webhook receivers, model servers and callers were sent before",
    "words in the memory of running processes, until they restart",
)
NOT_COVERED = (*NOT_COVERED_OF_PROJECTS, "API keys that are pinned to it by its id; `memoryd keys list` shows them")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erase has taken; it names nobody."""

    id: UUID
    erased_at: datetime
    erased: dict[str, int]  # rows, by table; tables without any are left out
    remaining: dict[str, int] = field(default_factory=dict)  # rows that a second look found, the same way
    verified: bool = False  # the second look was taken, and found nothing
    not_covered: tuple[str, ...] = NOT_COVERED

    def shown(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        at = self.erased_at.isoformat().replace("+00:00", "Z")
        return {**asdict(self), "id": str(self.id), "erased_at": at, "not_covered": list(self.not_covered)}


@dataclass(frozen=True, slots=True)
class Erased:
    """An erase of an owner that was carried out, now or under the same idempotency key before."""

    event: Event
    receipt: dict[str, Any]


# Projects


async def stop_sending(rt: Runtime, project_ids: Sequence[int]) -> None:
    """Send nothing more of these projects, which are about to be erased, and wait for what is just being sent."""
    while True:
        async with rt.db.transaction(None) as conn:
            await erase_rows.quiet(conn, project_ids)
            if not await erase_rows.sending(conn, project_ids, margin_s=erase_owner.SENDING_MARGIN_S):
                return
        await asyncio.sleep(PAUSE_S)


async def projects(conn: Conn, project_ids: Sequence[int]) -> Receipt:
    """Erase projects with all their rows, in the caller's transaction; `confirmed` takes the second look at the receipt."""
    gone: Counter[str] = Counter()
    for project_id in project_ids:
        gone += Counter(await erase_rows.project(conn, project_id))
    return Receipt(uuid7(), datetime.now(UTC), _some(gone), not_covered=NOT_COVERED_OF_PROJECTS)


async def confirmed(rt: Runtime, receipt: Receipt, project_ids: Sequence[int]) -> Receipt:
    """Return the receipt with what a second look has found of these projects."""
    left: Counter[str] = Counter()
    async with rt.db.acquire(None) as conn:
        for project_id in project_ids:
            left += Counter(await erase_rows.left(conn, project_id))
    return replace(receipt, remaining=dict(left), verified=not left)


# Owners


async def owner(
    rt: Runtime, caller: Caller, kind: OwnerKind, name: str, *, idempotency_key: str | None = None
) -> Erased:
    """Erase an owner that a caller may reach; see `of_project`. Raises: NotFound, NotAllowed, KeyReused."""
    pins.require_owner(caller, kind, name)
    return await of_project(rt, caller.project, kind, name, idempotency_key=idempotency_key)


async def numbered(
    rt: Runtime, caller: Caller, kind: OwnerKind, owner_id: int, *, idempotency_key: str | None = None
) -> Erased:
    """Erase the owner with this number. Raises: NotFound, NotAllowed, KeyReused."""
    project_id = caller.project.id
    async with rt.db.transaction(project_id) as conn:
        found = await owners.find_by_id(conn, project_id, kind, owner_id)
        along = found is None and not caller.pins
        if along and await erase_owner.went_along(conn, project_id, kind, owner_id=owner_id):
            return await _nothing_left(conn, project_id, kind)
    if found is None or not pins.covers(caller.pins, kind, found.name):
        raise unknown()
    return await owner(rt, caller, kind, found.name, idempotency_key=idempotency_key)


async def of_project(
    rt: Runtime, project: Project, kind: OwnerKind, name: str, *, idempotency_key: str | None = None
) -> Erased:
    """Erase an owner of a project: what is its own, what it shares with others, and what was made from that.

    Adds that were accepted before and are not done end with nothing. What is just being sent to an endpoint is waited for;
    afterwards nothing is sent. Receivers of `memory_delete` are told the ids. With an `idempotency_key` that was used for the
    same request, erase nothing. Raises: NotFound, KeyReused.
    """
    asked = {"entity_type": kind, "entity_id": name}
    body_print = None if idempotency_key is None else request.fingerprint(KIND, asked)
    async with rt.db.transaction(project.id) as conn:
        if idempotency_key is not None:
            earlier = await events.find_by_key(conn, project.id, idempotency_key, body_print)
            if earlier is not None:
                return _erased(earlier)
        if await owners.find(conn, project.id, kind, name) is None:
            if await erase_owner.went_along(conn, project.id, kind, name=name):
                return await _nothing_left(conn, project.id, kind)
            raise unknown()
    job = _Job(rt, project, kind, name, idempotency_key, body_print)
    await job.take_parts()
    await job.stop_sending()
    event = await job.finish()
    await job.wait_for_senders()
    erased = _erased(await job.look_again(event))
    await announce.ring(rt, [event.id] if job.told else [])
    return erased


async def counted(rt: Runtime, project: Project, kind: OwnerKind, name: str) -> dict[str, int]:
    """Return by table how many rows an erase would take; nothing changes. Raises: NotFound."""
    async with rt.db.acquire(project.id) as conn:
        if await owners.find(conn, project.id, kind, name) is None:
            raise unknown()
        return _some(await erase_owner.count(conn, project.id, await _reach(conn, project.id, kind, name)))


def unknown() -> errors.NotFound:
    """Return the refusal of an owner that there is not."""
    return errors.NotFound("Entity not found")


async def _reach(conn: Conn, project_id: int, kind: OwnerKind, name: str, *, hold: bool = False) -> Reach:
    spellings = [camel for camel, plain in CAMEL.items() if plain == f"{kind}_id"]
    return await erase_owner.find(conn, project_id, kind, name, fields=[f"{kind}_id", *spellings], hold=hold)


async def _nothing_left(conn: Conn, project_id: int, kind: OwnerKind) -> Erased:
    """Return the receipt of an owner that went along with another one."""
    event_id = uuid7()
    receipt = Receipt(event_id, datetime.now(UTC), {}, {}, verified=True)
    outcome = {"deleted": 0, "cancelled_adds": 0, "receipt": receipt.shown()}
    event = await events.insert(
        conn, project_id, event_id, KIND, {"entity_type": kind}, status=Status.SUCCEEDED, metadata=outcome
    )
    return _erased(event)


def _erased(event: Event) -> Erased:
    return Erased(event, (event.metadata or {}).get("receipt", {}))  # an older release wrote none


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {table: count for table, count in counts.items() if count}


class _Job:
    """One erase of an owner on its way."""

    def __init__(
        self, rt: Runtime, project: Project, kind: OwnerKind, name: str, key: str | None, body_print: bytes | None
    ) -> None:
        self._rt = rt
        self._project = project
        self._project_id = project.id
        self._owner = (kind, name)
        self._key = (key, body_print)
        self._event_id = uuid7()
        self._gone: Counter[str] = Counter()
        self.told = 0  #: deliveries that say which memories are gone
        self._cancelled = 0  # adds that were under way
        self._sending: list[UUID] = []  # deliveries whose requests were under way
        self._met: list[Reach] = []  # whatever was found, for the second look

    async def take_parts(self) -> None:
        """Erase most of an owner that has much, a part a transaction; of others, nothing yet."""
        reach = await self._in_transaction(self._find)
        self._met.append(reach)
        if len(reach.memories) <= traces.CHUNK and len(reach.adds) <= traces.CHUNK:
            return
        self._cancelled += await self._in_transaction(
            partial(erase_owner.fence, project_id=self._project_id, scope_ids=reach.scopes)
        )
        for part in reach.parts():
            self._gone += await self._in_transaction(partial(self._take, whole=reach, part=part))

    async def stop_sending(self) -> None:
        """Delete the deliveries of the owner, and give those that are just being sent the time that most need."""
        for _ in range(LOOKS):
            if not await self._in_transaction(self._unsend):
                return
            await asyncio.sleep(PAUSE_S)

    async def finish(self) -> Event:
        """Erase what is left, the owner too, and return the event. Raises: KeyReused."""
        return await self._in_transaction(self._finish)

    async def wait_for_senders(self) -> None:
        """Return when no request about the owner is under way any more; each has a time limit."""
        while True:
            async with self._rt.db.acquire(self._project_id) as conn:
                if not await erase_owner.still_sending(conn, self._project_id, self._sending):
                    return
            await asyncio.sleep(PAUSE_S)

    async def look_again(self, event: Event) -> Event:
        """Count in a second look what is left, and put it into the receipt; return the event as it is then."""
        return await self._in_transaction(partial(self._look_again, event=event))

    async def _find(self, conn: Conn, *, hold: bool = False) -> Reach:
        return await _reach(conn, self._project_id, *self._owner, hold=hold)

    async def _take(self, conn: Conn, *, whole: Reach, part: Reach) -> Counter[str]:
        await erase_owner.hold(conn, self._project_id, whole)
        removed = await erase_owner.remove(conn, self._project_id, part)
        self._sending += removed.sending
        await self._tell(conn, removed.memories)
        return removed.rows

    async def _tell(self, conn: Conn, there: Sequence[UUID]) -> None:
        self.told += await announcements.insert_erased(conn, self._project_id, there, self._event_id)

    async def _unsend(self, conn: Conn) -> bool:
        """Delete what is not just being sent; True: something is."""
        reach = await self._find(conn)
        self._gone += await erase_owner.unsend(conn, self._project_id, reach)
        return await erase_owner.sending(conn, self._project_id, reach) > 0

    async def _finish(self, conn: Conn) -> Event:
        project_id = self._project_id
        key, body_print = self._key
        done = await events.find(conn, project_id, self._event_id)
        if done is not None:  # the commit of an earlier try arrived, and its answer did not
            return done
        event = await events.insert(
            conn,
            project_id,
            self._event_id,
            KIND,
            {"entity_type": self._owner[0]},
            status=Status.SUCCEEDED,
            idempotency_key=key,
            idempotency_print=body_print,
        )
        if event.id != self._event_id:  # the same request was just answered by another connection
            return event
        # Events before scopes, as whoever finishes one; and once more, for adds that were accepted in between.
        cancelled = await erase_owner.fence(conn, project_id, (await self._find(conn)).scopes)
        await erase_owner.read_again(conn, project_id)
        reach = await self._find(conn, hold=True)
        cancelled += await erase_owner.fence(conn, project_id, reach.scopes)
        named = await erase_owner.others_named(conn, project_id, reach)
        removed = await erase_owner.remove(conn, project_id, reach)
        counts, along = await erase_owner.delete_along(conn, project_id, reach, named)
        gone = removed.rows + counts
        self._sending += removed.sending
        for kind, name in along:
            more = await erase_owner.remove(conn, project_id, await _reach(conn, project_id, kind, name))
            gone += more.rows
            self._sending += more.sending
        self._met.append(reach)
        await self._tell(conn, removed.memories)
        cancelled += self._cancelled
        total = self._gone + gone + Counter(events=cancelled)
        receipt = Receipt(self._event_id, datetime.now(UTC), _some(total))
        mark = audit.owner_mark(self._project, *self._owner)
        await audit.note(conn, "entity.erase", project=self._project, objects=[event.id, mark])
        return await self._record(conn, event, receipt, cancelled)

    async def _look_again(self, conn: Conn, *, event: Event) -> Event:
        outcome = event.metadata or {}
        if event.id != self._event_id:
            return event
        left: Counter[str] = Counter()
        for reach in self._met:
            left += Counter(await erase_owner.count(conn, self._project_id, reach))
        receipt = Receipt(
            self._event_id,
            datetime.fromisoformat(outcome["receipt"]["erased_at"]),
            outcome["receipt"]["erased"],
            remaining=_some(left),
            verified=not +left,
        )
        return await self._record(conn, event, receipt, outcome["cancelled_adds"])

    async def _record(self, conn: Conn, event: Event, receipt: Receipt, cancelled: int) -> Event:
        outcome = {
            "deleted": receipt.erased.get("memories", 0),
            "cancelled_adds": cancelled,
            "receipt": receipt.shown(),
        }
        await events.record(conn, self._project_id, event.id, [], outcome)
        return replace(event, metadata=outcome)

    async def _in_transaction(self, verb: Callable[[Conn], Awaitable[T]]) -> T:
        """Run `verb` in a transaction of its own, again when another transaction kept it from its rows."""
        for attempt in range(1, TRIES + 1):
            try:
                async with self._rt.db.transaction(self._project_id) as conn:
                    return await verb(conn)
            except errors.DatabaseUnavailable:
                if attempt == TRIES:
                    raise
                await asyncio.sleep(attempt * PAUSE_S)
        raise AssertionError("unreachable")
