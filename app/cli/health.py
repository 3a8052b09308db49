"""Whether the API or the worker of this machine works, for container health checks."""

from __future__ import annotations

import http.client
import urllib.request

from app.cli import addresses
from app.config import Settings

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy would not know this machine's services


def api(settings: Settings, path: str = "/healthz") -> int:
    """Return 0 when the API answers, else 1."""
    return 0 if answers(addresses.local_url(settings) + path) else 1


def answers(url: str) -> bool:
    """True when a GET of `url` is answered with 200 within five seconds."""
    try:
        with _DIRECT.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, http.client.HTTPException):  # URLError, and with it HTTPError, is an OSError
        return False
