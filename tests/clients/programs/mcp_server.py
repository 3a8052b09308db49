"""Starts the MCP server that people install, against a host of ours: it offers no setting for one."""

from __future__ import annotations

import functools
import os

import mem0

mem0.MemoryClient = functools.partial(mem0.MemoryClient, host=os.environ["HOST_OF_MEMORIES"])

if __name__ == "__main__":
    from mem0_mcp_server.server import main

    main()
