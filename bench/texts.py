"""Made-up memories for measurements of speed: words of a small language, as frequent as words are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.bulk import Row

_SYLLABLES = (
    "ba be ca co da du fa fi ga go ha hi ja ka ko la le ma mi na no pa pe ra ri sa so ta ti va we ya zu".split()
)
_BEGAN = datetime(2025, 1, 1, tzinfo=UTC)


def vocabulary(size: int = 5000, *, seed: int = 1) -> list[str]:
    """Return distinct words of two to four syllables, the commonest first."""
    rng = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))] = None
    return list(words)


def sentences(count: int, *, seed: int) -> Iterator[str]:
    """Yield texts of 6 to 20 words; the word of rank n is as frequent as 1/n (Zipf)."""
    rng, words = random.Random(seed), vocabulary()
    weights = [1 / (rank + 1) for rank in range(len(words))]
    for _ in range(count):
        yield " ".join(rng.choices(words, weights, k=rng.randint(6, 20)))


def rows(user_id: str, count: int, *, seed: int) -> Iterator[Row]:
    """Yield the memories of a user, an hour apart."""
    for number, text in enumerate(sentences(count, seed=seed)):
        yield Row(user_id, text, {"n": number % 10}, _BEGAN + timedelta(hours=number))
