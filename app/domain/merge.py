"""Which memories say what another one says, in other words. None is rewritten: the less full one of two is marked merged.

A model says it with its fact, and the two vectors have to be near as well. Without a model only equal texts are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from app.domain import support
from app.domain.remember import Draft
from app.model import Fact, Memory, NewMemory
from app.store import lifecycle, memories
from app.store.db import Conn

#: Least cosine of two texts that say the same. Of the embedded model nine in ten pairs about different things are below.
NEAR = 0.85


@dataclass(frozen=True, slots=True)
class Merged:
    """A memory that was marked, and the one that says as much or more."""

    id: UUID
    into: UUID


async def apply(
    conn: Conn,
    project_id: int,
    facts: Sequence[Fact],
    found: Sequence[Draft],
    prepared: Sequence[NewMemory],
    stored: Sequence[Memory],
    *,
    model: str,
) -> list[Merged]:
    """Mark what is the same, in the transaction that stored the new memories. What a fact also replaces is not the same.

    Of two, the one that tells fewer of the other's words is marked; of equals the new one. Passed over: memories that are
    gone, of other scopes, immutable, or no longer active.
    """
    wanted = {(draft.scope_id, draft.hash): facts[draft.position] for draft in found if facts[draft.position].same}
    new = [memory for memory in stored if (memory.scope_id, memory.hash) in wanted]
    if not new:
        return []
    others = {id_ for fact in wanted.values() for id_ in fact.same}
    vectors = await lifecycle.vectors(conn, project_id, others, model=model)
    known = await memories.get_many(conn, project_id, others)
    mine = {memory.id: memory.embedding for memory in prepared}
    pairs = []
    for memory in new:
        fact = wanted[memory.scope_id, memory.hash]
        for id_ in fact.same:
            if id_ in vectors and id_ not in fact.replaces and float(np.dot(mine[memory.id], vectors[id_])) >= NEAR:
                fuller = support.closeness(known[id_].text, memory.text) > support.closeness(
                    memory.text, known[id_].text
                )
                pairs.append(Merged(id_, memory.id) if fuller else Merged(memory.id, id_))
                break  # a chain of two would mark both
    done = set(await lifecycle.merge(conn, project_id, [(pair.id, pair.into) for pair in pairs]))
    return [pair for pair in pairs if pair.id in done]
