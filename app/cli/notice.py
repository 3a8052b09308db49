"""What `memoryd up` tells people once everything runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping

from app import config
from app.config import Settings

_FACT = {
    "user_id": "alice",
    "messages": [{"role": "user", "content": "I moved to Lisbon, and I am allergic to peanuts."}],
}
_QUESTION = {"query": "What is Alice allergic to?", "filters": {"user_id": "alice"}}


def ready(settings: Settings, *, url: str, secret: str, first: bool) -> str:
    """Return the lines of a finished start. `secret` works for the curl lines; `first`: it is the key to keep."""
    another = f"{command(settings)} keys create"
    known = f"{secret}  (shown only this once; keep it)" if first else f"this makes one: {another}"
    lines = [
        "",
        "memoryd is ready.",
        "",
        f"  Base URL    {url}",
        f"  Data        {settings.data}",
        f"  Extractor   {extractor(settings)}",
        f"  Embedder    {embedder(settings)}",
        f"  API key     {known}",
        "",
        "Tell it something:",
        "",
        f"  {_curl(url, '/v3/memories/add/', secret, _FACT)}",
        "",
        "Ask, a moment later:",
        "",
        f"  {_curl(url, '/v3/memories/search/', secret, _QUESTION)}",
        "",
    ]
    if not first:
        lines[-1:] = ["", "The key in these lines ends with the next start; programs use one of their own.", ""]
    return "\n".join(lines)


def command(settings: Settings) -> str:
    """Return how to call memoryd again, from the same folder, for the same data."""
    program = shlex.quote(sys.argv[0])
    if program.endswith(".py"):  # `python -m app`
        program = f"{shlex.quote(sys.executable)} -m app"
    if settings.data == config.default_data():
        return program
    return f"MEMORYD_DATA={shlex.quote(str(settings.data))} {program}"


def extractor(settings: Settings) -> str:
    """Return what finds the facts, and how to have a better one."""
    if settings.llm_model:
        return f"{settings.llm_model} at {settings.llm_base_url or 'no address: set MEMORYD_LLM_BASE_URL'}"
    return (
        "rules, English and Chinese; a model does better:\n"
        "              MEMORYD_LLM_BASE_URL=http://127.0.0.1:11434/v1 MEMORYD_LLM_MODEL=qwen3:8b (and MEMORYD_LLM_API_KEY)"
    )


def embedder(settings: Settings) -> str:
    """Return what makes the vectors, and how to have another."""
    if settings.embedder_base_url:
        return f"{settings.embedder_model} at {settings.embedder_base_url}"
    return (
        "multilingual-e5-small, embedded; another, before the first memory:\n"
        "              MEMORYD_EMBEDDER_BASE_URL=… MEMORYD_EMBEDDER_MODEL=…"
    )


def _curl(url: str, path: str, secret: str, body: Mapping[str, object]) -> str:
    data = json.dumps(body, ensure_ascii=False)
    return f"curl -s {url}{path} -H 'Authorization: Token {secret}' -H 'Content-Type: application/json' -d '{data}'"
