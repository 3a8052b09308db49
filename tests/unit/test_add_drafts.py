"""Facts become drafts of the right owner, with their time and sources; the same text only once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from uuid_utils.compat import uuid7

from app.domain import attribute, dedupe, drafts
from app.model import Fact, Message, Owners, Scope, Source

AT = datetime(2024, 5, 6, tzinfo=UTC)
BOTH = Owners("u", "a", "p", "r")
USER, AGENT = Scope(1, 10, Owners("u", None, "p", "r")), Scope(1, 11, Owners(None, "a", "p", "r"))


def said(*texts: str) -> list[Message]:
    return [
        Message("user" if n % 2 == 0 else "assistant", text, "Ann" if n % 2 == 0 else None, n, uuid7(), AT)
        for n, text in enumerate(texts)
    ]


def of(facts: list[Fact], messages: list[Message], before: Message | None = None) -> list[drafts.Draft]:
    return drafts.of_facts(facts, messages, before=before, targets=(USER, AGENT), observed_at=AT)


def test_with_user_and_agent_each_keeps_application_and_run() -> None:
    assert attribute.targets(BOTH, split=True) == (USER.owners, AGENT.owners)


@pytest.mark.parametrize("owners", [Owners(user_id="u"), Owners(agent_id="a", run_id="r"), Owners(app_id="p")])
def test_owners_without_both_stay_together(owners: Owners) -> None:
    assert attribute.targets(owners, split=True) == (owners,)


def test_a_project_may_keep_both_together() -> None:
    assert attribute.targets(BOTH, split=False) == (BOTH,)


def test_a_fact_goes_to_whoever_stated_it() -> None:
    found = of([Fact("a"), Fact("b", role="assistant")], said("x", "y"))
    assert [draft.scope for draft in found] == [USER, AGENT]
    assert attribute.scope_of("assistant", (USER,)) == USER


def test_a_draft_knows_its_source_and_what_was_said_before_it() -> None:
    messages = said("I like tea", "Noted", "And rice")
    fact = Fact("Ann likes rice", sources=(Source(2, 4, 8),))
    draft = of([fact], messages)[0]
    assert (draft.sources, draft.spans, draft.previous) == ((messages[2],), ((4, 8),), "assistant: Noted")
    assert (draft.actor, draft.said_at, draft.position) == ("Ann", AT, 0)


def test_before_the_first_message_comes_the_last_one_of_earlier_adds() -> None:
    fact = Fact("x", sources=(Source(0, 0, 1),))
    assert of([fact], said("x"), before=Message("user", "old"))[0].previous == "user: old"
    assert of([fact], said("x"))[0].previous is None


def test_a_fact_without_source_shows_a_short_add_whole_and_links_to_nothing() -> None:
    draft = of([Fact("x")], said("a", "b"))[0]
    assert [(message.content, message.id) for message in draft.sources] == [("a", None), ("b", None)]
    assert of([Fact("x")], said(*"abcdefghijkl"))[0].sources == ()


def test_a_source_that_does_not_exist_is_no_source() -> None:
    assert of([Fact("x", sources=(Source(99, 0, 1),))], said(*"abcdefghijkl"))[0].sources == ()


def test_a_blank_fact_is_dropped_and_the_others_keep_their_place() -> None:
    assert [(d.text, d.position) for d in of([Fact(" \n"), Fact("b")], said("x"))] == [("b", 1)]


def test_messages_become_drafts_code_point_for_code_point() -> None:
    texts = ["  spaces stay ", "e\u0301 is not \u00e9", "🧠\u200d"]
    found = drafts.of_messages(said(*texts), before=None, scope=USER, observed_at=AT)
    assert [draft.text for draft in found] == texts
    assert [draft.previous for draft in found] == [None, f"Ann: {texts[0]}", f"assistant: {texts[1]}"]
    assert found[1].spans == ((0, len(texts[1])),)


def test_the_same_text_is_kept_once_in_a_scope_and_once_in_another() -> None:
    found = of([Fact("a"), Fact("a"), Fact("a", role="assistant"), Fact("b")], said("x"))
    assert [draft.position for draft in dedupe.new(found)] == [0, 2, 3]
    assert [draft.position for draft in dedupe.new(found, {(USER.id, dedupe.md5("a"))})] == [2, 3]


def test_texts_are_compared_code_point_for_code_point() -> None:
    assert dedupe.md5("e\u0301") != dedupe.md5("\u00e9")
    assert dedupe.md5("A") == "7fc56270e7a70fa81a5935b72eacbe29"
