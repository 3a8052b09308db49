"""Let PostgreSQL take dead rows out of the pages of tables and indexes."""

from __future__ import annotations

from collections.abc import Collection

from app.store.db import Database
from app.store.erase import LOOSE, TABLES


async def tables(db: Database, names: Collection[str]) -> list[str]:
    """Vacuum and analyze those of these tables that hold rows of projects; return them. As the user that memoryd connects as, who has to
    own them; takes no lock that requests wait for. Raises: DatabaseUnavailable, SetupError.
    """
    known = [table for table in dict.fromkeys((*TABLES, *LOOSE)) if table in names]
    async with db.apart() as conn:
        for table in known:
            await conn.execute(f"VACUUM (ANALYZE, TRUNCATE false) {table}", timeout=None)
    return known
