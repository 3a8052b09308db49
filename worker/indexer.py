"""Looks for approximate indexes to build, beside the work on events."""

from __future__ import annotations

import asyncio

from app import errors, log
from app.domain import indexing
from app.runtime import Runtime

EVERY_S = 30.0  #: between two looks

_log = log.get("worker")


async def run(rt: Runtime) -> None:
    """Build what searches wish for, one index after the other, for ever."""
    while True:
        try:
            built = await indexing.tend(rt)
        except errors.DatabaseUnavailable as error:
            _log.warning("indexing.waits", error=error.code)
            built = False
        if not built:
            await asyncio.sleep(EVERY_S)
