"""Small, strict stand-ins for the three ports: chat model, embedder and queue."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from app.model import Vector, Vectors

MODEL = "fake-words-32"
DIMS = 32


class FakeEmbedder:
    """Hashes words into unit vectors: texts that share words are near, and every run is the same."""

    model = MODEL
    dims = DIMS

    def __init__(self) -> None:
        self.batches: list[list[str]] = []  # what was asked for, call by call
        self.failures: list[Exception] = []  # raised first, one per call

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32[n, 32], rows of unit length, in the texts' order."""
        self.batches.append(list(texts))
        if self.failures:
            raise self.failures.pop(0)
        return np.stack([vector(text) for text in texts]) if texts else np.zeros((0, DIMS), np.float32)

    async def embed_query(self, text: str) -> Vector:
        """Return float32[32], unit length."""
        return (await self.embed([text]))[0]

    async def check(self) -> None:
        """Pass, unless a failure is scripted."""
        if self.failures:
            raise self.failures.pop(0)

    def describe(self) -> str:
        """Return a line for people."""
        return "fake embedder"

    async def close(self) -> None:
        """Do nothing."""


def vector(text: str) -> Vector:
    """Return the unit vector of `text`: the sum of one fixed random direction for every word."""
    words = re.findall(r"[^\W_]+", text.casefold()) or [text]
    total = np.sum([_direction(word) for word in words], axis=0)
    return (total / np.linalg.norm(total)).astype(np.float32)


def _direction(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).normal(size=DIMS)


class FakeLLM:
    """Replays scripted answers in order, raising those that are exceptions; fails on a call too many.

    Questions for categories have a script of their own, and after its end nothing has a category.
    """

    model = "fake-chat"

    def __init__(self, answers: Iterable[Any] = ()) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, str]] = []  # name, system prompt, user prompt
        self.images: list[Any] = []  # of all calls
        self.categories: list[Any] = []  # answers about categories
        self.sorted: list[
            tuple[str, str, dict[str, Any]]
        ] = []  # the calls for them: system prompt, user prompt, schema

    async def complete_json(
        self,
        system: str,
        user: str,
        *,
        schema: dict[str, Any],
        name: str,
        images: Sequence[Any] = (),
        strict: bool = True,
    ) -> Any:
        """Return the next scripted answer."""
        assert schema, "a call without a schema"
        if name == "categories":
            self.sorted.append((system, user, schema))
            answer = self.categories.pop(0) if self.categories else {"memories": [{"id": 1, "categories": []}]}
            if isinstance(answer, Exception):
                raise answer
            return answer
        self.calls.append((name, system, user))
        self.images += images
        await asyncio.sleep(0)  # a real model never answers before the loop has turned once
        assert self.answers, f"unexpected call of the model: {name}"
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def check(self) -> None:
        """Pass."""

    def describe(self) -> str:
        """Return a line for people."""
        return "fake chat model"

    async def close(self) -> None:
        """Do nothing."""


class RecordingQueue:
    """Keeps what was rung; `drain` does what a worker would do about it."""

    def __init__(self) -> None:
        self.rung: list[UUID] = []

    async def ring(self, event_id: UUID) -> None:
        """Note the ring."""
        self.rung.append(event_id)

    async def close(self) -> None:
        """Do nothing."""

    async def drain(self, rt: Any) -> list[Any]:
        """Process every due event as a worker does, one after the other in this task; return the outcomes."""
        from app.store import claims
        from worker import jobs

        self.rung.clear()
        outcomes = []
        while True:
            async with rt.db.transaction(None) as conn:
                event = await claims.claim(conn, lease_s=rt.settings.lease_s)
            if event is None:
                return outcomes
            outcomes.append(await jobs.process(rt, event))
