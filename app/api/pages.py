"""A list in pages: the envelope that clients read, with absolute URLs of the neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from pydantic import BaseModel, Field

from app import errors
from app.config import Settings


class Page(BaseModel):
    """A page of a list."""

    count: int = Field(description="Length of the whole list.")
    next: str | None = Field(description="URL of the next page.")
    previous: str | None = Field(description="URL of the page before.")


def envelope(
    request: Request,
    settings: Settings,
    *,
    page: int,
    page_size: int,
    count: int,
    items: Sequence[Any],
    render: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """Return the envelope of a list.

    Raises: PageNotFound when the page is past the end; the first page of an empty list is not.
    """
    if page > 1 and (page - 1) * page_size >= count:
        raise errors.PageNotFound
    return {
        "count": count,
        "next": _url(request, settings, page + 1, page_size) if page * page_size < count else None,
        "previous": _url(request, settings, page - 1, page_size) if page > 1 else None,
        "results": [render(item) for item in items],
    }


def _url(request: Request, settings: Settings, page: int, page_size: int) -> str:
    base = (settings.public_url or f"{request.url.scheme}://{request.url.netloc}").rstrip("/")
    kept = [(key, value) for key, value in parse_qsl(request.url.query) if key not in ("page", "page_size")]
    query = urlencode([*kept, ("page", page), ("page_size", page_size)])
    return f"{base}{request.scope['path']}?{query}"
