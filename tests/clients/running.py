"""The real service as a process, and what the tests ask of it beside the clients."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
START_S = 120
EVENT_S = 60
_OURS = ("MEMORYD_", "DATABASE_URL", "REDIS_URL")


class Service:
    """One `memoryd up` on a data folder of its own, behaving as the hosted service does."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memoryd-clients-"))
        self.folder.chmod(0o711)  # the embedded servers run as a user of their own
        self.port = _free_port()
        self.output = self.folder / "output.txt"
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app", "up", "--stop-with-parent"],
                env=self._environment(),
                cwd=ROOT,
                stdout=output,
                stderr=output,
            )
        found = wait_for(self._connection, within_s=START_S, what="memoryd is ready")
        self.url: str = found["base_url"]
        self.key: str = found["api_key"]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        return kept | {
            "MEMORYD_DATA": str(self.folder / "data"),
            "MEMORYD_PORT": str(self.port),
            "MEMORYD_COMPATIBILITY": "hosted",
        }

    def _connection(self) -> dict[str, str] | None:
        assert self._process.poll() is None, self.output.read_text()
        path = self.folder / "data" / "connection.json"
        return json.loads(path.read_text()) if path.exists() else None

    def stop(self) -> None:
        """Stop it as an operator would, and remove its data."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=30)
        finally:
            self._process.kill()
            shutil.rmtree(self.folder)

    def key_of(self, project_id: str) -> str:
        """Return a new key of this project, made at the command line."""
        command = [sys.executable, "-m", "app", "keys", "create", "--project", project_id]
        done = subprocess.run(command, env=self._environment(), cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return next(word for word in done.stdout.split() if word.startswith("m0-"))

    def get(self, path: str) -> Any:
        """Return what a GET answers; None for a 404."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Token {self.key}"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise AssertionError(f"GET {path} answered {error.code}: {error.read()!r}") from error

    def finished(self, event_id: str) -> dict[str, Any]:
        """Wait until this event has succeeded, and return it."""

        def outcome() -> dict[str, Any] | None:
            event = self.get(f"/v1/event/{event_id}/")
            assert event is not None, f"no event {event_id}"
            assert event["status"] in ("PENDING", "RUNNING", "SUCCEEDED"), event
            return event if event["status"] == "SUCCEEDED" else None

        return wait_for(outcome, within_s=EVENT_S, what=f"event {event_id} has succeeded")


def wait_for(find: Callable[[], Any], *, within_s: float, what: str) -> Any:
    """Return the first true thing that `find` finds.

    Raises: AssertionError when there is none in time.
    """
    deadline = time.monotonic() + within_s
    while not (found := find()):
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.05)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
