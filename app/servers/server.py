"""What both embedded servers have in common: a folder, a password, a port, a start that waits and a stop."""

from __future__ import annotations

import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from app import errors
from app.servers import process


class Server(ABC):
    """One server whose everything is in `folder`: `data/`, `password` and, while it runs, `port`."""

    name: ClassVar[str]  #: for people and logs
    death_signal: ClassVar[int]  #: ends it cleanly; also what it gets when we die
    hasty_signal: ClassVar[int] = signal.SIGKILL  #: ends it at once
    port_taken: ClassVar[str]  #: what its log says when another process has the port

    def __init__(
        self,
        folder: Path,
        *,
        user: str = "nobody",
        port: int | None = None,
        log: Path | None = None,
        timeout_s: float = 180,
        tick: Callable[[], None] = process.no_tick,
    ) -> None:
        """`user`: who runs it when we are root. `port`: None for a free one. `tick` may raise to give up a wait."""
        self.folder = folder
        self.port = port
        self.who: process.Account | None = None
        self._user = user
        self._timeout_s = timeout_s
        self._tick = tick
        self.child = process.Child(
            self.name,
            log or folder / f"{self.name}.log",
            death_signal=self.death_signal,
            hasty_signal=self.hasty_signal,
        )

    @property
    def data(self) -> Path:
        """The server's own data folder."""
        return self.folder / "data"

    @property
    def password(self) -> str:
        """Made at the first start; only we can read its file."""
        return process.password(self.folder / "password")

    def start(self) -> None:
        """Start and wait until it answers; makes everything that is missing.

        Raises: SetupError with one line that says what to do.
        """
        process.make_folder(self.folder)
        self.who = process.account(self._user)
        self.prepare()
        # A port that was free a moment ago may be taken by now; only an own choice can be made again.
        for _ in range(1 if self.port else 5):
            port = self.port or process.free_port(number(self._port_file))
            process.write_private(self._port_file, f"{port}\n")
            self._start_at(port)
            if self.child.alive():
                return
            if self.port_taken not in process.tail(self.child.log, 12):
                break
        raise errors.SetupError(
            f"{self.name} ended at its start (exit code {self.child.code}): {process.tail(self.child.log)}; see {self.child.log}"
        )

    def _start_at(self, port: int) -> None:
        chosen, self.port = self.port, port
        self.spawn()
        try:
            done = process.wait_until(
                lambda: not self.child.alive() or self.ready(), timeout_s=self._timeout_s, tick=self._tick
            )
        except BaseException:
            self.stop()
            raise
        if not done:
            self.stop()
            raise errors.SetupError(f"{self.name} is not ready after {self._timeout_s:.0f} s; see {self.child.log}")
        if not self.child.alive():
            self.port = chosen

    def stop(self, *, timeout_s: float = 60, hasten: Callable[[], bool] = lambda: False) -> None:
        """End it cleanly, or at once when `hasten` says so. Safe to repeat."""
        self.child.end(self.death_signal, timeout_s=timeout_s, hasten=hasten)
        self._port_file.unlink(missing_ok=True)

    @property
    def _port_file(self) -> Path:
        return self.folder / "port"

    @abstractmethod
    def prepare(self) -> None:
        """Find the program and make the data folder."""

    @abstractmethod
    def spawn(self) -> None:
        """Start the process at `port` and return at once; by itself for another start after a crash."""

    @abstractmethod
    def ready(self) -> bool:
        """True when it answers."""


def running_port(folder: Path) -> int | None:
    """Return the port of the server that runs in `folder`, or None when none answers there."""
    port = number(folder / "port")
    if port is None:
        return None
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return port
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return the number on the first line of a file; None when there is no such file or number."""
    try:
        return int(path.read_text(encoding="utf-8").split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
