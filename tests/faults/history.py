"""What clients did and were told, and the proof afterwards that the service kept every word of it."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from tests.faults.brain import MARK, message
from tests.faults.world import World, eventually

#: What a client may hear instead of 200: a line that broke, or a refusal that says when to try again.
PASSING = frozenset("429 503 ConnectError ReadError WriteError RemoteProtocolError ReadTimeout".split())
OPEN = "SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING')"
WAITING = """
SELECT kind, status, attempts, error_code, clock_timestamp() - created_at AS age, next_at - clock_timestamp() AS due_in,
       lease_until - clock_timestamp() AS lease, clock_timestamp() - updated_at AS untouched
FROM events WHERE status IN ('PENDING', 'RUNNING') ORDER BY seq LIMIT 20
"""


@dataclass(frozen=True)
class Ack:
    """An add that was answered with 200."""

    mark: str
    project: str
    user: str
    event_id: str


@dataclass
class History:
    """Adds of two projects and a few users, each with a mark of its own."""

    world: World
    name: str = field(default_factory=lambda: uuid4().hex[:6])  # of this history, in every mark
    users: int = 4
    acks: list[Ack] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)  # marks that were sent, answered or not
    refused: Counter[str] = field(default_factory=Counter)  # what clients were told instead
    wrong: list[str] = field(default_factory=list)  # answers that no fault excuses
    slowest_s: float = 0.0  # answer to an add, of those with 200
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, number: int, *, patience_s: float = 60.0, client: httpx.Client | None = None) -> Ack | None:
        """Add a mark as a careful client does: again with the same key, until it is accepted or patience ends."""
        project = sorted(self.world.projects)[number % 2]
        user = f"{self.name}-{number % self.users}"
        mark = f"mark-{self.name}-{number}"
        body = {"messages": [{"role": "user", "content": message(mark)}], "user_id": user}
        with self._lock:
            self.tried.add(mark)
        deadline = time.monotonic() + patience_s
        with self.world.client(project) as own:
            while True:
                began = time.monotonic()
                word, event_id = _sent(client or own, body, key=mark)
                with self._lock:
                    if event_id is not None:
                        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                        ack = Ack(mark, project, user, event_id)
                        self.acks.append(ack)
                        return ack
                    self.refused[word] += 1
                    if word not in PASSING:
                        self.wrong.append(f"{mark}: {word}: {self._why(word)}")
                if time.monotonic() > deadline:
                    return None
                time.sleep(random.uniform(0.05, 0.2))

    def adds(self, numbers: Iterable[int], *, threads: int = 6, patience_s: float = 60.0) -> list[Ack | None]:
        """Add several marks at the same time."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda number: self.add(number, patience_s=patience_s), numbers))

    def _why(self, answer: str) -> str:
        """Return what the API's log says of a fault."""
        said = re.search(r"[0-9a-f]{32}", answer)
        return " ".join(line for line in self.world.api.log.splitlines() if said and said[0] in line)

    # The proof

    def settle(self, *, within_s: float = 60.0) -> None:
        """Wait until every event has ended."""
        try:
            eventually(lambda: self.world.value(OPEN) == 0, within_s=within_s)
        except AssertionError:
            waiting = [str(row) for row in self.world.rows(WAITING)]
            said = [f"{program.name}: {program.log[-1500:]}" for program in self.world.programs]
            raise AssertionError("\n".join(["events have not ended", *waiting, *said])) from None

    def check(self, *, within_s: float = 60.0, failed: frozenset[str] = frozenset(), restored: bool = False) -> None:
        """Prove that each accepted add ended, had its effect exactly once, in order, and for nobody else.

        `failed`: marks whose events must have ended FAILED, with a reason and no effect.
        `restored`: the database went back in time, so that the logs tell of work that it knows nothing of.
        """
        self.settle(within_s=within_s)
        problems = [
            *self.wrong,
            *self._ends(failed),
            *self._effects(failed),
            *self._order(),
            *self._foreign(),
            *([] if restored else self._fenced()),
            *_stores(self.world),
        ]
        assert not problems, "\n".join([*problems[:20], f"… {len(problems)} in all"])

    def _events(self) -> dict[str, dict[str, Any]]:
        found = self.world.rows(
            "SELECT e.*, p.public_id AS project FROM events e JOIN projects p ON p.id = e.project_id WHERE kind = 'ADD'"
        )
        return {str(row["id"]): row for row in found}

    def _ends(self, failed: frozenset[str]) -> Iterable[str]:
        events = self._events()
        for ack in self.acks:
            event = events.get(ack.event_id)
            wanted = "FAILED" if ack.mark in failed else "SUCCEEDED"
            if event is None:
                yield f"{ack.mark}: the event {ack.event_id} is lost"
            elif event["status"] != wanted:
                yield f"{ack.mark}: {event['status']} {event['error_code']} {event['error']}"
            elif wanted == "FAILED" and not (event["error_code"] and event["error"]):
                yield f"{ack.mark}: failed without a reason"
            elif wanted == "SUCCEEDED" and len(event["results"]) != 1:
                yield f"{ack.mark}: {len(event['results'])} results"

    def _memories(self) -> list[dict[str, Any]]:
        return self.world.rows(
            "SELECT m.id, m.text, m.user_id, m.event_id, p.public_id AS project"
            " FROM memories m JOIN projects p ON p.id = m.project_id WHERE m.text LIKE $1",
            f"mark-{self.name}-%",
        )

    def _effects(self, failed: frozenset[str]) -> Iterable[str]:
        counts = Counter(MARK.findall(row["text"])[0] for row in self._memories())
        for ack in self.acks:
            wanted = 0 if ack.mark in failed else 1
            if counts[ack.mark] != wanted:
                yield f"{ack.mark}: {counts[ack.mark]} memories"
        acked = {ack.mark for ack in self.acks}
        for mark, count in counts.items():
            if mark not in self.tried:
                yield f"{mark}: a memory that nobody asked for"
            elif mark not in acked and count > 1:
                yield f"{mark}: never acknowledged, and stored {count} times"

    def _order(self) -> Iterable[str]:
        scopes: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for event in sorted(self._events().values(), key=lambda row: row["seq"]):
            scopes[event["project_id"], event["scope_id"]].append(event)
        for events in scopes.values():
            latest: dict[str, Any] | None = None
            for event in events:
                if event["started_at"] is None:  # done as soon as it was accepted
                    continue
                if latest and event["completed_at"] < latest["completed_at"]:
                    yield f"{latest['id']} was overtaken by {event['id']}"
                elif latest and event["started_at"] < latest["completed_at"] and event["attempts"] == 1:
                    yield f"{latest['id']} ran beside {event['id']}"
                # One that has failed before may be overtaken, and only such a one. One that no worker claimed is done at once.
                elif event["attempts"] == 1:
                    latest = event

    def _foreign(self) -> Iterable[str]:
        acks = {ack.mark: ack for ack in self.acks}
        for row in self._memories():
            mark = MARK.findall(row["text"])[0]
            ack = acks.get(mark)
            number = int(mark.rsplit("-", 1)[1])
            owner = (sorted(self.world.projects)[number % 2], f"{self.name}-{number % self.users}")
            if (row["project"], row["user_id"]) != owner:
                yield f"{mark}: belongs to {row['project']} {row['user_id']}"
            if ack and str(row["event_id"]) != ack.event_id:
                yield f"{mark}: came of event {row['event_id']}"

    def _fenced(self) -> Iterable[str]:
        """Read the logs of all workers: whoever lost an event to another must not have finished it, too."""
        done: Counter[str] = Counter()
        for worker in self.world.workers:
            for line in worker.history:
                if '"event.processed"' in line and '"Done"' in line and '"ADD"' in line:
                    done[re.findall(r'"event_id": ?"([0-9a-f-]{36})"', line)[0]] += 1
        for ack in self.acks:
            if done[ack.event_id] > 1:
                yield f"{ack.mark}: finished by {done[ack.event_id]} workers"


def _sent(client: httpx.Client, body: dict[str, Any], *, key: str) -> tuple[str, str | None]:
    """Return what a client hears: a word, and the event's id if it was accepted."""
    try:
        answer = client.post("/v3/memories/add/", json=body, headers={"Idempotency-Key": key})
    except httpx.TransportError as error:
        return type(error).__name__, None
    if answer.status_code == 200:
        return "200", answer.json()["event_id"]
    waits = answer.headers.get("retry-after", "").isdigit()
    return str(answer.status_code) if waits else f"{answer.status_code} {answer.text}", None


_STORES = {
    "memories without exactly one vector": """
        SELECT m.id FROM memories m
        LEFT JOIN memory_vectors v ON v.project_id = m.project_id AND v.memory_id = m.id
        GROUP BY m.project_id, m.id HAVING count(v.memory_id) <> 1""",
    "vectors of no memory": """
        SELECT v.memory_id FROM memory_vectors v
        WHERE NOT EXISTS (SELECT FROM memories m WHERE m.project_id = v.project_id AND m.id = v.memory_id)""",
    "memories without exactly one ADD in their history": """
        SELECT m.id FROM memories m
        LEFT JOIN history h ON h.project_id = m.project_id AND h.memory_id = m.id AND h.event = 'ADD'
        GROUP BY m.project_id, m.id HAVING count(h.id) <> 1""",
    "terms of no memory": """
        SELECT DISTINCT t.memory_id FROM terms t
        WHERE NOT EXISTS (SELECT FROM memories m WHERE m.project_id = t.project_id AND m.id = t.memory_id)""",
    "scopes that count wrong": """
        SELECT s.id FROM scopes s LEFT JOIN memories m ON m.project_id = s.project_id AND m.scope_id = s.id
        GROUP BY s.project_id, s.id HAVING count(m.id) <> s.memory_count""",
    "messages that were kept twice": """
        SELECT event_id FROM messages GROUP BY project_id, event_id, position HAVING count(*) > 1""",
}


def _stores(world: World) -> Iterable[str]:
    """Say which tables contradict each other."""
    for what, sql in _STORES.items():
        if found := world.rows(sql):
            yield f"{what}: {len(found)}"
