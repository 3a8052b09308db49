"""Drives one of the Python clients: `sdk.py sync|async`.

`new` makes a client from a host and a key alone; every other call is an attribute of the newest client, in dots. An
argument {"$options": class, ...} becomes that class of the client's typed options.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import mem0
import serve


class Driver:
    """Holds the client that calls go to."""

    def __init__(self, made_by: type) -> None:
        self.made_by = made_by
        self.client: Any = None

    def answer(self, call: str, args: list, named: dict) -> Any:
        """Do what is asked; a coroutine of the async client is handed back as it is."""
        if call == "new":
            self.client = self.made_by(**named)
            return {name: getattr(self.client, name) for name in ("org_id", "project_id", "user_email")}
        if call == "forge_key":
            (getattr(self.client, "client", None) or self.client.async_client).headers["Authorization"] = (
                f"Token {args[0]}"
            )
            return None
        if call == "public":
            return [name for name in dir(self.client) if _is_method(self.client, name)] + [
                f"project.{name}" for name in dir(self.client.project) if _is_method(self.client.project, name)
            ]
        target = self.client
        for name in call.split("."):
            target = getattr(target, name)
        return target(*map(_typed, args), **{name: _typed(value) for name, value in named.items()})


def _is_method(owner: Any, name: str) -> bool:
    return not name.startswith("_") and callable(getattr(type(owner), name, None))


def _typed(value: Any) -> Any:
    if isinstance(value, dict) and "$options" in value:
        from mem0.client import types

        given = {name: member for name, member in value.items() if name != "$options"}
        return getattr(types, value["$options"])(**given)
    return value


if __name__ == "__main__":
    if sys.argv[1] == "sync":
        serve.calls(Driver(mem0.MemoryClient).answer)
    else:
        asyncio.run(serve.calls_async(Driver(mem0.AsyncMemoryClient).answer))
