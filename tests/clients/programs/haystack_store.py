"""Drives the memory store of Haystack. It takes no host of its own, so the client below it is given one."""

from __future__ import annotations

import functools
from typing import Any

import mem0
import serve


class Driver:
    """Holds the store that calls go to, and speaks for its chat messages."""

    def __init__(self) -> None:
        self.store: Any = None

    def answer(self, call: str, args: list, named: dict) -> Any:
        """Do what is asked; chat messages go in as (role, text) and come out as objects of text and meta."""
        from haystack.utils import Secret
        from haystack_integrations.memory_stores.mem0 import Mem0MemoryStore, memory_store

        if call == "new":
            memory_store.MemoryClient = functools.partial(mem0.MemoryClient, host=named["host"])
            self.store = Mem0MemoryStore(api_key=Secret.from_token(named["api_key"]))
            self.store.warm_up()
            return None
        if "messages" in named:
            named["messages"] = [_message(role, text) for role, text in named["messages"]]
        value = (
            self._component(call, named) if call in ("write", "retrieve") else getattr(self.store, call)(*args, **named)
        )
        return _plain(value)

    def _component(self, call: str, named: dict) -> Any:
        from haystack_integrations.components.retrievers.mem0 import Mem0MemoryRetriever
        from haystack_integrations.components.writers.mem0 import Mem0MemoryWriter

        made_by = Mem0MemoryWriter if call == "write" else Mem0MemoryRetriever
        return made_by(memory_store=self.store).run(**named)


def _message(role: str, text: str) -> Any:
    from haystack.dataclasses import ChatMessage

    return ChatMessage.from_user(text) if role == "user" else ChatMessage.from_assistant(text)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return {"text": value.text, "meta": value.meta} if hasattr(value, "text") else value


if __name__ == "__main__":
    serve.calls(Driver().answer)
