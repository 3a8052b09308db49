"""What a project may do in a minute, and how much it may keep. Off unless the project's settings say a number."""

from __future__ import annotations

import math
import time
from typing import Literal

from app import errors
from app.model import Project
from app.runtime import Runtime
from app.store import scopes
from app.store.db import Conn

WINDOW_S = 60

Kind = Literal["adds", "searches"]


async def spend(rt: Runtime, project: Project, kind: Kind) -> None:
    """Count a request, and refuse it when the project has had its share of this minute. A refused one counts too.

    Raises: RateLimited, with what the headers say.
    """
    settings = project.settings
    limit = settings.adds_per_minute if kind == "adds" else settings.searches_per_minute
    if limit is None:
        return
    now = time.time()
    count = await rt.tally.add(f"{project.id}:{kind}", window_s=WINDOW_S, now=now)
    if count <= limit:
        return
    reset_at = (int(now // WINDOW_S) + 1) * WINDOW_S
    raise errors.RateLimited(
        f"This project may have {limit} {kind} a minute ({kind}_per_minute); try again later.",
        retry_after_s=max(1, math.ceil(reset_at - now)),
        limit=limit,
        remaining=0,
        reset_at=reset_at,
    )


async def require_room(conn: Conn, project: Project, more: int) -> None:
    """Refuse what would store `more` memories than the project may keep.

    Looked at when a request is accepted: adds that are accepted are processed whole, so that a project can come to keep
    somewhat more than its limit. Raises: QuotaExceeded.
    """
    limit = project.settings.max_memories
    if limit is None:
        return
    kept = await scopes.total(conn, project.id)
    if kept + more > limit:
        raise errors.QuotaExceeded(
            f"Memory quota exceeded: this project keeps {kept} of at most {limit} memories (max_memories). "
            "Delete some, or let an administrator raise the limit."
        )
