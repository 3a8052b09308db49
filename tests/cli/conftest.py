"""A shell: commands run as an operator runs them, in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from app import errors
from app.cli import commands


class Shell:
    """Runs commands as an operator does, in this process."""

    def __init__(self, dsn: str) -> None:
        self._env = {"DATABASE_URL": dsn}

    async def run(self, *arguments: str, code: int = 0) -> str:
        """Return what a command prints; on failure its error."""
        runner = CliRunner()  # in a thread: a command brings an event loop of its own
        done = await asyncio.to_thread(runner.invoke, commands.cli, arguments, env=self._env)
        if code:
            assert isinstance(done.exception, errors.AppError), done.output
            return done.exception.message
        assert done.exit_code == 0, repr(done.exception)
        return done.output.strip()


@pytest.fixture
def shell(fresh_db: Any) -> Iterator[Shell]:
    """Return a shell for a new database; the commands' logs end with the test."""
    root, former = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield Shell(fresh_db.dsn)
    root.handlers[:], root.level = handlers, level
    structlog.configure(**former)
