"""Embedding models: what the stored vectors were made with."""

from __future__ import annotations

from app.store.db import Conn

_REGISTER = "INSERT INTO embedding_models (model, dims) VALUES ($1, $2) ON CONFLICT (model) DO NOTHING"


async def register(conn: Conn, model: str, dims: int) -> None:
    """Note that vectors of `model` have `dims` dimensions. Safe to repeat; a model that is known stays as it is."""
    await conn.execute(_REGISTER, model, dims)


_STORED = "SELECT model, dims FROM embedding_models ORDER BY model"


async def stored(conn: Conn) -> dict[str, int]:
    """Return the dimensions of every model that was ever registered, by model."""
    return {row["model"]: row["dims"] for row in await conn.fetch(_STORED)}


_IN_USE = """
SELECT model FROM embedding_models e
WHERE EXISTS (SELECT FROM memory_vectors v WHERE v.model = e.model)     -- one look per model: stops at the first vector
"""


async def in_use(conn: Conn) -> set[str]:
    """Return the models that vectors of any project were made with. For the start of a process, not for requests."""
    return {row["model"] for row in await conn.fetch(_IN_USE)}
