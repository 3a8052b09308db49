"""Adds that arrive at the same time: one commit for all of them, and each answered as if it were alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from app import errors
from app.domain import add, backlog, together
from app.model import Event, Message, Owners, Status
from app.store import arrivals
from app.store.arrivals import Arrival
from app.store.db import Conn, Database
from tests import factories
from tests.worker.conftest import Lab, eventually


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many adds each statement has held."""
    sizes: list[int] = []
    real, real_known = arrivals.insert, arrivals.insert_known

    async def insert(conn: Conn, project_id: int, arrived: Any) -> dict[Any, Event]:
        sizes.append(len(arrived))
        return await real(conn, project_id, arrived)

    async def insert_known(conn: Conn, project_id: int, arrived: Any, known: Any) -> dict[Any, Event]:
        sizes.append(len(arrived))
        return await real_known(conn, project_id, arrived, known)

    monkeypatch.setattr(arrivals, "insert", insert)
    monkeypatch.setattr(arrivals, "insert_known", insert_known)
    return sizes


async def accept(lab: Lab, count: int, **request: Any) -> list[add.Accepted]:
    rt = lab.runtime(max_pending=0)
    return list(await asyncio.gather(*(lab.add(rt, f"I like tea {n}", **request) for n in range(count))))


async def test_adds_that_arrive_together_are_one_statement_and_each_its_own_event(
    fresh_lab: Lab, groups: list[int]
) -> None:
    accepted = await accept(fresh_lab, 20)
    assert groups == [20]
    found = [await fresh_lab.event(item) for item in accepted]
    assert [event.payload["messages"][0]["content"] for event in found] == [f"I like tea {n}" for n in range(20)]
    assert {event.status for event in found} == {Status.PENDING}
    assert [item.event for item in accepted] == found


async def test_the_order_of_arrival_is_the_order_of_acceptance(fresh_lab: Lab) -> None:
    accepted = await accept(fresh_lab, 30)
    async with fresh_lab.db.acquire(fresh_lab.project.id) as conn:
        rows = await conn.fetch(
            "SELECT id FROM events WHERE project_id = $1 ORDER BY next_at, seq", fresh_lab.project.id
        )
    assert [row["id"] for row in rows] == [item.event.id for item in accepted]


async def test_one_that_is_alone_waits_for_nobody(fresh_lab: Lab, groups: list[int]) -> None:
    for n in range(3):
        await fresh_lab.add(fresh_lab.runtime(), f"I like tea {n}")
    assert groups == [1, 1, 1]


async def test_owners_and_scopes_come_into_being_with_the_group(fresh_lab: Lab) -> None:
    owners = [
        Owners(user_id=f"u{n % 3}", agent_id="bot" if n % 2 else None, run_id="r" if n == 4 else None) for n in range(6)
    ]
    rt = fresh_lab.runtime()
    for _ in range(2):  # the second time all of them are there
        accepted = await asyncio.gather(*(fresh_lab.add(rt, "I like tea", owners=one) for one in owners))
        for item, one in zip(accepted, owners, strict=True):
            event = await fresh_lab.event(item)
            async with fresh_lab.db.acquire(fresh_lab.project.id) as conn:
                sql = "SELECT user_id, agent_id, app_id, run_id FROM scopes WHERE project_id = $1 AND id = $2"
                kept = [
                    Owners(*await conn.fetchrow(sql, fresh_lab.project.id, scope_id))
                    for scope_id in (event.scope_id, *event.target_scope_ids)
                ]
            split = one.user_id and one.agent_id
            parts = [Owners(user_id=one.user_id, run_id=one.run_id), Owners(agent_id=one.agent_id, run_id=one.run_id)]
            assert kept == [one, *(parts if split else [one])]
        assert await fresh_lab.count("owners") == 3 + 1 + 1


@pytest.mark.parametrize("gone", ["owners", "scopes"])
async def test_what_was_known_and_is_deleted_is_made_anew(fresh_lab: Lab, gone: str) -> None:
    owners = Owners(user_id="alice", agent_id="bot")
    rt = fresh_lab.runtime()
    await fresh_lab.add(rt, "I like tea", owners=owners)
    await fresh_lab.execute("DELETE FROM events")
    await fresh_lab.execute(f"DELETE FROM {gone} WHERE {'agent_id' if gone == 'scopes' else 'name'} IS NOT NULL")
    event = await fresh_lab.event(await fresh_lab.add(rt, "I like rice", owners=owners))
    assert await fresh_lab.count("owners") == 2
    assert await fresh_lab.count("scopes") == 3
    async with fresh_lab.db.acquire(event.project_id) as conn:
        sql = "SELECT count(*) FROM scopes WHERE id = ANY ($1::bigint[])"
        assert await conn.fetchval(sql, [event.scope_id, *event.target_scope_ids]) == 3


async def test_a_known_scope_of_one_owner_that_is_deleted_is_made_anew(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    await fresh_lab.add(rt, "I like tea")
    await fresh_lab.execute("DELETE FROM events")
    await fresh_lab.execute("DELETE FROM scopes")
    event = await fresh_lab.event(await fresh_lab.add(rt, "I like rice"))
    assert event.target_scope_ids == (event.scope_id,)
    assert await fresh_lab.count("scopes") == 1


async def test_what_one_of_them_has_wrong_does_not_hurt_the_others(fresh_lab: Lab, groups: list[int]) -> None:
    rt = fresh_lab.runtime(max_pending=0)
    texts = ["I like tea", "I like \0 nothing", "I like rice"]
    results = await asyncio.gather(*(fresh_lab.add(rt, text) for text in texts), return_exceptions=True)
    assert groups == [3]
    assert isinstance(results[1], errors.InvalidRequest)
    assert await fresh_lab.count("events") == 2
    assert [type(result) for result in results] == [add.Accepted, errors.InvalidRequest, add.Accepted]


async def test_projects_are_never_in_one_group(fresh_lab: Lab, groups: list[int]) -> None:
    async with fresh_lab.db.transaction(None) as conn:
        other = await factories.make_project(conn)
    rt = fresh_lab.runtime(max_pending=0)
    both = [fresh_lab.project, other] * 5
    accepted = await asyncio.gather(*(fresh_lab.add(rt, "I like tea", project=project) for project in both))
    assert groups == [5, 5]
    assert [item.event.project_id for item in accepted] == [project.id for project in both]
    for project in (fresh_lab.project, other):
        async with fresh_lab.db.acquire(project.id) as conn:
            assert await conn.fetchval("SELECT count(*) FROM events") == 5  # the second wall hides the others


async def test_a_repeat_in_the_same_moment_gets_the_event_of_its_key(fresh_lab: Lab) -> None:
    same = await accept(fresh_lab, 10, idempotency_key="k", messages=(Message("user", "I like tea"),))
    assert len({item.event.id for item in same}) == 1
    assert await fresh_lab.count("events") == 1


async def test_a_backlog_is_refused_before_the_group(fresh_lab: Lab) -> None:
    backlog.forget()
    rt = fresh_lab.runtime(max_pending=3)
    results = await asyncio.gather(*(fresh_lab.add(rt, f"I like tea {n}") for n in range(8)), return_exceptions=True)
    assert [isinstance(result, errors.RateLimited) for result in results] == [False] * 3 + [True] * 5
    assert await fresh_lab.count("events") == 3
    backlog.forget()


class Broken(Database):
    """A database whose connections die, or wait, before their statement."""

    def __init__(self, real: Database, *, hold: asyncio.Event | None = None) -> None:
        self._real, self._hold = real, hold
        self.asked = 0
        self.holds = asyncio.Event()  # set once somebody waits

    @asynccontextmanager
    async def acquire(self, project_id: int | None) -> AsyncIterator[Conn]:
        self.asked += 1
        if self._hold is None:
            raise errors.DatabaseUnavailable
        if self.asked == 1:
            self.holds.set()
            await self._hold.wait()
        async with self._real.acquire(project_id) as conn:
            yield conn


async def test_when_the_database_dies_everybody_who_waits_hears_it_for_himself(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime(db=Broken(fresh_lab.db), max_pending=0)
    results = await asyncio.gather(*(fresh_lab.add(rt, "I like tea") for _ in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [errors.DatabaseUnavailable] * 5
    assert len({id(result) for result in results}) == 5


async def test_a_group_that_hangs_holds_up_nobody(fresh_lab: Lab) -> None:
    hold = asyncio.Event()
    db = Broken(fresh_lab.db, hold=hold)
    rt = fresh_lab.runtime(db=db, max_pending=0)
    hanging = asyncio.create_task(fresh_lab.add(rt, "I like tea"))
    async with asyncio.timeout(30):
        await db.holds.wait()  # or the next one would go with it
    accepted = await asyncio.wait_for(fresh_lab.add(rt, "I like rice"), 30)
    assert not hanging.done()
    assert (await fresh_lab.event(accepted)).status is Status.PENDING
    hold.set()
    await hanging
    assert await fresh_lab.count("events") == 2


async def test_whoever_leaves_before_the_group_goes_is_left_out(fresh_lab: Lab, groups: list[int]) -> None:
    rt = fresh_lab.runtime(max_pending=0)
    leaving = asyncio.create_task(fresh_lab.add(rt, "I like tea"))
    staying = asyncio.create_task(fresh_lab.add(rt, "I like rice"))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    assert groups == [1]
    assert await fresh_lab.count("events") == 1


async def test_a_large_add_goes_by_itself(fresh_lab: Lab, groups: list[int]) -> None:
    rt = fresh_lab.runtime()
    await asyncio.gather(fresh_lab.add(rt, "tea " * together.GROUP_CHARS), fresh_lab.add(rt, "I like rice"))
    assert groups == [1]
    assert await fresh_lab.count("events") == 2


async def test_a_scope_that_another_connection_is_making_is_left_to_the_single_way(fresh_lab: Lab) -> None:
    """The statement does not see what was committed after it began, and the unique key keeps it from making it anew."""
    owners = Owners(user_id="alice")
    project_id = fresh_lab.project.id
    async with fresh_lab.db.acquire(project_id) as first, fresh_lab.db.acquire(project_id) as second:
        transaction = first.transaction()
        await transaction.start()
        await first.execute("INSERT INTO scopes (project_id, user_id) VALUES ($1, 'alice')", project_id)
        arriving = asyncio.create_task(
            arrivals.insert(second, project_id, [Arrival(uuid4(), {"n": 1}, owners, (owners,))])
        )
        await eventually(lambda: first.fetchval("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"))
        await transaction.commit()
        assert await arriving == {}
    assert await fresh_lab.count("events") == 0


async def test_a_hundred_identical_adds_at_once_become_one_memory(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    await asyncio.gather(*(fresh_lab.add(rt, "I am allergic to peanuts.", infer=False) for _ in range(100)))
    assert len(await fresh_lab.memories()) == 1
