"""The line protocol between a test and the client that it drives, for programs in Python.

A line of JSON comes in: {"call": name, "args": [...], "named": {...}}. A line goes out: {"returned": value}, or
{"raised": {"class", "message", and what else the exception carries}}.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

_CARRIED = ("error_code", "details", "suggestion", "debug_info")  # what the clients' own exceptions bear


def calls(answer: Callable[[str, list, dict], Any]) -> None:
    """Answer calls until the input ends. What the client prints goes to stderr, so that the output holds answers alone."""
    for ask, reply in _lines():
        try:
            reply({"returned": answer(ask["call"], ask["args"], ask["named"])})
        except Exception as error:  # noqa: BLE001  # reporting it is the program's purpose
            reply({"raised": _told(error)})


async def calls_async(answer: Callable[[str, list, dict], Any]) -> None:
    """Answer calls until the input ends; an answer that is awaitable is awaited. One call at a time, as `calls` does."""
    for ask, reply in _lines():
        try:
            value = answer(ask["call"], ask["args"], ask["named"])
            reply({"returned": await value if inspect.isawaitable(value) else value})
        except Exception as error:  # noqa: BLE001  # reporting it is the program's purpose
            reply({"raised": _told(error)})


def _lines() -> Iterator[tuple[dict, Callable[[dict], None]]]:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(value: dict) -> None:
        out.write(json.dumps(value, default=str) + "\n")
        out.flush()

    for line in sys.stdin:
        yield json.loads(line), reply


def _told(error: BaseException) -> dict:
    told = {"class": type(error).__name__, "message": str(error)}
    return told | {name: getattr(error, name) for name in _CARRIED if hasattr(error, name)}
