"""What an extractor reads, the new messages of one add and everything that helps to understand them; what it returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from uuid import UUID

from app.model import Fact, Message


@dataclass(frozen=True, slots=True)
class Conversation:
    """One add as seen by an extractor. Facts come from `messages` alone; the rest is context."""

    messages: tuple[Message, ...]  # new, oldest first; `index` is the position in the add
    observed_at: datetime  # aware; when the conversation took place, the base of relative dates
    earlier: tuple[Message, ...] = ()  # what was said before in this scope, oldest first
    existing: tuple[tuple[UUID, str], ...] = ()  # nearest stored memories, nearest first: id and text
    timezone: tzinfo = UTC  # where the speakers are; dates are read and written in it
    now: datetime | None = None  # aware; None: the clock
    custom_instructions: str | None = None
    agent_custom_instructions: str | None = None  # for facts of the assistant; None: no agent, or as above
    includes: str | None = None  # topics to keep, in free text
    excludes: str | None = None  # topics to drop, in free text
    agent_only: bool = False  # the scope has an agent and no user: facts are about the assistant
    split: bool = False  # facts of the user and of the assistant go to scopes of their own
    names: tuple[str, ...] = ()  # ids of the owners, which facts may call the speakers by
    multilingual: bool = True  # facts keep the language of their message; false: English

    def said_at(self, message: Message) -> datetime:
        """Return when `message` was said, in the speakers' time zone."""
        return (message.said_at or self.observed_at).astimezone(self.timezone)


@dataclass(frozen=True, slots=True)
class Found:
    """What an extractor found in a conversation."""

    facts: list[Fact]  # empty: nothing is worth remembering
    refused: Mapping[str, int] = field(default_factory=dict)  # items of a model's answers that are no facts, by reason

    def __add__(self, other: Found) -> Found:
        return Found(self.facts + other.facts, Counter(self.refused) + Counter(other.refused))
