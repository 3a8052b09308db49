"""Builds the approximate indexes that searches wished for, and drops those of what has become small again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app import log
from app.runtime import Runtime
from app.store import near, vector_indexes
from app.store.db import Conn
from app.store.vector_indexes import VectorIndex

LEASE_S = 600.0  #: after it another worker builds what this one has not finished, unless it has said that it still does
AGAIN_S = 86_400.0  #: until a build that the database did not allow is tried again

#: An index goes when its scope has this share of the rows that are compared: not at the border, where it would come and go.
_KEPT_SHARE = 0.5

_log = log.get("indexing")


async def tend(rt: Runtime) -> bool:
    """Drop what nobody needs and build one index that was wished for; False: there was none.

    Takes minutes for a large scope. Safe to cancel and to run again: what was half-built is dropped by the next try.
    Raises: DatabaseUnavailable.
    """
    async with rt.db.acquire(None) as conn:
        doomed = await vector_indexes.retire(conn, below=int(_KEPT_SHARE * near.EXACT))
        index = await vector_indexes.claim(conn, lease_s=LEASE_S)
    if doomed or index:
        async with rt.db.apart() as owner:
            for name in doomed:
                await vector_indexes.drop(owner, name)
            if index:
                await _build(rt, owner, index)
    return index is not None


async def _build(rt: Runtime, owner: Conn, index: VectorIndex) -> None:
    _log.info("index.building", index=index.name, project_id=index.project_id)
    async with _leased(rt, index):
        refused = await vector_indexes.build(owner, index)
    async with rt.db.acquire(None) as conn:
        if refused is None:
            await vector_indexes.built(conn, index)
            _log.info("index.built", index=index.name)
        else:
            await vector_indexes.renew(conn, index, lease_s=AGAIN_S, refused=refused)
            _log.warning("index.refused", index=index.name, reason=refused)


@asynccontextmanager
async def _leased(rt: Runtime, index: VectorIndex) -> AsyncIterator[None]:
    """Keep the lease while the block runs; give it back if the block is left by an error or a stop."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(LEASE_S / 3)
            async with rt.db.acquire(None) as conn:
                await vector_indexes.renew(conn, index, lease_s=LEASE_S)

    renewing = asyncio.create_task(renew())
    try:
        yield
    except BaseException:
        async with rt.db.acquire(None) as conn:
            await vector_indexes.renew(conn, index, lease_s=0.0)
        raise
    finally:
        renewing.cancel()
