"""One `memoryd up` a data folder: a lock that ends with its holder, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from app import errors


@contextlib.contextmanager
def alone(data: Path, *, base_url: str) -> Iterator[None]:
    """Hold the lock of `data` and say in it who we are.

    Raises: SetupError that says which process runs there, and at which address.
    """
    path = data / "up.lock"
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.SetupError(f"memoryd already runs on {data}{_holder(file.read())}") from None
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "base_url": base_url}) + "\n")
        file.flush()
        try:
            yield
        finally:
            file.seek(0)
            file.truncate()


def _holder(text: str) -> str:
    try:
        entry = json.loads(text)
        return f": process {entry['pid']}, at {entry['base_url']}"
    except (ValueError, KeyError):  # it has the lock and did not write yet
        return ""
