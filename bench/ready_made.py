"""Ready-made vectors: an embedder that computes nothing, for measurements whose subject is everything else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from app.model import Vector, Vectors

DIMS = 384
_WORD = re.compile(r"\w+")
_NEARNESS = 0.85  # cosine of a question and of the memory that it means


class ReadyMade:
    """Vectors of bags of words: each word has its own direction, and questions can be told what they mean."""

    model = "ready-made"
    dims = DIMS

    def __init__(self) -> None:
        self._words: dict[str, Vector] = {}
        self._means: dict[str, str] = {}

    def mean(self, question: str, text: str) -> None:
        """Let a question be near a text with which it shares no word."""
        self._means[question] = text

    def vector(self, text: str) -> Vector:
        """Return a unit vector, float32[384]; equal texts have equal ones."""
        words = [self._word(word) for word in _WORD.findall(text.lower())] or [self._word("")]
        return _unit(np.sum(words, axis=0) + 0.5 * _direction(text))

    def _word(self, word: str) -> Vector:
        found = self._words.get(word)
        if found is None:
            found = self._words[word] = _direction(word)
        return found

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.vector(text) for text in texts])

    async def embed_query(self, text: str) -> Vector:
        meant = self._means.get(text)
        if meant is None:
            return self.vector(text)
        noise = (1 - _NEARNESS**2) ** 0.5
        return _unit(_NEARNESS * self.vector(meant) + noise * _direction(text))

    async def check(self) -> None:
        """Nothing can be wrong with it."""

    def describe(self) -> str:
        return "ready-made vectors"

    async def close(self) -> None:
        """Nothing is open."""


def _direction(text: str) -> Vector:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    return _unit(np.random.default_rng(seed).standard_normal(DIMS, dtype=np.float32))


def _unit(vector: Vector) -> Vector:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
