"""An add from its acceptance to its memories: what is stored, how often, and what a failure leaves behind."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime

import pytest

from app import errors
from app.domain import add, attempt
from app.model import Message, Owners, Project, ProjectSettings, Status
from app.store import claims, events, messages, scopes
from tests import factories, fakes
from tests.worker.conftest import Lab, eventually, facts

ALL = Owners("alice", "bot", "shop", "r1")


async def test_an_add_ends_with_its_memories_and_their_sources(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Alice likes tea", "Alice lives in Oslo")]))
    accepted = await lab.add(rt, "I like tea and live in Oslo")
    assert (accepted.event.status, accepted.results, lab.queue.rung) == (Status.PENDING, None, [accepted.event.id])
    outcome = await add.process(rt, await lab.claim(rt))
    assert outcome == attempt.Done(added=2)
    event = await lab.event(accepted)
    stored = await lab.memories()
    assert event.status is Status.SUCCEEDED
    assert event.results == [
        {"id": str(m.id), "event": "ADD", "data": {"memory": m.text}, "memory": m.text, "user_id": "alice"}
        for m in stored
    ]
    assert [memory.text for memory in stored] == ["Alice likes tea", "Alice lives in Oslo"]
    assert {memory.created_at for memory in stored} == {event.created_at}
    assert event.metadata == {"facts": 2, "duplicates": 0}
    assert [await lab.count(t) for t in ("memory_sources", "history", "memory_vectors", "messages")] == [2, 2, 2, 1]


async def test_rules_extract_where_no_model_is(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "My sister Maria lives in Lisbon.", "Nice!")
    outcome = await add.process(rt, await lab.claim(rt))
    assert isinstance(outcome, attempt.Done)
    assert any("Lisbon" in memory.text for memory in await lab.memories())


async def test_options_of_the_request_reach_the_memory(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("x y")]))
    at = datetime(2021, 2, 3, 4, 5, 6, tzinfo=UTC)
    options = {"metadata": {"k": [1]}, "immutable": True, "expiration_date": date(2031, 1, 1), "timestamp": at}
    await lab.add(rt, "x", **options)
    await add.process(rt, await lab.claim(rt))
    memory = (await lab.memories())[0]
    assert (memory.metadata, memory.immutable, memory.expiration_date) == ({"k": [1]}, True, date(2031, 1, 1))
    assert memory.created_at == at


async def test_the_model_is_shown_what_was_said_and_stored_before(lab: Lab) -> None:
    llm = fakes.FakeLLM([facts("Alice has a dog called Rex"), facts()])
    rt = lab.runtime(llm=llm)
    await lab.add(rt, "My dog is called Rex")
    await lab.add(rt, "What is my dog called?")
    for _ in range(2):
        await add.process(rt, await lab.claim(rt))
    assert "My dog is called Rex" in llm.calls[1][2]
    assert "Alice has a dog called Rex" in llm.calls[1][2]


async def test_messages_are_kept_when_nothing_is_worth_remembering_and_system_ones_never(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts()]))
    said = (Message("system", "Be brief", index=0), Message("user", "hm", index=1), Message("user", " ", index=2))
    accepted = await lab.add(rt, messages=said)
    assert await add.process(rt, await lab.claim(rt)) == attempt.Done(added=0)
    event = await lab.event(accepted)
    assert (event.status, event.results) == (Status.SUCCEEDED, [])
    async with lab.db.acquire(lab.project.id) as conn:
        scope = await scopes.ensure(conn, lab.project.id, Owners(user_id="alice"))
        kept = await messages.newest(conn, lab.project.id, scope.id, 10)
    assert [message.content for message in kept] == ["hm"]


# Whose it is


async def test_facts_of_user_and_agent_go_to_scopes_of_their_own(lab: Lab) -> None:
    answer = {"facts": [{"text": "Likes tea", "messages": [1]}, {"text": "Promised a refund", "messages": [2]}]}
    rt = lab.runtime(llm=fakes.FakeLLM([answer]))
    await lab.add(rt, "I like tea", "I will refund you", owners=ALL)
    await add.process(rt, await lab.claim(rt))
    assert {memory.text: memory.owners for memory in await lab.memories()} == {
        "Likes tea": Owners("alice", None, "shop", "r1"),
        "Promised a refund": Owners(None, "bot", "shop", "r1"),
    }


async def test_a_project_that_does_not_split_keeps_all_owners(lab: Lab, other_project: Project) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Likes tea")]))
    await lab.add(rt, "I like tea", owners=ALL, project=other_project)
    await add.process(rt, await lab.claim(rt))
    assert [memory.owners for memory in await lab.memories(other_project)] == [ALL]
    assert await lab.memories() == []


# The same again


async def test_a_repeat_ends_well_and_adds_nothing(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Likes tea", "Likes tea", "Likes rice"), facts("Likes tea")]))
    await lab.add(rt, "I like tea")
    await add.process(rt, await lab.claim(rt))
    before = await lab.memories()
    assert [memory.text for memory in before] == ["Likes tea", "Likes rice"]
    repeat = await lab.add(rt, "I like tea")
    assert await add.process(rt, await lab.claim(rt)) == attempt.Done(added=0)
    event = await lab.event(repeat)
    assert (event.status, event.results, event.metadata) == (Status.SUCCEEDED, [], {"facts": 1, "duplicates": 1})
    assert await lab.memories() == before
    assert await lab.count("history") == 2


async def test_a_repeated_key_is_accepted_once(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Likes tea")]))
    first = await lab.add(rt, "I like tea", idempotency_key="k")
    await add.process(rt, await lab.claim(rt))
    again = await lab.add(rt, "I like tea", idempotency_key="k")
    assert (again.event.id, again.event.status, again.message) == (first.event.id, Status.PENDING, first.message)
    with pytest.raises(errors.KeyReused):
        await lab.add(rt, "I like rice", idempotency_key="k")
    assert await lab.count("events") == 1


# When something fails


async def test_a_failure_is_put_off_until_attempts_run_out(lab: Lab) -> None:
    text = "no answer from https://user:secret@host with sk-abcdefghijkl"
    rt = lab.runtime(llm=fakes.FakeLLM([errors.ModelUnavailable(text)] * 3))
    accepted = await lab.add(rt, "I like tea")
    outcomes = []
    for _ in range(3):
        await lab.execute("UPDATE events SET next_at = clock_timestamp()")
        outcomes.append(await add.process(rt, await lab.claim(rt)))
        if len(outcomes) < 3:
            assert (await lab.event(accepted)).status is Status.PENDING
    assert [type(outcome) for outcome in outcomes] == [attempt.RetryAt, attempt.RetryAt, attempt.GaveUp]
    event = await lab.event(accepted)
    assert (event.status, event.error_code, event.results) == (Status.FAILED, "model_unavailable", [])
    assert event.error
    assert "secret" not in event.error
    assert "abcdefghijkl" not in event.error
    assert await lab.count("messages") == 0


async def test_a_model_is_asked_once_however_often_the_rest_fails(lab: Lab) -> None:
    llm = fakes.FakeLLM([facts("Likes tea")])
    rt = lab.runtime(llm=llm)
    accepted = await lab.add(rt, "I like tea")
    lab.embedder.failures = [errors.EmbedderUnavailable(), errors.EmbedderUnavailable()]
    for _ in range(3):
        await lab.execute("UPDATE events SET next_at = clock_timestamp()")
        outcome = await add.process(rt, await lab.claim(rt))
    assert outcome == attempt.Done(added=1)
    assert len(llm.calls) == 1
    assert [memory.text for memory in await lab.memories()] == ["Likes tea"]
    assert (await lab.event(accepted)).error is None


async def test_an_event_tells_how_much_of_an_answer_was_of_no_use_whichever_attempt_read_it(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([{"facts": ["Likes tea", None, 5, {"x": 1}, ""]}]))
    accepted = await lab.add(rt, "I like tea")
    lab.embedder.failures = [errors.EmbedderUnavailable()]
    assert isinstance(await add.process(rt, await lab.claim(rt)), attempt.RetryAt)
    await lab.execute("UPDATE events SET next_at = clock_timestamp()")
    assert await add.process(rt, await lab.claim(rt)) == attempt.Done(added=1)
    assert (await lab.event(accepted)).metadata == {
        "facts": 1,
        "duplicates": 0,
        "refused": [{"reason": "wrong_shape", "count": 4}],
    }


async def test_an_embedder_of_other_dimensions_fails_the_event_at_once(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Likes tea")]))
    lab.embedder.dims = 48
    accepted = await lab.add(rt, "I like tea")
    assert await add.process(rt, await lab.claim(rt)) == attempt.GaveUp("embedder_refused")
    assert (await lab.event(accepted)).status is Status.FAILED
    assert await lab.memories() == []


async def test_a_request_of_an_unknown_form_fails_with_a_reason(lab: Lab) -> None:
    rt = lab.runtime()
    accepted = await lab.add(rt, "I like tea")
    await lab.execute("UPDATE events SET payload = '{}'")
    assert await add.process(rt, await lab.claim(rt)) == attempt.GaveUp("invalid_request")
    assert "cannot read" in str((await lab.event(accepted)).error)


# The lease


async def test_a_stale_holder_changes_nothing(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Old words"), facts("New words")]))
    accepted = await lab.add(rt, "old words and new words")
    stale = await lab.claim(rt)
    await lab.execute("UPDATE events SET lease_until = clock_timestamp() - interval '1 s'")
    async with lab.db.acquire(None) as conn:
        await claims.reclaim_expired(conn, rt.settings.retry_delays_s)
    holder = await lab.claim(rt)
    assert await add.process(rt, stale) == attempt.Lost()
    assert await lab.memories() == []
    assert await add.process(rt, holder) == attempt.Done(added=1)
    assert [memory.text for memory in await lab.memories()] == ["New words"]
    assert (await lab.event(accepted)).attempts == 2


async def test_a_lease_is_renewed_while_the_model_thinks(fresh_lab: Lab) -> None:
    async def expiry() -> datetime:
        async with fresh_lab.db.acquire(None) as conn:
            at: datetime = await conn.fetchval("SELECT lease_until FROM events")
            return at

    class Slow(fakes.FakeLLM):
        async def complete_json(self, *args: object, **options: object) -> object:
            first = await expiry()

            async def renewed() -> bool:
                return await expiry() > first

            await eventually(renewed)
            return facts("Likes tea")

    rt = fresh_lab.runtime(llm=Slow(), lease_s=1.0)
    await fresh_lab.add(rt, "I like tea")
    assert await add.process(rt, await fresh_lab.claim(rt)) == attempt.Done(added=1)


async def test_a_worker_stops_as_soon_as_its_lease_is_lost(fresh_lab: Lab) -> None:
    class Endless(fakes.FakeLLM):
        async def complete_json(self, *args: object, **options: object) -> object:
            await fresh_lab.execute("UPDATE events SET lease_epoch = lease_epoch + 1")
            await asyncio.Event().wait()
            raise AssertionError

    rt = fresh_lab.runtime(llm=Endless(), lease_s=0.3)
    await fresh_lab.add(rt, "I like tea")
    async with asyncio.timeout(10):
        assert await add.process(rt, await fresh_lab.claim(rt)) == attempt.Lost()


# delete_all


async def test_a_delete_wins_over_an_add_accepted_before_it(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Likes tea")]))
    accepted = await lab.add(rt, "I like tea")
    event = await lab.claim(rt)
    async with lab.db.transaction(lab.project.id) as conn:
        assert await events.cancel_targets(conn, lab.project.id, event.target_scope_ids) == 1
    assert await add.process(rt, event) == attempt.Done(added=0)
    done = await lab.event(accepted)
    assert (done.status, done.results) == (Status.SUCCEEDED, [])
    assert done.metadata == {"facts": 1, "cancelled_by": "delete_all"}
    assert [await lab.count(table) for table in ("memories", "messages")] == [0, 0]


async def test_a_delete_of_one_target_leaves_the_other_without_its_words(lab: Lab) -> None:
    answer = {"facts": [{"text": "Likes tea", "messages": [1]}, {"text": "Promised a refund", "messages": [2]}]}
    rt = lab.runtime(llm=fakes.FakeLLM([answer]))
    await lab.add(rt, "I like tea", "I will refund you", owners=ALL)
    event = await lab.claim(rt)
    async with lab.db.transaction(lab.project.id) as conn:
        await events.cancel_targets(conn, lab.project.id, event.target_scope_ids[:1])
    await add.process(rt, event)
    assert [memory.text for memory in await lab.memories()] == ["Promised a refund"]
    assert [await lab.count(table) for table in ("messages", "memory_sources")] == [0, 0]


# infer: false


async def test_messages_as_they_are_are_stored_at_once(lab: Lab) -> None:
    rt = lab.runtime()
    text = "  I like tea \u200d\u0065\u0301 \n"
    accepted = await lab.add(rt, text, "I see", infer=False, owners=ALL, metadata={"k": 1})
    stored = await lab.memories()
    assert [(memory.text, memory.owners, memory.metadata, memory.role) for memory in stored] == [
        (text, ALL, {"k": 1}, "user")
    ]
    assert accepted.results == accepted.event.results
    assert [result["id"] for result in accepted.event.results] == [str(stored[0].id)]
    assert accepted.skipped == (
        {"index": 1, "role": "assistant", "reason": "this project stores messages of user only"},
    )
    assert (await lab.event(accepted)).status is Status.SUCCEEDED
    assert (accepted.event.latency_ms or 0) > 0
    assert accepted.event.id not in lab.queue.rung


async def test_system_and_blank_messages_are_never_stored(lab: Lab) -> None:
    rt = lab.runtime()
    said = (Message("system", "Be brief", index=0), Message("user", " \t", index=1), Message("user", "A", index=2))
    accepted = await lab.add(rt, messages=said, infer=False)
    assert [(item["index"], item["reason"]) for item in accepted.skipped] == [
        (0, "system messages are never stored"),
        (1, "the message is blank"),
    ]
    assert [memory.text for memory in await lab.memories()] == ["A"]


async def test_a_project_chooses_the_roles_that_are_stored(lab: Lab) -> None:
    settings = ProjectSettings(compatibility="hosted")
    async with lab.db.transaction(None) as conn:
        hosted = await factories.make_project(conn, settings=settings)
    accepted = await lab.add(lab.runtime(), "A", "B", infer=False, project=hosted)
    assert [result["memory"] for result in accepted.event.results] == ["A", "B"]
    assert accepted.skipped == ()


async def test_a_text_is_stored_once_in_a_scope_and_its_repeat_changes_nothing(lab: Lab) -> None:
    rt = lab.runtime()
    said = tuple(Message("user", text, index=index) for index, text in enumerate(["A", "A", "B"]))
    assert len((await lab.add(rt, messages=said, infer=False)).event.results) == 2
    before = await lab.memories()
    repeat = await lab.add(rt, "A", infer=False)
    assert (repeat.event.status, repeat.results) == (Status.SUCCEEDED, [])
    assert await lab.memories() == before
    assert await lab.count("history") == 2
    await lab.add(rt, "A", infer=False, owners=Owners(user_id="bob"))
    assert len(await lab.memories()) == 3


async def test_the_same_text_at_the_same_time_is_stored_once(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    accepted = await asyncio.gather(*(fresh_lab.add(rt, "A", infer=False) for _ in range(12)))
    assert sum(len(item.event.results) for item in accepted) == 1
    assert len(await fresh_lab.memories()) == 1


async def test_the_same_key_at_the_same_time_is_one_event(fresh_lab: Lab) -> None:
    rt = fresh_lab.runtime()
    accepted = await asyncio.gather(*(fresh_lab.add(rt, "A", infer=False, idempotency_key="k") for _ in range(8)))
    assert len({item.event.id for item in accepted}) == 1
    assert len({str(item.results) for item in accepted}) == 1
    assert await fresh_lab.count("events") == 1


async def test_nothing_is_stored_when_the_embedder_fails(lab: Lab) -> None:
    lab.embedder.failures = [errors.EmbedderUnavailable()]
    with pytest.raises(errors.EmbedderUnavailable):
        await lab.add(lab.runtime(), "A", infer=False)
    assert [await lab.count(table) for table in ("memories", "messages", "events")] == [0, 0, 0]
