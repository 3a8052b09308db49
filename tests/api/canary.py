"""A canary: one rare text in every field that a client fills, and a look for it in all that the database holds."""

from __future__ import annotations

import base64
from typing import Any
from uuid import uuid4

from app.store.db import Conn

_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY 1
"""


class Canary:
    """A rare text, and every form in which it may be kept."""

    def __init__(self) -> None:
        self.seed = "Q" + uuid4().hex[:15]

    def __call__(self, field: str) -> str:
        """Return the canary of a field."""
        return f"{self.seed}{field}"

    @property
    def forms(self) -> tuple[str, ...]:
        """Plain, as PostgreSQL shows bytes, and inside base64 at each of the three places where it may begin."""
        plain = self.seed.encode()
        coded = [base64.b64encode(b"x" * shift + plain).decode()[4:-4] for shift in range(3)]
        return (self.seed, plain.hex(), *coded)

    def is_in(self, text: str) -> bool:
        """Whether `text` holds it, in any form."""
        return any(form.lower() in text.lower() for form in self.forms)


async def rows(conn: Conn) -> dict[str, list[str]]:
    """Return every row of every table of every schema, as text, by the table's name; large objects too."""
    found = {}
    for table in await conn.fetch(_TABLES):
        # Each column as text: a type of ours may have no text form inside a row.
        found[table["relname"]] = [row[0] for row in await conn.fetch(f"SELECT t::text FROM {table['name']} t")]
    objects = await conn.fetchval("SELECT count(*) FROM pg_largeobject_metadata")
    assert objects == 0, "a large object: look into it too"
    return found


async def found_in(conn: Conn, canary: Canary) -> dict[str, list[str]]:
    """Return the rows that hold the canary, by table."""
    held = {table: [row for row in kept if canary.is_in(row)] for table, kept in (await rows(conn)).items()}
    return {table: kept for table, kept in held.items() if kept}


def strings(value: Any) -> str:
    """Return what an answer holds, as one text."""
    return value if isinstance(value, str) else str(value)
