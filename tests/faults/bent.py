"""The service with a fault built in: it dies at a named point, lives at another hour, or is lied to about names.

`python -m tests.faults.bent serve|worker`. The product has no switch for any of this: what bends it is here, wraps its
functions from outside, and is told by files in the folder `FAULTS_BEND`. A process that dies is started again at once
by its nurse, which has imported everything before and only forks.

    die      {"point": "finished", "nth": 2}: die by SIGKILL when the point is passed for the nth time, once
    clock    seconds to add to the wall clock, now
    names    {"name.example": [["93.184.215.14"], ["127.0.0.1"]]}: answers of the resolver in turn, the last for ever
    sockets  written: every address that a connection was made to; none leaves this machine
"""

from __future__ import annotations

import ctypes
import datetime as times
import functools
import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("FAULTS_BEND") or ".")

#: Where a process can die: module, function or method, and whether before it or after it.
POINTS: dict[str, tuple[str, str, str]] = {
    # a worker's add
    "claimed": ("app.store.claims", "claim", "after"),
    "asking the model": ("app.providers.llm", "ChatModel.complete_json", "before"),
    "answered by the model": ("app.providers.llm", "ChatModel.complete_json", "after"),
    "checkpoint kept": ("app.store.claims", "save_checkpoint", "after"),
    "embedding": ("app.providers.embedder", "EndpointEmbedder.embed", "before"),
    "embedded": ("app.providers.embedder", "EndpointEmbedder.embed", "after"),
    "event locked": ("app.store.claims", "lock_for_finish", "after"),
    "messages written": ("app.store.messages", "insert_many", "after"),
    "memories written": ("app.store.memories", "insert_many", "after"),
    "outbox written": ("app.store.announcements", "insert", "after"),
    "finished": ("app.store.claims", "finish", "after"),
    "processed": ("app.domain.add", "process", "after"),
    "renewed": ("app.store.claims", "renew", "after"),
    "put off": ("app.store.claims", "retry_at", "after"),
    "reclaimed": ("app.store.claims", "reclaim_expired", "after"),
    # a delivery
    "delivery claimed": ("app.store.deliveries", "claim", "after"),
    "delivery sent": ("app.providers.outbound", "request", "after"),
    "delivery settled": ("app.store.deliveries", "settle", "after"),
    # the API, and both
    "event written": ("app.store.events", "insert", "after"),
    "rung": ("app.queue", "ArqQueue.ring", "after"),
    "committing": ("asyncpg.transaction", "Transaction.__aexit__", "before"),
    "committed": ("asyncpg.transaction", "Transaction.__aexit__", "after"),
}


# Death


_passed: Counter[str] = Counter()


def _pass(point: str) -> None:
    """Die here if it is time."""
    plan = FOLDER / "die"
    try:
        told = json.loads(plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        _passed.clear()
        return
    if told["point"] != point:
        return
    _passed[point] += 1
    if _passed[point] >= told["nth"]:
        plan.rename(FOLDER / "died")
        os.kill(os.getpid(), signal.SIGKILL)


def _wrapped(point: str, function: Callable[..., Any], when: str) -> Callable[..., Any]:
    @functools.wraps(function)
    async def passing(*args: Any, **options: Any) -> Any:
        if when == "before":
            _pass(point)
        found = await function(*args, **options)
        # A claim that found nothing, or a sweep that had nothing to do, is no point of anybody's work.
        if when == "after" and (point not in ("claimed", "delivery claimed", "reclaimed") or found):
            _pass(point)
        return found

    return passing


def _lay_points() -> None:
    import importlib

    for point, (module, path, when) in POINTS.items():
        owner: Any = importlib.import_module(module)
        *between, name = path.split(".")
        for step in between:
            owner = getattr(owner, step)
        setattr(owner, name, _wrapped(point, getattr(owner, name), when))
    from app.domain import add
    from worker import jobs

    jobs.VERBS = {**jobs.VERBS, "ADD": add.process}  # the table was made before


# Another hour


def _shift_s() -> float:
    try:
        return float((FOLDER / "clock").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0.0


def _lie_about_time() -> None:
    """Shift whatever Python code reads from the wall clock. Before anything else is imported."""
    real_time, real_ns, real = time.time, time.time_ns, times.datetime
    time.time = lambda: real_time() + _shift_s()
    time.time_ns = lambda: real_ns() + int(_shift_s() * 1e9)

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

    class Shifted(real, metaclass=Meta):
        def __new__(cls, *args: Any, **options: Any) -> times.datetime:  # plain ones, which everybody can write down
            return real(*args, **options)

        @classmethod
        def now(cls, tz: times.tzinfo | None = None) -> times.datetime:
            return real.now(tz) + times.timedelta(seconds=_shift_s())

        @classmethod
        def utcnow(cls) -> times.datetime:
            return cls.now(times.UTC).replace(tzinfo=None)

    times.datetime = Shifted  # type: ignore[misc]


# Names and sockets


def _lie_about_names() -> None:
    real, asked = socket.getaddrinfo, Counter[str]()

    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        try:
            answers = json.loads((FOLDER / "names").read_text(encoding="utf-8")).get(name)
        except (OSError, ValueError):
            answers = None
        if answers is None:
            return real(host, port, *args, **options)
        found = answers[min(asked[name], len(answers) - 1)]
        asked[name] += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port or 0))) for address in found]

    socket.getaddrinfo = getaddrinfo


def _watch_sockets() -> None:
    def heard(event: str, args: tuple[Any, ...]) -> None:
        if event != "socket.connect" or not isinstance(args[1], tuple):
            return
        host, port = args[1][:2]
        with (FOLDER / "sockets").open("a", encoding="utf-8") as file:
            file.write(f"{host} {port}\n")
        if not str(host).startswith("127."):
            raise ConnectionRefusedError(111, "no test leaves this machine")

    sys.addaudithook(heard)


# Nurse and child


def _child(command: str) -> int:
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG: not without the nurse
    from app import __main__ as door

    sys.argv = ["memoryd", command]
    try:
        door.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def main() -> int:
    """Import everything, then run the command in a child, again whenever it was killed."""
    command = sys.argv[1]
    if (FOLDER / "clock").exists():
        _lie_about_time()
    import app.api.server
    import app.cli.commands  # noqa: F401
    from app.domain import lexemes, link

    for load in (lexemes.analyse, link.entities):  # dictionaries, for seconds, which every child would load anew
        load("Alice drank tea with Bob Brown in 北京, 我住在上海。")
    _lay_points()
    _lie_about_names()
    _watch_sockets()
    child = 0
    stopping = False

    def hand_on(number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        os.kill(child, number)

    while True:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        child = os.fork()
        if child == 0:
            os._exit(_child(command))
        signal.signal(signal.SIGTERM, hand_on)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code >= 0 or stopping:
            return code


if __name__ == "__main__":
    sys.exit(main())
