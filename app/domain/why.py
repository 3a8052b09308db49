"""Why a search does not bring a memory: the stage at which it was dropped, and what would bring it back.

It runs the real search, with the real ranking, and tries what it advises before it says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from app import errors
from app.domain import explain, pins, quota, rank, search, why_filters
from app.domain.explain import ArmHit
from app.domain.why_filters import Wanted
from app.model import Caller, FilterNode, Memory, State
from app.runtime import Runtime
from app.store import memories as memory_store
from app.store import probe
from app.store import search as arms

Stage = Literal["filters", "expired", "replaced", "candidates", "min_confidence", "threshold", "top_k", "found"]
Changes = dict[str, Any]  #: fields of the request, as a request has them

MOST_K = 1000  #: what a search takes for top_k
ROUNDS = 12  #: changes that are tried, one on top of the other
DEEP = 50_000  #: how far behind an arm's best a memory is looked for


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it was requested."""

    query: search.Query
    filters: Mapping[str, Any]  # as sent
    beside: Sequence[tuple[str, Any, FilterNode]]  # conditions beside them: field of the request, its value, tree
    expiry: FilterNode  # what show_expired would lift
    states: FilterNode  # what latest_only and include_merged decide
    latest_only: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What one search makes of the memory."""

    stage: Stage
    reason: str
    trail: search.Trail | None  # None: it was not searched for, the filters keep the memory out
    remedy: Changes | None  # what to change next; None: nothing is known to help
    failed: tuple[Wanted, ...] = ()
    arms: dict[str, ArmHit] | None = None
    rank: int | None = None  # its place: in the answer when it is found, else by the fused score; 1 first
    score: float | None = None  # that the search shows, or compares with the threshold


@dataclass(frozen=True, slots=True)
class Why:
    """The outcome for one memory and one query."""

    memory: Memory
    first: Look  # of the request as it was sent
    changes: Changes | None  # all together bring it back; empty: it is found; None: nothing does

    @property
    def advice(self) -> list[str]:
        """The changes in words."""
        return [_said(name, value) for name, value in (self.changes or {}).items()]


async def of(rt: Runtime, caller: Caller, memory_id: UUID, ask: Callable[[Changes], Asked]) -> Why:
    """Return why the search `ask({})` does or does not bring the memory. It counts as one search, and changes nothing.

    `ask` returns the same request with some fields changed.
    Raises: MemoryNotFound, also for one that the key may not see; otherwise as a search.
    """
    await quota.spend(rt, caller.project, "searches")
    async with rt.db.acquire(caller.project.id) as conn:
        memory = await memory_store.get(conn, caller.project.id, memory_id)
    pins.hide(caller, memory)
    first = look = await _look(rt, caller, memory, ask({}))
    changes: Changes = {}
    for _ in range(ROUNDS):
        if look.stage == "found":
            return Why(memory, first, changes)
        if look.remedy is None or look.remedy.items() <= changes.items():
            break
        changes = {**changes, **look.remedy}
        look = await _look(rt, caller, memory, ask(changes))
    return Why(memory, first, changes if look.stage == "found" else None)


async def _look(rt: Runtime, caller: Caller, memory: Memory, asked: Asked) -> Look:
    kept_out = await _kept_out(rt, caller, memory, asked)
    if kept_out is not None:
        return kept_out
    trail = await search.follow(rt, caller, asked.query)
    place = next((place for place, hit in enumerate(trail.ordered, start=1) if hit.memory.id == memory.id), None)
    ranked = rank.order(trail.pool, rank.model(rt.embedder.model))
    at = next((at for at, found in enumerate(ranked, start=1) if found.candidate.id == memory.id), None)
    if at is None:
        return await _not_a_candidate(rt, caller, memory, asked, trail)
    found = ranked[at - 1]
    seen = explain.arms_of(found.candidate, explain.places(trail))
    top_k, threshold = asked.query.top_k, asked.query.threshold
    if place is not None and place <= top_k:
        score = trail.ordered[place - 1].score
        return Look("found", f"The search brings it, at place {place}.", trail, {}, arms=seen, rank=place, score=score)
    if (sure := trail.answerable) < asked.query.min_confidence:
        reason = f"The chance of an answer, {sure:.4f}, is below min_confidence, so that nothing is a hit."
        remedy: Changes = {"min_confidence": math.floor(sure * 10_000) / 10_000}
        return Look("min_confidence", reason, trail, remedy, arms=seen, rank=at, score=found.score)
    if found.score < threshold:
        remedy = {"threshold": math.floor(found.score * 10_000) / 10_000}
        reason = f"Its score {found.score:.4f} is below the threshold {threshold:g}."
        return Look("threshold", reason, trail, remedy, arms=seen, rank=at, score=found.score)
    behind = place or at
    reason = f"It stands at place {behind}, and top_k is {top_k}."
    more = _only(memory, asked) if top_k >= MOST_K else {"top_k": min(max(behind, top_k + 1), MOST_K)}
    return Look("top_k", reason, trail, more, arms=seen, rank=behind, score=found.score)


# Filters


async def _kept_out(rt: Runtime, caller: Caller, memory: Memory, asked: Asked) -> Look | None:
    """Return what the conditions of the request say of the memory; None: they let it through."""
    scoping = caller.project.settings.null_scoping
    parts = why_filters.wanted(asked.filters, rt.settings, null_scoping=scoping)
    beside = [Wanted(name, name, value, node) for name, value, node in asked.beside]
    nodes = [part.node for part in (*parts, *beside)]
    async with rt.db.acquire(caller.project.id) as conn:
        met = await probe.meets(conn, caller.project.id, memory.id, [*nodes, asked.expiry, asked.states])
    if not met:
        raise errors.MemoryNotFound
    failed = tuple(part for part, fine in zip((*parts, *beside), met, strict=False) if not fine)
    if failed:
        kept = [part for part, fine in zip(parts, met, strict=False) if fine]
        remedy: Changes = {part.name: None for part in failed if part.name != "filters"}
        if any(part.name == "filters" for part in failed):
            remedy["filters"] = why_filters.letting_through(memory, kept, rt.settings)
        names = ", ".join(dict.fromkeys(f"{part.name} ({part.field})" for part in failed))
        return Look("filters", f"The conditions keep it out: {names}.", None, remedy, failed)
    if not met[-2]:
        reason = f"It expired: it was visible through {memory.expiration_date}."
        return Look("expired", reason, None, {"show_expired": True})
    if not met[-1]:
        return _replaced(memory, asked)
    return None


def _replaced(memory: Memory, asked: Asked) -> Look:
    by = f" by {memory.replaced_by}" if memory.replaced_by else ""
    what = "superseded" if memory.state is State.SUPERSEDED else "merged into a fuller one"
    remedy: Changes = {"latest_only": False} if asked.latest_only else {}
    if memory.state is State.MERGED:
        remedy["include_merged"] = True
    return Look("replaced", f"It was {what}{by}, and the search hides such memories.", None, remedy)


# Candidates


async def _not_a_candidate(rt: Runtime, caller: Caller, memory: Memory, asked: Asked, trail: search.Trail) -> Look:
    """Say where the memory stands in each arm, none of which brought it."""
    ranks = await _real_ranks(rt, caller, memory.id, trail)
    best = min((arm.rank for arm in ranks.values() if arm.rank is not None), default=None)
    limit = asked.query.arm_limit
    if best is None:
        reason = "No way of finding leads to it: it shares no word and no name with the query, and is not near to it."
        return Look("candidates", reason, trail, _only(memory, asked), arms=ranks)
    reason = f"Each way of finding brings {limit} memories at most, and it stands at place {best} of its best one."
    per_k = replace(asked.query, top_k=MOST_K).arm_limit // MOST_K
    enough = math.ceil(best / per_k)
    more = {"top_k": enough} if asked.query.top_k < enough <= MOST_K else _only(memory, asked)
    return Look("candidates", reason, trail, more, arms=ranks)


async def _real_ranks(rt: Runtime, caller: Caller, memory_id: UUID, trail: search.Trail) -> dict[str, ArmHit]:
    """Return the rank of the memory in each arm, however far behind, and its raw score there."""
    vector = await rt.embedder.embed_query(trail.embedded)
    question = trail.question
    where = (caller.project.id, trail.scope_ids, trail.query.node)
    async with rt.db.acquire(caller.project.id) as conn:
        near = await arms.semantic(conn, *where, vector, model=rt.embedder.model, limit=DEEP)
        worded = await arms.lexical(conn, *where, question.terms, limit=DEEP)
        named = await arms.by_entity(conn, *where, question.norms, limit=DEEP)
    return {
        "semantic": _arm_hit(memory_id, near),
        "keyword": _arm_hit(memory_id, worded),
        "entity": _arm_hit(memory_id, [row[:2] for row in named]),
    }


def _arm_hit(memory_id: UUID, rows: Sequence[tuple[UUID, float]]) -> ArmHit:
    for place, (found, score) in enumerate(rows, start=1):
        if found == memory_id:
            return ArmHit(score, place)
    return ArmHit(None, None)


def _only(memory: Memory, asked: Asked) -> Changes | None:
    """Return the change after which nothing competes with the memory; None: it is made already."""
    alone = why_filters.only(memory)
    return None if alone == asked.filters else {"filters": alone}


def _said(name: str, value: Any) -> str:
    if name in ("threshold", "min_confidence"):
        return f"{name} ≤ {value:g}"
    if name == "top_k":
        return f"top_k ≥ {value}"
    if value is None:
        return f"leave out {name}"
    return f"{name}: {json.dumps(value, ensure_ascii=False)}"
