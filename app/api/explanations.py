"""What an explained search says beside its hits."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from app.domain import explain


class ArmOut(BaseModel):
    """What one way of finding says of a memory."""

    score: float | None = Field(description="Raw: cosine, BM25, or share of the names; null: it has none.")
    rank: int | None = Field(description="Among what this way of finding brought, 1 first; null: not among them.")


class ArmsOut(BaseModel):
    """The three ways of finding."""

    semantic: ArmOut = Field(description="By meaning: cosine similarity, -1 to 1.")
    keyword: ArmOut = Field(description="By words: BM25, 0 and up.")
    entity: ArmOut = Field(description="By names: share of the query's names that it mentions, 0 to 1.")


class ExplainedSource(BaseModel):
    """A part of a message that the memory was made from."""

    message_id: UUID = Field(description="Identifies the message.")
    role: str = Field(description="Who spoke.")
    name: str | None = Field(description="The speaker's name, when the add gave one.")
    said_at: datetime = Field(description="When it was said, UTC.")
    start: int = Field(description="First character of the part, from 0.")
    end: int = Field(description="Character after its last one.")
    text: str = Field(description="The beginning of that part.")


class HitExplanation(BaseModel):
    """How a memory came to its place."""

    arms: ArmsOut = Field(description="Raw scores and ranks.")
    parts: dict[str, float] = Field(
        description="What each part of the ranking gave: nearness and words against the best of the pool, the place "
        "before a hit, the session of other hits, the speaker, the time, words of time, a rare name."
    )
    fused: float = Field(description="Their sum; comparable within this query only.")
    fused_rank: int = Field(description="The place by that sum, 1 first.")
    calibrated: float = Field(description="The sum as a score from 0 to 1; `threshold` is compared with it.")
    time: float = Field(description="What words of time in the query, or decay, added to it to make `score`.")
    matched_terms: list[str] = Field(description="Terms of the query in its text.")
    context_terms: list[str] = Field(
        description="Terms of the query around it: its speaker, its date, the message before."
    )
    matched_entities: list[str] = Field(description="Names of the query that it mentions.")
    sources: list[ExplainedSource] = Field(description="What it was made from, in the order of saying.")


class DateSpan(BaseModel):
    """A time that the query names."""

    from_: datetime = Field(alias="from", description="Its beginning.")
    to: datetime = Field(description="Its end, exclusive.")


class CandidateCounts(BaseModel):
    """How many memories each way of finding brought."""

    semantic: int = Field(description="By meaning.")
    keyword: int = Field(description="By words.")
    entity: int = Field(description="By names.")
    all: int = Field(description="Different ones among them.")


class SearchExplanation(BaseModel):
    """How the query was read, and how many memories were left at each stage."""

    terms: list[str] = Field(description="What the words of the query are looked up as.")
    entities: list[str] = Field(description="Names in it, in folded form.")
    dates: list[DateSpan] = Field(description="Times that it names.")
    embedded: str | None = Field(description="What of it was embedded; null: there was nothing to compare it with.")
    stripped_names: list[str] = Field(description="Names left out of that, because most memories hold them.")
    speaker: str | None = Field(description="Whose words are preferred: a speaker's name, `user` or `assistant`.")
    reference_date: datetime = Field(description='What "today" meant.')
    memories: int = Field(description="Memories of the owners that the filters name, before all other conditions.")
    candidates: CandidateCounts = Field(description="What each way of finding brought.")
    ranked: int = Field(description="How many of those were looked at further.")
    reached_threshold: int = Field(description="How many of those reached the threshold.")
    threshold: float = Field(description="That threshold.")
    top_k: int = Field(description="How many are shown at most.")
    took_ms: dict[str, float] = Field(description="Milliseconds of each stage, in their order.")


_SOURCE = tuple(ExplainedSource.model_fields)


def query(why: explain.QueryWhy) -> dict[str, Any]:
    """Return the explanation of a query as answers show it."""
    return asdict(why)


def hit(why: explain.HitWhy) -> dict[str, Any]:
    """Return the explanation of a hit as answers show it."""
    plain = asdict(why)
    return {**plain, "sources": [{name: source[name] for name in _SOURCE} for source in plain["sources"]]}
