"""Whether the API or the worker of this machine works: for `memoryd up` and for container health checks."""

from __future__ import annotations

import http.client
import socket
import urllib.request

from app import errors
from app.cli import addresses
from app.config import Settings
from app.store import db as databases
from app.store import workers

WORKER_SEEN_S = 30.0  #: a worker reports every few seconds; a busy database may delay it
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy does not know this machine's services


def api(settings: Settings) -> int:
    """Return 0 when the API lives, else 1."""
    return 0 if answers(addresses.local_url(settings) + "/healthz") else 1


def answers(url: str) -> bool:
    """True when a GET of `url` is answered with 200 within five seconds."""
    try:
        with _DIRECT.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, http.client.HTTPException):  # a refusal by status is an OSError too
        return False


async def worker(settings: Settings) -> int:
    """Return 0 when a worker of this machine reported lately, else 1."""
    dsn = settings.database_url.get_secret_value() if settings.database_url else ""
    return 0 if await works(dsn) else 1


async def works(dsn: str, pid: int | None = None) -> bool:
    """True when a worker of this machine (the one with process id `pid`) reported lately; False without a database."""
    me = f"{socket.gethostname()}:" + (f"{pid}:" if pid is not None else "")
    try:
        conn = await databases.connect(dsn)
    except errors.DatabaseUnavailable:
        return False
    try:
        return any(worker.id.startswith(me) for worker in await workers.alive(conn, within_s=WORKER_SEEN_S))
    finally:
        await conn.close()
