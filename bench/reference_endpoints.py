"""What the service's speed is compared with: the plainest FastAPI application that parses, inserts a row and commits.

Run by `bench.speed` with uvicorn, one process, in the same minutes as the service and against the same PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
from fastapi import FastAPI
from pydantic import BaseModel

TABLE = """
CREATE TABLE IF NOT EXISTS bare (
    id uuid PRIMARY KEY, user_id text, payload jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
)
"""


class Turn(BaseModel):
    """One message."""

    role: str
    content: str


class Add(BaseModel):
    """The same JSON that the service gets."""

    messages: list[Turn]
    user_id: str | None = None
    metadata: dict[str, Any] | None = None


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["REFERENCE_DSN"], min_size=10, max_size=10) as pool:
        await pool.execute(TABLE)
        app.state.pool = pool
        yield


app = FastAPI(lifespan=_lifespan)


@app.get("/hello")
async def hello() -> dict[str, str]:
    """Answer."""
    return {"status": "ok"}


@app.post("/insert")
async def insert(body: Add) -> dict[str, str]:
    """Insert one row and commit."""
    row_id = uuid4()
    async with app.state.pool.acquire() as conn:
        await conn.execute(
            "INSERT INTO bare (id, user_id, payload) VALUES ($1, $2, $3)",
            row_id,
            body.user_id,
            orjson.dumps(body.model_dump()).decode(),
        )
    return {"message": "stored", "status": "PENDING", "event_id": str(row_id)}
