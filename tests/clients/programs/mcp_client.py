"""Speaks MCP over stdio to the server that people install; a call is the call of a tool."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import serve
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


class ToolError(Exception):
    """The tool answered that it failed."""


async def main() -> None:
    """Open the session, then answer calls until the input ends."""
    server = StdioServerParameters(
        command=sys.executable, args=[str(Path(__file__).with_name("mcp_server.py"))], env=dict(os.environ)
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def answer(call: str, args: list, named: dict) -> Any:
            if call == "tools":
                return [tool.name for tool in (await session.list_tools()).tools]
            result = await session.call_tool(call, named)
            text = result.content[0].text
            if result.isError:
                raise ToolError(text)
            return json.loads(text)

        await serve.calls_async(answer)


if __name__ == "__main__":
    asyncio.run(main())
