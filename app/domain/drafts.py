"""Facts of a conversation to drafts of memories: whose each is, when it was said, and from which messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from app.domain import attribute, dedupe
from app.domain.remember import Draft, spoken
from app.model import Fact, Message, Scope

FEW_MESSAGES = 10  #: an add of so many is shown whole in the history of a fact that names no source


def of_facts(
    facts: Sequence[Fact],
    said: Sequence[Message],
    *,
    before: Message | None,
    targets: Sequence[Scope],
    observed_at: datetime,
) -> list[Draft]:
    """Return a draft of every fact that has a text, in order.

    `said`: the messages of the add, oldest first; `before`: the one before them in their scope; `targets`: in the order
    of `attribute.targets`; `observed_at`: when the conversation took place, for facts without a source.
    """
    by_index = {message.index: message for message in said}
    previous = dict(zip(by_index, (before, *said), strict=False))
    drafts = []
    for position, fact in enumerate(facts):
        if not fact.text.strip():
            continue
        sources, spans = _sources(fact, by_index, said)
        first = sources[0] if sources and sources[0].id is not None else None
        earlier = previous[first.index] if first else None
        drafts.append(
            Draft(
                scope=attribute.scope_of(fact.role, targets),
                text=fact.text,
                hash=dedupe.md5(fact.text),
                position=position,
                said_at=(first and first.said_at) or observed_at,
                role=fact.role,
                actor=fact.actor or (first.name if first else None),
                previous=spoken(earlier) if earlier else None,
                sources=sources,
                spans=spans,
                happened_from=fact.happened_from,
                happened_to=fact.happened_to,
            )
        )
    return drafts


def of_messages(said: Sequence[Message], *, before: Message | None, scope: Scope, observed_at: datetime) -> list[Draft]:
    """Return a draft of every message as it is, in order. Arguments as for `of_facts`."""
    return [
        Draft(
            scope=scope,
            text=message.content,
            hash=dedupe.md5(message.content),
            position=position,
            said_at=message.said_at or observed_at,
            role=message.role,
            actor=message.name,
            previous=spoken(earlier) if earlier else None,
            sources=(message,),
            spans=((0, len(message.content)),),
        )
        for position, (earlier, message) in enumerate(zip((before, *said), said, strict=False))
    ]


def _sources(
    fact: Fact, by_index: dict[int, Message], said: Sequence[Message]
) -> tuple[tuple[Message, ...], tuple[tuple[int, int], ...]]:
    """Return the messages and spans that the fact names; without any, a short add whole, not linked to its messages."""
    known = [source for source in fact.sources if source.message_index in by_index]
    if known or len(said) > FEW_MESSAGES:
        messages = tuple(by_index[source.message_index] for source in known)
        return messages, tuple((source.start, source.end) for source in known)
    return tuple(replace(message, id=None) for message in said), tuple((0, len(message.content)) for message in said)
