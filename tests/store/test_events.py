"""The event row: accepted once, claimed by one, in order, and changed by nobody but the holder of its lease."""

from __future__ import annotations

from typing import Any

import pytest
from uuid_utils.compat import uuid7

from app import errors
from app.model import Event, Project, Scope, Status
from app.store import claims, events
from app.store.db import Conn
from tests import factories

LEASE_S = 60.0


async def accept(conn: Conn, project: Project, scope: Scope | None = None, **changes: Any) -> Event:
    """Insert a pending add."""
    values: dict[str, Any] = {"scope_id": scope and scope.id, "target_scope_ids": [scope.id] if scope else []}
    return await events.insert(conn, project.id, uuid7(), "ADD", {"n": 1}, **(values | changes))


async def claim(conn: Conn) -> Event | None:
    return await claims.claim(conn, lease_s=LEASE_S)


async def claimed(conn: Conn) -> Event:
    event = await claim(conn)
    assert event is not None
    return event


async def age(conn: Conn, event: Event, column: str, seconds: float) -> None:
    """Move a time of the event into the past: the tests' clock is the database's, like the service's."""
    assert column in ("next_at", "lease_until")
    await conn.execute(
        f"UPDATE events SET {column} = {column} - make_interval(secs => $2) WHERE id = $1", event.id, seconds
    )


@pytest.fixture
async def scope(conn: Conn, project: Project) -> Scope:
    return await factories.make_scope(conn, project)


async def test_an_event_goes_from_pending_over_running_to_succeeded(conn: Conn, project: Project, scope: Scope) -> None:
    accepted = await accept(conn, project, scope)
    assert (accepted.status, accepted.attempts, accepted.started_at, accepted.latency_ms) == (
        Status.PENDING,
        0,
        None,
        None,
    )
    running = await claimed(conn)
    assert (running.id, running.status, running.attempts, running.lease_epoch) == (accepted.id, Status.RUNNING, 1, 1)
    assert running.payload == {"n": 1}
    assert await claims.finish(conn, running, [{"id": "m"}], {"facts": 1})
    done = await events.get(conn, project.id, accepted.id)
    assert (done.status, done.results, done.metadata) == (Status.SUCCEEDED, [{"id": "m"}], {"facts": 1})
    assert done.latency_ms is not None
    assert await claim(conn) is None


async def test_an_event_that_is_done_at_once_is_never_claimed(conn: Conn, project: Project, scope: Scope) -> None:
    event = await accept(conn, project, scope, status=Status.SUCCEEDED)
    await events.record(conn, project.id, event.id, [{"id": "m"}], {"facts": 1})
    stored = await events.get(conn, project.id, event.id)
    assert (stored.status, stored.results, stored.metadata) == (Status.SUCCEEDED, [{"id": "m"}], {"facts": 1})
    assert stored.completed_at is not None
    assert await claim(conn) is None


# Keys of idempotency


async def test_the_same_key_and_body_give_the_same_event(conn: Conn, project: Project, scope: Scope) -> None:
    first = await accept(conn, project, scope, idempotency_key="k", idempotency_print=b"a")
    again = await accept(conn, project, scope, idempotency_key="k", idempotency_print=b"a")
    assert again == first
    assert (await events.list_page(conn, project.id, limit=10))[0] == 1


async def test_the_same_key_with_another_body_is_refused(conn: Conn, project: Project, scope: Scope) -> None:
    await accept(conn, project, scope, idempotency_key="k", idempotency_print=b"a")
    with pytest.raises(errors.KeyReused):
        await accept(conn, project, scope, idempotency_key="k", idempotency_print=b"b")


async def test_a_key_of_another_project_is_free(conn: Conn, project: Project) -> None:
    other = await factories.make_project(conn)
    first = await accept(conn, project, idempotency_key="k", idempotency_print=b"a")
    assert (await accept(conn, other, idempotency_key="k", idempotency_print=b"b")).id != first.id


# Order


async def test_events_of_one_scope_run_one_at_a_time_in_order_of_acceptance(
    conn: Conn, project: Project, scope: Scope
) -> None:
    accepted = [await accept(conn, project, scope) for _ in range(3)]
    ran = []
    for _ in accepted:
        event = await claimed(conn)
        assert await claim(conn) is None
        await claims.finish(conn, event, [], None)
        ran.append(event.id)
    assert ran == [event.id for event in accepted]


async def test_events_of_different_scopes_run_side_by_side(conn: Conn, project: Project, scope: Scope) -> None:
    other = await factories.make_scope(conn, project, user_id="bob")
    accepted = {(await accept(conn, project, scope)).id, (await accept(conn, project, other)).id}
    assert {(await claimed(conn)).id, (await claimed(conn)).id} == accepted


async def test_events_without_a_scope_wait_for_nobody(conn: Conn, project: Project) -> None:
    accepted = {(await accept(conn, project)).id, (await accept(conn, project)).id}
    assert {(await claimed(conn)).id, (await claimed(conn)).id} == accepted


async def test_an_event_may_be_overtaken_after_its_first_failure(conn: Conn, project: Project, scope: Scope) -> None:
    first, second = await accept(conn, project, scope), await accept(conn, project, scope)
    await claims.retry_at(conn, await claimed(conn), 60.0, "model_unavailable", "away")
    event = await claimed(conn)
    assert event.id == second.id
    await age(conn, first, "next_at", 61)
    assert await claim(conn) is None  # the second still runs
    await claims.finish(conn, event, [], None)
    assert (await claimed(conn)).id == first.id


async def test_a_released_event_keeps_its_place_and_its_attempts(conn: Conn, project: Project, scope: Scope) -> None:
    first, _ = await accept(conn, project, scope), await accept(conn, project, scope)
    assert await claims.release(conn, await claimed(conn))
    again = await claimed(conn)
    assert (again.id, again.attempts, again.lease_epoch) == (first.id, 1, 2)


async def test_an_event_put_off_is_not_due_before_its_time(conn: Conn, project: Project, scope: Scope) -> None:
    event = await accept(conn, project, scope)
    await claims.retry_at(conn, await claimed(conn), 60.0, "model_unavailable", "away")
    stored = await events.get(conn, project.id, event.id)
    assert (stored.status, stored.error_code, stored.error) == (Status.PENDING, "model_unavailable", "away")
    assert await claim(conn) is None
    await age(conn, event, "next_at", 61)
    again = await claimed(conn)
    await claims.finish(conn, again, [], None)
    assert (await events.get(conn, project.id, event.id)).error is None


async def test_the_project_with_the_fewest_running_events_goes_first(conn: Conn, project: Project) -> None:
    busy = [await factories.make_scope(conn, project, user_id=f"u{n}") for n in range(4)]
    for scope in busy:
        await accept(conn, project, scope)
    await claimed(conn)
    other = await factories.make_project(conn)
    late = await accept(conn, other, await factories.make_scope(conn, other))
    assert (await claimed(conn)).id == late.id
    assert (await claimed(conn)).project_id == project.id


async def test_the_backlog_of_one_scope_does_not_hide_another(conn: Conn, project: Project, scope: Scope) -> None:
    for _ in range(300):
        await accept(conn, project, scope)
    late = await accept(conn, project, await factories.make_scope(conn, project, user_id="bob"))
    await claimed(conn)
    assert (await claimed(conn)).id == late.id
    assert await claim(conn) is None


# The fence


async def test_only_the_holder_of_the_lease_changes_an_event(conn: Conn, project: Project, scope: Scope) -> None:
    event = await accept(conn, project, scope)
    stale = await claimed(conn)
    await age(conn, event, "lease_until", LEASE_S + 1)
    assert await claims.reclaim_expired(conn, [1.0, 1.0]) == 1
    holder = await claimed(conn)
    assert holder.lease_epoch == stale.lease_epoch + 1
    before = await events.get(conn, project.id, event.id)
    assert not await claims.renew(conn, stale, LEASE_S)
    assert not await claims.save_checkpoint(conn, stale, [{"text": "stale"}])
    assert await claims.lock_for_finish(conn, stale) is None
    assert not await claims.finish(conn, stale, [{"id": "stale"}], None)
    assert not await claims.retry_at(conn, stale, 1.0, "x", "x")
    assert not await claims.fail(conn, stale, "x", "x")
    assert not await claims.release(conn, stale)
    assert await events.get(conn, project.id, event.id) == before
    assert await claims.renew(conn, holder, LEASE_S)
    assert await claims.lock_for_finish(conn, holder) == frozenset()
    assert await claims.finish(conn, holder, [], None)
    assert not await claims.finish(conn, holder, [], None)


async def test_a_checkpoint_survives_a_failed_attempt(conn: Conn, project: Project, scope: Scope) -> None:
    event = await accept(conn, project, scope)
    holder = await claimed(conn)
    assert await claims.save_checkpoint(conn, holder, [])
    await claims.retry_at(conn, holder, 0.0, "x", "x")
    assert (await claimed(conn)).checkpoint == []
    assert (await events.get(conn, project.id, event.id)).checkpoint == []  # no facts is an answer; None would be none


# After a death


async def test_a_live_lease_is_not_reclaimed(conn: Conn, project: Project, scope: Scope) -> None:
    await accept(conn, project, scope)
    await claimed(conn)
    assert await claims.reclaim_expired(conn, [1.0]) == 0


async def test_an_event_that_kills_its_workers_waits_longer_and_fails_in_the_end(
    conn: Conn, project: Project, scope: Scope
) -> None:
    event = await accept(conn, project, scope)
    delays = [100.0, 1000.0]
    waits = []
    for _ in range(3):
        await claimed(conn)
        await age(conn, event, "lease_until", LEASE_S + 1)
        assert await claims.reclaim_expired(conn, delays) == 1
        waits.append(await conn.fetchval("SELECT extract(epoch FROM next_at - clock_timestamp()) FROM events"))
        await age(conn, event, "next_at", 2000)
    assert [round(wait, -2) for wait in waits[:2]] == [0, 100]
    stored = await events.get(conn, project.id, event.id)
    assert (stored.status, stored.error_code, stored.attempts) == (Status.FAILED, "worker_lost", 3)
    assert await claim(conn) is None


async def test_events_that_have_outlived_two_workers_run_one_at_a_time(conn: Conn, project: Project) -> None:
    """One of them may have killed both; the others must not die with it once more, and fresh ones need not wait."""
    three = [await accept(conn, project, await factories.make_scope(conn, project, user_id=f"u{n}")) for n in range(3)]
    for _ in range(2):
        for _event in three:
            await claimed(conn)
        for event in three:
            await age(conn, event, "lease_until", LEASE_S + 1)
        assert await claims.reclaim_expired(conn, [0.0] * 5) == 3
    fresh = await accept(conn, project, await factories.make_scope(conn, project, user_id="fresh"))
    suspect = await claimed(conn)
    assert suspect.id in {event.id for event in three}
    assert (await claimed(conn)).id == fresh.id
    assert await claim(conn) is None
    assert await claims.finish(conn, suspect, [], None)
    assert (await claimed(conn)).id in {event.id for event in three} - {suspect.id}
    assert await claim(conn) is None


async def test_a_failed_event_can_be_opened_again_and_no_other(conn: Conn, project: Project, scope: Scope) -> None:
    event = await accept(conn, project, scope)
    with pytest.raises(errors.Conflict):
        await events.reopen(conn, project.id, event.id)
    await claims.fail(conn, await claimed(conn), "model_refused", "no JSON")
    stored = await events.get(conn, project.id, event.id)
    assert (stored.status, stored.error_code, stored.error) == (Status.FAILED, "model_refused", "no JSON")
    reopened = await events.reopen(conn, project.id, event.id)
    assert (reopened.status, reopened.attempts, reopened.error) == (Status.PENDING, 0, None)
    assert (await claimed(conn)).id == event.id


# delete_all


async def test_a_delete_cancels_targets_of_open_events_only(conn: Conn, project: Project, scope: Scope) -> None:
    other = await factories.make_scope(conn, project, user_id="bob")
    done = await accept(conn, project, scope)
    await claims.finish(conn, await claimed(conn), [], None)
    await accept(conn, project, scope, target_scope_ids=[scope.id, other.id])
    running = await claimed(conn)
    pending = await accept(conn, project, scope)
    untouched = await accept(conn, project, other)
    assert await events.cancel_targets(conn, project.id, [scope.id]) == 2
    assert await events.cancel_targets(conn, project.id, [scope.id]) == 2  # once more is not twice
    assert await claims.lock_for_finish(conn, running) == {scope.id}
    cancelled = dict(await conn.fetch("SELECT id, cancelled_scope_ids FROM events"))
    assert cancelled == {done.id: [], running.id: [scope.id], pending.id: [scope.id], untouched.id: []}


# Reading, and the wall between projects


async def test_a_page_is_newest_first_and_selected(conn: Conn, project: Project, scope: Scope) -> None:
    accepted = [await accept(conn, project, scope) for _ in range(3)]
    await events.insert(conn, project.id, uuid7(), "DELETE", {}, status=Status.SUCCEEDED)
    total, page = await events.list_page(conn, project.id, kind="ADD", limit=2, offset=1)
    assert (total, [event.id for event in page]) == (3, [accepted[1].id, accepted[0].id])
    assert (await events.list_page(conn, project.id, status=Status.SUCCEEDED, limit=9))[0] == 1
    since = accepted[1].created_at
    assert (await events.list_page(conn, project.id, kind="ADD", since=since, limit=9))[0] == 2
    assert (await events.list_page(conn, project.id, before=since, limit=9))[0] == 1


async def test_the_oldest_pending_age_counts_what_is_due(conn: Conn, project: Project, scope: Scope) -> None:
    assert await events.oldest_pending_age(conn) is None
    event = await accept(conn, project, scope)
    await age(conn, event, "next_at", 30)
    assert await events.oldest_pending_age(conn) == pytest.approx(30, abs=5)
    await age(conn, event, "next_at", -60)
    assert await events.oldest_pending_age(conn) is None


async def test_another_project_sees_and_changes_nothing(conn: Conn, project: Project, scope: Scope) -> None:
    event = await accept(conn, project, scope)
    foreign = (await factories.make_project(conn)).id
    with pytest.raises(errors.EventNotFound):
        await events.get(conn, foreign, event.id)
    with pytest.raises(errors.EventNotFound):
        await events.reopen(conn, foreign, event.id)
    assert await events.list_page(conn, foreign, limit=9) == (0, [])
    assert await events.cancel_targets(conn, foreign, [scope.id]) == 0
    await events.record(conn, foreign, event.id, [{"id": "x"}])
    assert await events.get(conn, project.id, event.id) == event
