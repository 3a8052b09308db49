"""A newer memory that contradicts an older one marks it, and changes nothing else of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.domain import add, edit
from app.model import Memory, Owners, State
from app.store import lifecycle
from tests import factories, fakes
from tests.worker.conftest import Lab, facts

OLD, NEW = datetime(2021, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)


async def told(lab: Lab, rt: Any, text: str, **options: Any) -> None:
    await lab.add(rt, text, **options)
    await add.process(rt, await lab.claim(rt))


async def states(lab: Lab) -> dict[str, tuple[State, str | None]]:
    """Return the state of each memory by its text, and the text of the one that replaced it."""
    found = await lab.memories()
    texts = {memory.id: memory.text for memory in found}
    return {m.text: (m.state, texts[m.replaced_by] if m.replaced_by else None) for m in found}


def replacing(text: str, *numbers: Any) -> dict[str, Any]:
    return {"facts": [{"text": text, "speaker": "user", "replaces": list(numbers)}]}


# By a rule


async def test_without_a_model_another_home_replaces_the_old_one(lab: Lab) -> None:
    rt = lab.runtime()
    await told(lab, rt, "I live in Berlin.")
    (before,) = await lab.memories()
    await told(lab, rt, "I moved to Lisbon, and I am allergic to peanuts.")
    after = {memory.id: memory for memory in await lab.memories()}
    old = after[before.id]
    assert old.state is State.SUPERSEDED
    assert old.replaced_by in after
    assert "Lisbon" in after[old.replaced_by].text
    unchanged = ("text", "hash", "metadata", "created_at", "updated_at", "owners")
    assert [getattr(old, name) for name in unchanged] == [getattr(before, name) for name in unchanged]
    assert await lab.count("history") == len(after)  # their ADD alone


async def test_chinese_statements_replace_each_other_too(lab: Lab) -> None:
    rt = lab.runtime()
    await told(lab, rt, "我住在北京。")
    await told(lab, rt, "我搬到上海了。")
    assert await states(lab) == {
        "用户住在北京。": (State.SUPERSEDED, "用户搬到上海了。"),
        "用户搬到上海了。": (State.ACTIVE, None),
    }


async def test_what_was_said_later_stands_whichever_was_stored_later(lab: Lab) -> None:
    rt = lab.runtime()
    await told(lab, rt, "I live in Berlin.", timestamp=NEW)
    await told(lab, rt, "I live in Rome.", timestamp=OLD)
    assert await states(lab) == {
        "User lives in Berlin.": (State.ACTIVE, None),
        "User lives in Rome.": (State.SUPERSEDED, "User lives in Berlin."),
    }


async def test_a_chain_keeps_each_link_and_goes_as_a_whole(lab: Lab) -> None:
    rt = lab.runtime()
    for place in ("Berlin", "Rome", "Oslo"):
        await told(lab, rt, f"I live in {place}.")
    assert await states(lab) == {
        "User lives in Berlin.": (State.SUPERSEDED, "User lives in Rome."),
        "User lives in Rome.": (State.SUPERSEDED, "User lives in Oslo."),
        "User lives in Oslo.": (State.ACTIVE, None),
    }
    newest = (await lab.memories())[-1]
    assert await edit.delete(rt, lab.caller(), newest.id, linked=True) == 2
    assert await lab.memories() == []


async def test_what_is_said_again_is_so_again(lab: Lab) -> None:
    rt = lab.runtime()
    for place in ("Berlin", "Rome", "Berlin"):
        await told(lab, rt, f"I live in {place}.")
    assert await states(lab) == {
        "User lives in Berlin.": (State.ACTIVE, None),
        "User lives in Rome.": (State.SUPERSEDED, "User lives in Berlin."),
    }
    await told(lab, rt, "I live in Rome.", timestamp=OLD)  # a late import of old words changes nothing
    assert (await states(lab))["User lives in Berlin."] == (State.ACTIVE, None)


async def test_other_owners_and_immutable_memories_are_left_alone(lab: Lab) -> None:
    rt = lab.runtime()
    await told(lab, rt, "I live in Berlin.", immutable=True)
    await told(lab, rt, "I live in Paris.", owners=Owners(user_id="bob"))
    await told(lab, rt, "I live in Rome.")
    assert {state for state, _ in (await states(lab)).values()} == {State.ACTIVE}


async def test_messages_as_they_are_replace_nothing(lab: Lab) -> None:
    rt = lab.runtime()
    for place in ("Berlin", "Rome"):
        await lab.add(rt, f"I live in {place}.", infer=False)
    assert {state for state, _ in (await states(lab)).values()} == {State.ACTIVE}


async def test_an_add_says_how_many_it_replaced(lab: Lab) -> None:
    rt = lab.runtime()
    await told(lab, rt, "I live in Berlin.")
    accepted = await lab.add(rt, "I live in Rome.")
    await add.process(rt, await lab.claim(rt))
    assert (await lab.event(accepted)).metadata == {"facts": 1, "duplicates": 0, "superseded": 1}


# By a model


async def test_a_model_names_what_a_fact_replaces(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Owns a red bike"), replacing("Sold the red bike", 0)]))
    await told(lab, rt, "I own a red bike")
    await told(lab, rt, "I sold the bike")
    assert await states(lab) == {
        "Owns a red bike": (State.SUPERSEDED, "Sold the red bike"),
        "Sold the red bike": (State.ACTIVE, None),
    }
    assert '"replaces"' in rt.llm.calls[1][1]


async def test_numbers_that_a_model_made_up_replace_nothing(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Owns a red bike"), replacing("Sold it", 7, -1, "x", None, 1.5)]))
    await told(lab, rt, "I own a red bike")
    await told(lab, rt, "I sold it")
    assert {state for state, _ in (await states(lab)).values()} == {State.ACTIVE}


async def test_a_model_replaces_nothing_newer_nothing_immutable_and_nothing_of_another_owner(lab: Lab) -> None:
    owners = Owners(user_id="alice", agent_id="bot")
    of_bot = {"facts": [{"text": "A bot's", "messages": [2]}]}
    rt = lab.runtime(llm=fakes.FakeLLM([of_bot, facts("Fixed"), facts("Newer"), replacing("New", 0, 1, 2)]))
    await lab.add(rt, "x", "I am a bot", owners=owners)
    await add.process(rt, await lab.claim(rt))
    await told(lab, rt, "it is fixed", owners=owners, immutable=True)
    await told(lab, rt, "it is newer", owners=owners, timestamp=datetime(2999, 1, 1, tzinfo=UTC))
    await told(lab, rt, "it is new", owners=owners)
    found = await states(lab)
    assert [found[text][0] for text in ("A bot's", "Fixed", "Newer")] == [State.ACTIVE] * 3
    assert found["New"] == (State.SUPERSEDED, "Newer")


async def test_only_what_still_stands_is_shown_to_a_model(lab: Lab) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM([facts("Owns a bike"), replacing("Sold the bike", 0), facts()]))
    for text in ("I own a bike", "I sold the bike", "c"):
        await told(lab, rt, text)
    assert "Sold the bike" in rt.llm.calls[2][2]
    assert "Owns a bike" not in rt.llm.calls[2][2]


async def test_a_pair_of_a_foreign_project_is_passed_over(lab: Lab) -> None:
    async with lab.db.transaction(None) as conn:
        other = await factories.make_project(conn)
        scope = await factories.make_scope(conn, other)
        one: Memory = await factories.make_memory(conn, scope, "a")
        two: Memory = await factories.make_memory(conn, scope, "b")
        assert await lifecycle.supersede(conn, lab.project.id, [(one.id, two.id)]) == []
        assert await lifecycle.restate(conn, lab.project.id, [(one.id, two.id)], NEW) == []
        assert await lifecycle.standing(conn, lab.project.id, [one.id]) == {}
        assert await lifecycle.of_hashes(conn, lab.project.id, [(scope.id, one.hash)]) == {}
        assert await lifecycle.active(conn, lab.project.id, scope.id, ["a"], limit=9) == []
        assert await lifecycle.supersede(conn, other.id, [(two.id, one.id)]) == [one.id]
