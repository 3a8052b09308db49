"""Drives the memory of the Agent Framework: what the framework itself calls before and after an agent's run."""

from __future__ import annotations

import asyncio
from typing import Any

import serve


class Driver:
    """Holds the provider that calls go to."""

    def __init__(self) -> None:
        self.client: Any = None

    def answer(self, call: str, args: list, named: dict) -> Any:
        """`before_run` returns the text that the provider adds to the agent's context; `after_run` stores a turn."""
        if call == "new":
            from mem0 import AsyncMemoryClient

            self.client = AsyncMemoryClient(**named)
            return None
        return getattr(self, call)(**named)

    async def before_run(self, said: str, scope: dict) -> str:
        """Return what is remembered for this turn, as the model would see it."""
        context = _context(said)
        await self._provider(scope).before_run(agent=None, session=None, context=context, state={})
        return "\n".join(message.text for messages in context.context_messages.values() for message in messages)

    async def after_run(self, said: str, answered: str, scope: dict) -> None:
        """Hand the turn over to be remembered."""
        from agent_framework import AgentResponse, Message

        context = _context(said)
        context._response = AgentResponse(messages=[Message(role="assistant", contents=[answered])])
        await self._provider(scope).after_run(agent=None, session=None, context=context, state={})

    def _provider(self, scope: dict) -> Any:
        from agent_framework_mem0 import Mem0ContextProvider

        return Mem0ContextProvider(mem0_client=self.client, **scope)


def _context(said: str) -> Any:
    from agent_framework import Message
    from agent_framework._sessions import SessionContext

    return SessionContext(input_messages=[Message(role="user", contents=[said])])


if __name__ == "__main__":
    asyncio.run(serve.calls_async(Driver().answer))
