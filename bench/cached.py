"""An embedder whose vectors are kept on disk between runs, so that a change of the ranking is measured in seconds."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.model import Vector, Vectors
from app.providers.embedder import Embedder


class CachedEmbedder:
    """Another embedder's vectors, looked up by model and text."""

    def __init__(self, inner: Embedder, path: Path) -> None:
        """`path`: the file of the cache, made if absent."""
        self._inner = inner
        self._file = sqlite3.connect(path, timeout=60)
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dims(self) -> int:
        return self._inner.dims

    def _key(self, side: str, text: str) -> bytes:
        return hashlib.blake2b(f"{self.model}\0{side}\0{text}".encode(), digest_size=16).digest()

    def _find(self, key: bytes) -> bytes | None:
        row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _keep(self, made: dict[bytes, bytes]) -> None:
        self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", made.items())
        self._file.commit()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [self._key("document", text) for text in texts]
        known = {key: vector for key in keys if (vector := self._find(key)) is not None}
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
        for start in range(0, len(missing), 256):
            part = missing[start : start + 256]
            rows = await self._inner.embed([text for _, text in part])
            made = {key: row.tobytes() for (key, _), row in zip(part, rows, strict=True)}
            self._keep(made)
            known.update(made)
        return np.stack([np.frombuffer(known[key], dtype=np.float32) for key in keys])

    async def embed_query(self, text: str) -> Vector:
        key = self._key("query", text)
        known = self._find(key)
        if known is None:
            known = (await self._inner.embed_query(text)).tobytes()
            self._keep({key: known})
        return np.frombuffer(known, dtype=np.float32)

    async def check(self) -> None:
        await self._inner.check()

    def describe(self) -> str:
        return f"{self._inner.describe()}, kept on disk"

    async def close(self) -> None:
        self._file.close()
        await self._inner.close()
