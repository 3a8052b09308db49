"""JSON, UUIDs and vectors of the database as Python values."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from pgvector import HalfVector

_HALFVEC_SCHEMA = """
SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'
"""


async def register(conn: asyncpg.Connection) -> None:
    """Let a new connection read and write these types."""
    await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=_jsonb, decoder=_from_jsonb, format="binary")
    await conn.set_type_codec("json", schema="pg_catalog", encoder=_json, decoder=orjson.loads, format="binary")
    # The driver's own class of UUID is a subclass, which orjson refuses.
    await conn.set_type_codec("uuid", schema="pg_catalog", encoder=_uuid, decoder=_from_uuid, format="binary")
    schema = await conn.fetchval(_HALFVEC_SCHEMA)
    if schema is not None:  # before the first migration there is no such type
        await conn.set_type_codec(
            "halfvec", schema=schema, encoder=_halfvec, decoder=HalfVector.from_binary, format="binary"
        )


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers beyond 64 bits, which PostgreSQL holds and orjson does not write
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str).encode()


def _jsonb(value: Any) -> bytes:
    return b"\x01" + _json(value)  # the version of the binary format


def _from_jsonb(data: bytes) -> Any:
    return orjson.loads(data[1:])


def _uuid(value: UUID | str) -> bytes:
    return (value if isinstance(value, UUID) else UUID(value)).bytes


def _from_uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


def _halfvec(value: Any) -> bytes:
    encoded: bytes = (value if isinstance(value, HalfVector) else HalfVector(value)).to_binary()
    return encoded
