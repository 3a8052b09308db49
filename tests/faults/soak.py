"""Mixed load for some minutes, a random fault every ten seconds, then the checker. `make soak`; MEMORYD_SEED replays the faults."""

from __future__ import annotations

import argparse
import os
import random
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.faults import faults
from tests.faults.history import PASSING, History
from tests.faults.world import Program, World

FAULT_EVERY_S = 10.0
PAUSE_S = 0.15  # between two requests of one client
SETTLE_S = 120.0
#: End against minute one. The memory of a process also holds caches that fill; a leak is seen in the long run.
LIMITS = {"MiB": (1.05, 6.0), "files": (1.0, 8.0), "connections": (1.0, 8.0)}  # ratio, and what is added to it

Sizes = dict[str, dict[str, float]]


class Load:
    """Clients that add, search, list, import and delete until told to stop."""

    def __init__(self, world: World) -> None:
        self.world, self.history = world, History(world, users=12)
        self.said: Counter[str] = Counter()  # what searches and the like were answered
        self.deleted: list[str] = []
        self._stop = threading.Event()
        self._number = 0
        self._lock = threading.Lock()
        work = (self._add, self._add, self._search, self._list, self._import_and_delete)
        self._threads = [threading.Thread(target=self._loop, args=(one,)) for one in work]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _loop(self, work: Callable[[httpx.Client], None]) -> None:
        with self.world.client() as client:
            while not self._stop.wait(PAUSE_S):
                try:
                    work(client)
                except httpx.TransportError as error:
                    self.said[type(error).__name__] += 1

    def _add(self, _client: httpx.Client) -> None:
        with self._lock:
            self._number += 1
            number = self._number
        self.history.add(number, patience_s=90)

    def _search(self, client: httpx.Client) -> None:
        body = {"query": "what was said", "filters": {"user_id": f"{self.history.name}-2"}}
        self.said[str(client.post("/v3/memories/search/", json=body).status_code)] += 1

    def _list(self, client: httpx.Client) -> None:
        self.said[str(client.post("/v3/memories/", json={"filters": {"user_id": "*"}}).status_code)] += 1

    def _import_and_delete(self, client: httpx.Client) -> None:
        text = f"raw {secrets.token_hex(8)}"
        made = client.post("/v3/memories/add/", json={"messages": text, "user_id": "passing", "infer": False})
        self.said[str(made.status_code)] += 1
        if made.status_code != 200:
            return
        memory_id = made.json()["results"][0]["id"]
        gone = client.delete(f"/v1/memories/{memory_id}/")
        self.said[str(gone.status_code)] += 1
        if gone.status_code == 200:
            self.deleted.append(memory_id)


def sizes(world: World) -> Sizes:
    """Return what each process holds: memory, open files; and the database's connections of ours."""
    found: Sizes = {"memoryd": {"connections": float(world.value(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memoryd'"))}}  # fmt: skip
    for program in (world.api, world.workers[-1]):
        found[program.name] = {
            "MiB": _rss_mib(program),
            "files": float(len(os.listdir(f"/proc/{program.child.pid}/fd"))),
        }
    return found


def _rss_mib(program: Program) -> float:
    text = Path(f"/proc/{program.child.pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def compare(before: Sizes, after: Sizes) -> list[str]:
    """Print a table; return what has grown too much."""
    grown = []
    print(f"{'process':<10} {'what':<12} {'minute one':>10} {'end':>10} {'ratio':>6}")
    for name, values in before.items():
        for what, first in values.items():
            last, (ratio, more) = after[name][what], LIMITS[what]
            print(f"{name:<10} {what:<12} {first:>10.0f} {last:>10.0f} {last / max(first, 1):>6.2f}")
            if last > first * ratio + more:
                grown.append(f"{name}: {what} grew from {first:.0f} to {last:.0f}")
    return grown


def soak(world: World, *, seconds: float, dice: random.Random) -> list[str]:
    """Run load and faults; return what is wrong in the end."""
    load, began, before = Load(world), time.monotonic(), None
    load.start()
    try:
        while (passed := time.monotonic() - began) < seconds:
            if before is None and passed >= min(60.0, seconds / 3):
                before = sizes(world)
            fault = dice.choice(faults.FAULTS)
            print(f"{passed:5.0f} s  {fault.__name__}", flush=True)
            fault(world, dice)
            time.sleep(max(0.0, FAULT_EVERY_S - (time.monotonic() - began - passed)))
    finally:
        world.heal()
        load.stop()
    history, wrong = load.history, []
    try:
        history.check(within_s=SETTLE_S)
    except AssertionError as error:
        wrong.append(str(error))
    bad = set(load.said) - PASSING - {"200"}
    wrong += [f"{load.said[word]} answers: {word}" for word in sorted(bad)]
    alive = world.rows("SELECT id FROM memories WHERE id = ANY ($1::text[]::uuid[])", load.deleted)
    wrong += [f"{len(alive)} deleted memories are there"] if alive else []
    print(
        f"{len(history.acks)} adds accepted, {sum(history.refused.values())} times told to wait; others: {dict(load.said)}"
    )
    return wrong + compare(before or sizes(world), sizes(world))


def main() -> int:
    """Run it as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    seed = os.environ.get("MEMORYD_SEED") or str(secrets.randbelow(10**6))
    print(f"MEMORYD_SEED={seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="memoryd-soak-"))
    folder.chmod(0o711)
    try:
        with World(folder / "world") as world:
            wrong = soak(world, seconds=options.seconds, dice=random.Random(seed))
    finally:
        shutil.rmtree(folder)
    print("\n".join(wrong) or "nothing lost, nothing doubled, nothing grown")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
