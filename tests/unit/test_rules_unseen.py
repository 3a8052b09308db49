"""The bars are what an honest set-aside sample supports, not perfection: rules that are perfect here were fitted to it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.domain import rules
from app.domain.conversation import Conversation
from app.model import Message
from tests.unit import fresh_dialogues, unseen_dialogues


def _facts(dialogue: unseen_dialogues.Dialogue) -> list[str]:
    messages = tuple(Message(role, text, name, i) for i, (role, name, text) in enumerate(dialogue.messages))
    return [f.text for f in rules.facts(Conversation(messages, datetime(2026, 11, 30, 10, tzinfo=UTC)))]


def test_most_facts_of_unseen_dialogues_are_found() -> None:
    found = total = 0
    for dialogue in unseen_dialogues.DIALOGUES:
        facts = [f.lower() for f in _facts(dialogue)]
        total += len(dialogue.facts)
        found += sum(any(all(word.lower() in fact for word in wanted) for fact in facts) for wanted in dialogue.facts)
    assert found / total >= 0.75


def test_little_of_the_talk_in_unseen_dialogues_is_kept() -> None:
    kept = [n for d in unseen_dialogues.DIALOGUES for n in d.never if any(n.lower() in f.lower() for f in _facts(d))]
    assert len(kept) <= 3
    empty = [d for d in unseen_dialogues.DIALOGUES if not d.facts]
    assert sum(not _facts(d) for d in empty) >= len(empty) - 1


@pytest.mark.parametrize("dialogues", [fresh_dialogues.ENGLISH, fresh_dialogues.CHINESE], ids=["english", "chinese"])
def test_chinese_is_read_as_well_as_english(dialogues: tuple[unseen_dialogues.Dialogue, ...]) -> None:
    found = total = kept = 0
    for dialogue in dialogues:
        facts = [f.lower() for f in _facts(dialogue)]
        total += len(dialogue.facts)
        found += sum(any(all(word.lower() in fact for word in wanted) for fact in facts) for wanted in dialogue.facts)
        kept += sum(any(n.lower() in fact for fact in facts) for n in dialogue.never)
    assert found / total >= 0.9
    assert kept <= 2
