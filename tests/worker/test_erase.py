"""Erases while everything else goes on: nothing of what was accepted before appears after the erase has returned."""

from __future__ import annotations

import asyncio
import time

from app import errors
from app.domain import endpoints, erase, tenancy
from app.model import Owners, ProjectSettings, Status
from app.runtime import Runtime
from app.store import memories, orgs
from app.store.traces import CHUNK
from tests import factories, fakes
from tests.api.canary import Canary, found_in
from tests.receiver import Receiver, Reply
from tests.worker.conftest import Lab, eventually
from tests.worker.test_deliveries import EVERYTHING, FAST
from tests.worker.test_worker import working

ALICE = Owners(user_id="alice", agent_id="bot")


async def keep_adding(lab: Lab, rt: Runtime, canary: Canary, until: asyncio.Event) -> None:
    """Add, one after the other, until told to stop. An erase may come in between two steps of a raw add."""
    count = 0
    while not until.is_set():
        try:
            await lab.add(rt, f"I live in {canary.seed}{count} and like tea.", owners=ALICE, infer=count % 3 != 0)
        except errors.Conflict:
            continue
        count += 1


async def canaries(lab: Lab, canary: Canary) -> dict[str, list[str]]:
    async with lab.db.acquire(None) as conn:
        return await found_in(conn, canary)


async def test_nothing_accepted_before_appears_afterwards(fresh_lab: Lab) -> None:
    before, after, bobs = Canary(), Canary(), Canary()
    enough, stop = asyncio.Event(), asyncio.Event()
    rt = fresh_lab.runtime(**FAST)
    with Receiver(hook=[Reply(500), Reply(200)]) as receiver:
        await endpoints.create(rt, fresh_lab.caller(), endpoints.Wanted("hook", receiver.url(), EVERYTHING))
        async with working(rt), working(fresh_lab.runtime(**FAST)):
            adding = [asyncio.create_task(keep_adding(fresh_lab, rt, before, enough)) for _ in range(3)]
            bob = [
                await fresh_lab.add(rt, f"I live in {bobs.seed}{n}.", owners=Owners(user_id="bob")) for n in range(2)
            ]
            await eventually(lambda: _told(receiver, before, 5))
            enough.set()
            await asyncio.gather(*adding)
            adding = [asyncio.create_task(keep_adding(fresh_lab, rt, after, stop)) for _ in range(2)]
            done = await erase.owner(rt, fresh_lab.caller(), "user", "alice")
            returned = time.monotonic()
            assert await canaries(fresh_lab, before) == {}
            stop.set()
            await asyncio.gather(*adding)
            await eventually(lambda: fresh_lab.is_done(*bob))
        assert await canaries(fresh_lab, before) == {}
        late = [one for one in receiver.requests if one.at > returned and before.is_in(one.body.decode())]
        assert late == []
    assert done.receipt["erased"]["memories"] > 0
    assert await canaries(fresh_lab, bobs) != {}
    assert {(await fresh_lab.event(one)).status for one in bob} == {Status.SUCCEEDED}


async def _told(receiver: Receiver, canary: Canary, count: int) -> bool:
    return sum(canary.is_in(one.body.decode()) for one in receiver.requests) >= count


async def test_what_is_just_being_sent_is_waited_for(fresh_lab: Lab) -> None:
    canary = Canary()
    rt = fresh_lab.runtime(**(FAST | {"webhook_timeout_s": 1.0, "webhook_delays_s": (0.01, 0.01, 0.01)}))
    with Receiver(hook=Reply(hangs=True)) as receiver:
        await endpoints.create(rt, fresh_lab.caller(), endpoints.Wanted("hook", receiver.url(), ["memory_add"]))
        await fresh_lab.add(rt, f"I live in {canary.seed}.", infer=False)
        async with working(rt):
            await eventually(lambda: _sent(receiver, 1))
            await erase.owner(rt, fresh_lab.caller(), "user", "alice")
            sent = len(receiver.requests)
            assert await canaries(fresh_lab, canary) == {}
            await fresh_lab.add(rt, "I like tea.", owners=Owners(user_id="bob"), infer=False)
            await eventually(lambda: _sent(receiver, sent + 1))
        assert not any(canary.is_in(one.body.decode()) for one in receiver.requests[sent:])


async def _sent(receiver: Receiver, count: int) -> bool:
    return len(receiver.requests) >= count


async def test_large_owner_goes_in_parts_and_after_a_break_the_rest(fresh_lab: Lab) -> None:
    canary = Canary()
    rt = fresh_lab.runtime()
    async with fresh_lab.db.transaction(None) as conn:
        scope = await factories.make_scope(conn, fresh_lab.project, user_id="alice", run_id="r1")
        new = [factories.new_memory(scope, f"{canary.seed} {n}") for n in range(CHUNK + 100)]
        await memories.insert_many(conn, fresh_lab.project.id, new, model=fakes.MODEL)
        other = await factories.make_scope(conn, fresh_lab.project, user_id="bob")
        await factories.make_memory(conn, other, "Bob likes tea.")
    erasing = asyncio.create_task(erase.owner(rt, fresh_lab.caller(), "user", "alice"))
    await eventually(lambda: _fewer(fresh_lab, CHUNK))
    erasing.cancel()
    await asyncio.gather(erasing, return_exceptions=True)
    assert erasing.cancelled()
    receipt = (await erase.owner(rt, fresh_lab.caller(), "user", "alice")).receipt
    assert receipt["verified"]
    assert await canaries(fresh_lab, canary) == {}
    assert [memory.text for memory in await fresh_lab.memories()] == ["Bob likes tea."]


async def _fewer(lab: Lab, count: int) -> bool:
    return await lab.count("memories") < count


async def test_project_ends_while_its_events_run(fresh_lab: Lab) -> None:
    canary = Canary()
    rt = fresh_lab.runtime(**FAST)
    async with fresh_lab.db.transaction(None) as conn:
        organization = fresh_lab.project.organization_id
        await orgs.insert_project(conn, organization, name="stays", settings=ProjectSettings())
    with Receiver(hook=Reply(500)) as receiver:
        await endpoints.create(rt, fresh_lab.caller(), endpoints.Wanted("hook", receiver.url(), EVERYTHING))
        for n in range(20):
            await fresh_lab.add(rt, f"I live in {canary.seed}{n}.", owners=Owners(user_id=f"user {n % 4}"))
        async with working(rt):
            await eventually(lambda: _sent(receiver, 3))
            place = fresh_lab.project.organization_public_id, fresh_lab.project.public_id
            receipt = await tenancy.delete_project(rt, None, *place)
            sent = len(receiver.requests)
            assert await canaries(fresh_lab, canary) == {}
            assert receipt.verified
        assert len(receiver.requests) == sent
    assert await canaries(fresh_lab, canary) == {}
    try:
        await fresh_lab.add(rt, "too late")
    except errors.NotFound:
        return
    raise AssertionError("an add to a project that is gone was accepted")
