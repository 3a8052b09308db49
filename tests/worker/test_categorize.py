"""Categories of memories: given after they are stored, durably, and never at the cost of an add."""

from __future__ import annotations

from typing import Any

import pytest

from app import errors
from app.domain import add, attempt, batch, categorize, edit
from app.model import Event, Memory, Message, ProjectSettings, Status
from app.store import claims, events, lifecycle, memories, orgs
from tests import factories, fakes
from tests.worker.conftest import Lab, facts


def sorted_as(*names: list[str]) -> dict[str, Any]:
    return {"memories": [{"id": number, "categories": list(each)} for number, each in enumerate(names, start=1)]}


async def stored(lab: Lab, rt: Any, *texts: str, **options: Any) -> list[Memory]:
    """Add these texts as facts of a model, and return the memories."""
    rt.llm.answers.append(facts(*texts))
    await lab.add(rt, "; ".join(texts), **options)
    await add.process(rt, await lab.claim(rt))
    return await lab.memories()


async def sort(lab: Lab, rt: Any) -> attempt.Outcome:
    return await categorize.process(rt, await lab.claim(rt, "CATEGORIZE"))


async def by_text(lab: Lab) -> dict[str, tuple[str, ...] | None]:
    return {memory.text: memory.categories for memory in await lab.memories()}


async def test_an_add_is_done_before_its_memories_have_categories(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM())
    (before,) = await stored(lab, rt, "likes tea")
    assert before.categories is None
    rt.llm.categories = [sorted_as(["food", "user_preferences"])]
    assert await sort(lab, rt) == attempt.Done(added=1)
    (memory,) = await lab.memories()
    assert memory.categories == ("food", "user_preferences")
    assert memory.updated_at == before.updated_at
    assert await lab.count("history") == 1


async def test_a_batch_is_one_call_with_a_fixed_list_of_names(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM())
    await stored(lab, rt, "likes tea", "plays chess", "hm")
    rt.llm.categories = [sorted_as(["food"], ["hobbies", "no such", "hobbies"], [])]
    await sort(lab, rt)
    assert await by_text(lab) == {"likes tea": ("food",), "plays chess": ("hobbies",), "hm": ()}
    ((system, user, schema),) = rt.llm.sorted
    names = schema["properties"]["memories"]["items"]["properties"]["categories"]["items"]["enum"]
    assert "personal_details" in names
    assert len(names) == 15
    assert "personal_details: who somebody is" in system
    assert all(text in user for text in ("likes tea", "plays chess"))


async def test_many_memories_go_in_batches_and_what_is_done_stays_done(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM())
    said = [*(f"fact {number}" for number in range(40)), "one more"]
    await lab.add(rt, messages=tuple(Message("user", text, index=n) for n, text in enumerate(said)), infer=False)
    rt.llm.categories = [sorted_as(*([["misc"]] * 40)), errors.ModelUnavailable()]
    assert isinstance(await sort(lab, rt), attempt.RetryAt)
    assert sum(names is not None for names in (await by_text(lab)).values()) == 40
    await lab.execute("UPDATE events SET next_at = clock_timestamp()")
    rt.llm.categories = [sorted_as(["food"])]
    assert await sort(lab, rt) == attempt.Done(added=1)
    assert (await by_text(lab))["one more"] == ("food",)


async def test_the_list_of_the_call_goes_before_the_project_s_and_that_before_the_default(lab: Lab) -> None:
    settings = ProjectSettings(custom_categories=[{"aProject": "d"}])
    async with lab.db.transaction(None) as conn:
        project = await factories.make_project(conn, settings=settings)
    rt = lab.runtime(llm=fakes.FakeLLM([facts("likes tea"), facts("likes rice"), facts("likes cake")]))
    for who, options in (
        (project, {"custom_categories": [{"workLifeBalance": "d"}]}),
        (project, {}),
        (lab.project, {}),
    ):
        await lab.add(rt, "likes tea, likes rice, likes cake", project=who, **options)
        await add.process(rt, await lab.claim(rt))
        await sort(lab, rt)
    offered = [
        schema["properties"]["memories"]["items"]["properties"]["categories"]["items"]["enum"]
        for *_, schema in rt.llm.sorted
    ]
    assert offered[:2] == [["workLifeBalance"], ["aProject"]]
    assert "misc" in offered[2]


async def test_a_change_of_the_list_sorts_nothing_again(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    await sort(lab, rt)
    before = await by_text(lab)
    async with lab.db.transaction(None) as conn:
        await orgs.save_settings(conn, lab.project.id, ProjectSettings(custom_categories=["other"]))
    await lab.add(rt, "I had sushi for dinner", infer=False)
    with pytest.raises(AssertionError, match="no CATEGORIZE is due"):
        await lab.claim(rt, "CATEGORIZE")
    assert await by_text(lab) == before


async def test_rules_sort_where_no_model_is_and_likeness_judges_own_categories(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    await lab.add(
        rt,
        "invoices and payments and refunds",
        infer=False,
        custom_categories=[{"billing": "invoices payments refunds"}],
    )
    await sort(lab, rt)
    await sort(lab, rt)
    assert await by_text(lab) == {
        "I had sushi for dinner": ("food",),
        "invoices and payments and refunds": ("billing",),
    }


async def test_a_new_text_is_sorted_anew_and_new_metadata_are_not(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    await sort(lab, rt)
    (memory,) = await lab.memories()
    await edit.update(rt, lab.caller(), memory.id, edit.Update(metadata={"k": 1}))
    assert [m.categories for m in await lab.memories()] == [("food",)]
    changed = await edit.update(rt, lab.caller(), memory.id, edit.Update(text="plays the piano"))
    assert changed.categories is None
    await sort(lab, rt)
    assert await by_text(lab) == {"plays the piano": ("music",)}
    await batch.update(rt, lab.caller(), [(memory.id, edit.Update(text="bought a red dress"))])
    await sort(lab, rt)
    assert await by_text(lab) == {"bought a red dress": ("fashion",)}


async def test_a_text_that_changed_while_it_was_sorted_keeps_no_category_of_the_old_one(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    (old,) = await lab.memories()
    await edit.update(rt, lab.caller(), old.id, edit.Update(text="plays the piano"))
    async with lab.db.transaction(lab.project.id) as conn:
        assert await lifecycle.categorize(conn, lab.project.id, [(old, ("food",))]) == []
    await sort(lab, rt)
    assert await by_text(lab) == {"plays the piano": ("music",)}


@pytest.mark.parametrize(
    "answer",
    [
        [], {}, {"memories": []}, {"memories": [{"id": 9, "categories": ["food"]}]}, {"memories": "food"},
        errors.ModelRefused(), errors.ModelUnavailable(),
    ],
)  # fmt: skip
async def test_rules_stand_in_for_a_model_that_fails_to_the_last(lab: Lab, answer: Any) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("User likes tea")]))
    accepted = await lab.add(rt, "I like tea")
    await add.process(rt, await lab.claim(rt))
    assert (await lab.event(accepted)).status is Status.SUCCEEDED
    rt.llm.categories = [answer] * 3
    outcomes = await attempts(lab, rt, 3)
    assert [type(outcome) for outcome in outcomes] == [attempt.RetryAt, attempt.RetryAt, attempt.Done]
    assert await by_text(lab) == {"User likes tea": ("food", "user_preferences")}


async def test_an_embedder_that_is_away_fails_no_add_and_another_try_sorts(lab: Lab) -> None:
    rt = lab.runtime()
    accepted = await lab.add(rt, "I like tea", infer=False, custom_categories=[{"drinks": "tea and coffee"}])
    lab.embedder.failures = [errors.EmbedderUnavailable() for _ in range(3)]
    outcomes = await attempts(lab, rt, 3)
    assert outcomes[-1] == attempt.GaveUp("embedder_unavailable")
    assert (await lab.event(accepted)).status is Status.SUCCEEDED
    assert await by_text(lab) == {"I like tea": None}
    async with lab.db.transaction(lab.project.id) as conn:
        failed = await conn.fetchval("SELECT id FROM events WHERE status = 'FAILED'")
        await events.reopen(conn, lab.project.id, failed)
    assert await sort(lab, rt) == attempt.Done(added=1)


async def attempts(lab: Lab, rt: Any, count: int) -> list[attempt.Outcome]:
    outcomes = []
    for _ in range(count):
        await lab.execute("UPDATE events SET next_at = clock_timestamp() WHERE status = 'PENDING'")
        outcomes.append(await sort(lab, rt))
    return outcomes


async def test_a_holder_whose_lease_ended_writes_nothing(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    stale = await lab.claim(rt, "CATEGORIZE")
    async with lab.db.transaction(None) as conn:
        await claims.release(conn, stale)
    assert await categorize.process(rt, stale) == attempt.Lost()
    assert await by_text(lab) == {"I had sushi for dinner": None}
    await sort(lab, rt)
    assert await by_text(lab) == {"I had sushi for dinner": ("food",)}


async def test_memories_that_are_gone_need_no_category(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    (memory,) = await lab.memories()
    async with lab.db.transaction(lab.project.id) as conn:
        await memories.delete(conn, lab.project.id, [memory.id])
    assert await sort(lab, rt) == attempt.Done(added=0)


async def test_what_waits_to_be_sorted_keeps_no_add_out(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    async with lab.db.acquire(lab.project.id) as conn:
        assert await events.count_pending(conn, lab.project.id, most=10) == 0


async def test_sorting_is_listed_nowhere_and_leaves_nothing_behind(lab: Lab) -> None:
    rt = lab.runtime()
    accepted = await lab.add(rt, "I had sushi for dinner", infer=False)
    assert await listed(lab) == [accepted.event]
    await sort(lab, rt)
    assert await listed(lab) == [accepted.event]
    async with lab.db.acquire(None) as conn:
        assert await conn.fetchval("SELECT count(*) FROM events") == 1


async def listed(lab: Lab) -> list[Event]:
    async with lab.db.acquire(lab.project.id) as conn:
        count, found = await events.list_page(conn, lab.project.id, limit=10)
    assert count == len(found)
    return found


async def test_a_worker_that_dies_over_it_loses_nothing(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I had sushi for dinner", infer=False)
    await lab.claim(rt, "CATEGORIZE")
    await lab.execute("UPDATE events SET lease_until = now() - interval '1 second' WHERE status = 'RUNNING'")
    async with lab.db.transaction(None) as conn:
        assert await claims.reclaim_expired(conn, rt.settings.retry_delays_s) == 1
    assert await sort(lab, rt) == attempt.Done(added=1)
    assert await by_text(lab) == {"I had sushi for dinner": ("food",)}
