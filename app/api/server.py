"""Serve the HTTP door: uvicorn, one process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from uvicorn.loops.auto import auto_loop_factory

from app import errors, runtime
from app.api import create_app, heads
from app.config import Settings
from app.domain import warm

GRACE_S = 10  #: seconds that running requests have at the end
#: A thread that computes gives way to the loop after so long; Python's own 5 ms, a few times in each request, were most of
#: what a large request cost the others.
SWITCH_S = 0.001
KEEP_ALIVE_S = 30  #: seconds that an idle connection stays open


def configured(app: object, settings: Settings) -> uvicorn.Config:
    """Return how the API is served; `app` is what `create_app` returned."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # uvicorn spells the ASGI types in a way of its own
        host=settings.host,
        port=settings.port,
        workers=1,
        http=heads.Protocol,
        lifespan="on",
        log_config=None,  # our own lines
        access_log=False,
        proxy_headers=False,  # whoever connects could say what they like
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,  # otherwise one idle connection holds the process
        timeout_keep_alive=KEEP_ALIVE_S,
    )


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `_serve`: uvicorn would raise them again at the end, before the runtime is closed."""
        yield


def run(settings: Settings) -> int:
    """Serve until the process is told to stop; return the exit code.

    Raises: SetupError, DatabaseUnavailable when the runtime cannot be opened; SetupError when the port is taken.
    """
    sys.setswitchinterval(SWITCH_S)
    with asyncio.Runner(
        loop_factory=auto_loop_factory()
    ) as runner:  # uvloop where there is one: a third less of a core
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    async with runtime.open_runtime(settings, statement_s=settings.db_statement_s) as opened:
        await warm.up(opened)
        server = _Server(configured(create_app(opened), settings))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.handle_exit, number, None)  # the second SIGINT does not wait
        try:
            await server.serve()
        except SystemExit:  # uvicorn's way to say that it cannot listen; the log has said why
            raise errors.SetupError(
                f"cannot listen on {settings.host}, port {settings.port}; MEMORYD_HOST and MEMORYD_PORT choose another place"
            ) from None
        return 0 if server.started else 1
