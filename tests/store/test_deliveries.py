"""Deliveries on real tables: who goes first, how many at a time, and whose they are."""

from __future__ import annotations

from collections import Counter

import pytest
from uuid_utils.compat import uuid4

from app import errors
from app.model import Owners, Status, WebhookEvent
from app.store import announcements, deliveries, webhooks
from tests import factories

HOOK = {"name": "n", "url": "https://x.invalid", "is_active": True, "owner": "a@b.c", "secret": "whsec_eA=="}


async def endpoint(conn, project, *kinds):
    kinds = kinds or (WebhookEvent.MEMORY_ADD,)
    return await webhooks.insert(conn, project.id, event_types=kinds, **HOOK)


def notices(count=1, kind=WebhookEvent.MEMORY_ADD):
    return [announcements.Notice(kind, {"n": n}, Owners(user_id="alice"), uuid4(), uuid4()) for n in range(count)]


async def claim(conn, per_endpoint=2):
    return await deliveries.claim(conn, lease_s=60.0, per_endpoint=per_endpoint)


async def claim_all(conn, per_endpoint=2):
    taken = []
    while (one := await claim(conn, per_endpoint)) is not None:
        taken.append(one)
    return taken


async def log_of(conn, project, hook):
    return (await deliveries.list_page(conn, project.id, hook.id, status=None, limit=100, offset=0))[1]


async def test_each_endpoint_that_asks_gets_a_delivery_of_its_own(conn, project):
    adds = await endpoint(conn, project)
    both = await endpoint(conn, project, WebhookEvent.MEMORY_ADD, WebhookEvent.MEMORY_DELETE)
    assert await announcements.insert(conn, project.id, notices(3)) == 6
    assert await announcements.insert(conn, project.id, notices(2, WebhookEvent.MEMORY_DELETE)) == 2
    assert await announcements.insert(conn, project.id, notices(2, WebhookEvent.MEMORY_UPDATE)) == 0
    assert [one.details["n"] for one in await log_of(conn, project, adds)] == [2, 1, 0]
    assert len(await log_of(conn, project, both)) == 5


async def test_an_endpoint_has_few_under_way_and_one_while_it_fails(conn, project):
    good, bad = await endpoint(conn, project), await endpoint(conn, project)
    await announcements.insert(conn, project.id, notices(5))
    await webhooks.failed(conn, project.id, bad.id, streak_s=60.0)
    taken = await claim_all(conn)
    assert Counter(one.delivery.endpoint_id for one in taken) == {good.id: 2, bad.id: 1}
    assert [one.delivery.details["n"] for one in taken if one.delivery.endpoint_id == good.id] == [0, 1]


async def test_a_project_with_many_endpoints_lets_another_have_the_next_slot(conn, project):
    for _ in range(5):
        await endpoint(conn, project)
    await announcements.insert(conn, project.id, notices(3))
    first, second = await claim(conn), await claim(conn)
    small = await factories.make_project(conn)
    await endpoint(conn, small)
    await announcements.insert(conn, small.id, notices(1))
    third = await claim(conn)
    assert [one.delivery.project_id for one in (first, second, third)] == [project.id, project.id, small.id]
    assert third.project == small.public_id


async def test_an_outcome_counts_once_and_only_for_the_holder(conn, project):
    hook = await endpoint(conn, project)
    await announcements.insert(conn, project.id, notices())
    held = (await claim(conn)).delivery
    made = deliveries.Attempt(held.created_at, 200, 3, response="ok")
    assert await deliveries.release(conn, held)
    assert not await deliveries.settle(conn, held, made, Status.SUCCEEDED)
    again = (await claim(conn)).delivery
    assert (again.attempts, again.lease_epoch) == (1, 2)
    assert not await deliveries.settle(conn, held, made, Status.SUCCEEDED)
    assert await deliveries.settle(conn, again, made, Status.SUCCEEDED)
    assert not await deliveries.release(conn, again)
    [one] = await log_of(conn, project, hook)
    assert (one.status, one.log) == (Status.SUCCEEDED, (made,))


async def test_what_waits_for_its_time_or_an_inactive_endpoint_is_not_taken(conn, project):
    hook = await endpoint(conn, project)
    await announcements.insert(conn, project.id, notices())
    held = (await claim(conn)).delivery
    made = deliveries.Attempt(held.created_at, 500, 3)
    assert await deliveries.settle(conn, held, made, Status.PENDING, delay_s=60.0)
    assert await claim(conn) is None
    await deliveries.replay(conn, project.id, hook.id, held.id)
    await webhooks.update(conn, project.id, hook.id, is_active=False)
    assert await claim(conn) is None
    await webhooks.update(conn, project.id, hook.id, is_active=True)
    assert (await claim(conn)).delivery.id == held.id


async def test_another_project_neither_sees_nor_repeats_a_delivery(conn, project):
    hook = await endpoint(conn, project)
    await announcements.insert(conn, project.id, notices())
    [one] = await log_of(conn, project, hook)
    stranger = await factories.make_project(conn)
    assert await log_of(conn, stranger, hook) == []
    with pytest.raises(errors.NotFound):
        await deliveries.replay(conn, stranger.id, hook.id, one.id)
    assert await deliveries.replay_failed(conn, stranger.id, hook.id) == 0
    assert await announcements.insert(conn, stranger.id, notices()) == 0
    assert await announcements.insert_deleted(conn, stranger.id, one.event_id) == 0
    assert await announcements.insert_failed(conn, stranger.id, one.event_id) == 0


async def test_failures_that_are_far_apart_are_no_unbroken_row(conn, project):
    hook = await endpoint(conn, project)
    place = project.id, hook.id
    assert await webhooks.failed(conn, *place, streak_s=60.0) < 1
    await conn.execute(
        "UPDATE webhooks SET failing_since = now() - interval '1 hour', failed_at = now() - interval '50 s'"
    )
    assert 3599 < await webhooks.failed(conn, *place, streak_s=60.0) < 3700
    await conn.execute("UPDATE webhooks SET failed_at = now() - interval '70 s'")
    assert await webhooks.failed(conn, *place, streak_s=60.0) < 1
    await webhooks.disable(conn, *place, "reason")
    assert await webhooks.failed(conn, *place, streak_s=60.0) is None


async def test_a_claim_does_not_look_at_all_that_waits_for_each_endpoint(conn, project):
    await conn.execute(
        """
        INSERT INTO webhooks (project_id, id, name, url, event_types, owner, secret)
        SELECT $1, 'wh_' || n, 'n', 'https://x.invalid', '{memory_add}', 'a', 'whsec_eA==' FROM generate_series(1, 200) n
        """,
        project.id,
    )
    await announcements.insert(conn, project.id, notices(100))
    await conn.execute("ANALYZE deliveries, webhooks, projects")
    for _ in range(10):
        assert await claim(conn) is not None
    plan = await conn.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {deliveries._CLAIM}", 60.0, 2)
    # Whatever the planner chooses: it may read the table once or twice, but not once for each endpoint (4,000,000 rows).
    assert looked_at(plan[0]["Plan"]) < 100_000, plan


def looked_at(node):
    """Return how many rows of deliveries a plan has read."""
    own = node["Actual Rows"] * node["Actual Loops"] if node.get("Relation Name") == "deliveries" else 0
    return own + sum(looked_at(part) for part in node.get("Plans", []))
