"""Released clients as processes of their own, in environments of their own, driven call by call."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
CACHE = ROOT / ".clients"
MODULES = CACHE / "npm" / "node_modules"
CALL_S = 90


class Raised(Exception):
    """The client raised. `kind` is the name of the exception's class."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(f"{told['class']}: {told['message']}")
        self.kind: str = told["class"]
        self.message: Any = told["message"]
        self.error_code: str | None = told.get("error_code", told.get("errorCode"))
        self.details: Any = told.get("details")


class Client:
    """A running program under programs/. Its calls read as the client's own: `client.project.get(fields=["decay"])`."""

    def __init__(self, command: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._log = folder / "stderr.txt"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                env=clean_environment(folder) | environment,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def __getattr__(self, name: str) -> Call:
        return Call(self, name)

    def ask(self, call: str, args: tuple[Any, ...] = (), named: dict[str, Any] | None = None) -> Any:
        """Return what the client returned.

        Raises: Raised when the client raised.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"call": call, "args": args, "named": named or {}})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], CALL_S)
        assert ready, f"no answer to {call} within {CALL_S} s\n{self._log.read_text()}"
        answer = self._process.stdout.readline()
        assert answer, f"the client ended at {call}\n{self._log.read_text()}"
        reply = json.loads(answer)
        if "raised" in reply:
            raise Raised(reply["raised"])
        return reply["returned"]

    def leave(self) -> None:
        """Tell the program that there is no more to do, and do not wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self) -> None:
        """See the program end after `leave`; fail if it tried to reach anything but this machine."""
        assert self._process.stdout is not None
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:  # some clients leave threads behind that wait for the network
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        assert strangers(self._folder) == []


class Call:
    """The name of a call, in dots, until it is called."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def __getattr__(self, name: str) -> Call:
        return Call(self._client, f"{self._name}.{name}")

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._client.ask(self._name, args, named)


def clean_environment(folder: Path) -> dict[str, str]:
    """Return an environment without our settings or proxies, telemetry off, the network closed, `folder` as the home."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "false",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "STRANGERS": str(folder / "strangers.txt"),
        "PYTHONPATH": str(PROGRAMS / "guard"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NODE_OPTIONS": f"--require {PROGRAMS / 'guard' / 'guard.cjs'}",
        "MODULES": f"{MODULES}/",
    }


def strangers(folder: Path) -> list[str]:
    """Return the hosts other than this machine that a client tried to reach."""
    path = folder / "strangers.txt"
    return path.read_text().splitlines() if path.exists() else []


def python_of(name: str) -> Path:
    """Return the interpreter of the environment that was made from locks/`name`.lock."""
    path = CACHE / f"{name}-{sys.version_info.major}.{sys.version_info.minor}" / "bin" / "python"
    assert path.exists(), f"{path} is missing: `make test-clients` makes it"
    return path
