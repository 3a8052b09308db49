"""Owners are deleted while adds of theirs are accepted, worked on and stored."""

from __future__ import annotations

import asyncio

import pytest

from app import errors
from app.domain import erase
from app.model import Owners, Status
from app.runtime import Runtime
from app.store import claims
from tests.worker.conftest import Lab
from worker import jobs

BOTH = Owners(user_id="alice", run_id="r1")
ORPHANS = """
SELECT count(*) FROM memories m
CROSS JOIN LATERAL (VALUES ('user', m.user_id), ('agent', m.agent_id), ('run', m.run_id)) AS n (kind, name)
WHERE n.name IS NOT NULL
  AND NOT EXISTS (SELECT FROM owners o WHERE o.project_id = m.project_id AND o.kind = n.kind AND o.name = n.name)
"""


async def work(lab: Lab, rt: Runtime) -> None:
    """Process what is due, as one of several workers."""
    while True:
        async with lab.db.acquire(None) as conn:
            event = await claims.claim(conn, lease_s=rt.settings.lease_s)
        if event is None:
            return
        await jobs.process(rt, event)


async def delete(lab: Lab, rt: Runtime) -> None:
    """Delete alice, if she is there."""
    try:
        await erase.owner(rt, lab.caller(), "user", "alice")
    except errors.NotFound:
        return


async def test_nothing_accepted_before_the_delete_appears_after_it(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    for number in range(8):
        before = [await fresh_lab.add(rt, f"I like tea number {number} {n}", owners=BOTH) for n in range(3)]
        await asyncio.gather(work(fresh_lab, rt), delete(fresh_lab, rt), work(fresh_lab, rt))
        await work(fresh_lab, rt)
        assert [memory.text for memory in await fresh_lab.memories()] == []
        assert await fresh_lab.count("messages") == 0
        assert {(await fresh_lab.event(item)).status for item in before} == {Status.SUCCEEDED}


@pytest.mark.parametrize("infer", [True, False])
async def test_memories_always_have_rows_of_their_owners(fresh_lab: Lab, infer: bool) -> None:
    rt = fresh_lab.runtime()
    for number in range(8):
        adds = (fresh_lab.add(rt, f"I like tea {number} {n}", owners=BOTH, infer=infer) for n in range(4))
        await asyncio.gather(*adds, delete(fresh_lab, rt), work(fresh_lab, rt), delete(fresh_lab, rt))
        await work(fresh_lab, rt)
        async with fresh_lab.db.acquire(None) as conn:
            assert await conn.fetchval(ORPHANS) == 0
