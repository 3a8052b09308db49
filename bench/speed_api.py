"""The API's figures: accepting, knowing keys, and what goes on while Redis or the model does not answer."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Callable

from bench import load, rounds
from bench.rounds import Verdict
from bench.stage import Program, Stage, run

USERS = 50


class Api:
    """An API and the reference beside it."""

    def __init__(self, stage: Stage, *, rounds: int, seconds: float) -> None:
        self.stage, self.rounds, self.seconds = stage, rounds, seconds
        self.program, self.port = stage.api()
        self._numbers = itertools.count()
        self._reference: tuple[Program, int] | None = None

    @property
    def reference(self) -> int:
        """Port of the reference; started when it is first asked for."""
        self._reference = self._reference or self.stage.reference()
        return self._reference[1]

    def add(self, path: str = "/v3/memories/add/", key: str | None = None) -> bytes:
        """Return the bytes of one more add: the same JSON for both sides."""
        number = next(self._numbers)
        body = {
            "messages": [
                {"role": "user", "content": f"My favourite tea is number {number}. I moved to Lisbon last week."},
                {"role": "assistant", "content": "Welcome to Lisbon! I will keep the tea in mind."},
            ],
            "user_id": f"user-{number % USERS}",
        }
        return load.request("POST", path, body, key=key)

    def drive(self, port: int, make: load.Maker, connections: int) -> load.Sample:
        """Load one side for a round."""
        return run(load.drive(port, make, connections=connections, seconds=self.seconds)).require()

    def _sides(
        self, connections: int, of: Callable[[load.Sample], float]
    ) -> tuple[Callable[[], float], Callable[[], float]]:
        ours = lambda: of(self.drive(self.port, lambda: self.add(key=self.stage.key), connections))  # noqa: E731
        bare = lambda: of(self.drive(self.reference, lambda: self.add("/insert"), connections))  # noqa: E731
        return ours, bare

    def accept_throughput(self) -> Verdict:
        """Adds a second to inserts a second of the plainest endpoint, 16 connections."""
        ours, bare = self._sides(16, lambda sample: sample.rate)
        return rounds.compare("accept-throughput", ">= 0.60", ours, bare, rounds=self.rounds, unit="req/s")

    def accept_latency(self) -> Verdict:
        """Median latency of an add to that of the plainest insert, one connection."""
        ours, bare = self._sides(1, lambda sample: sample.p50_ms)
        return rounds.compare("accept-latency", "<= 1.30", ours, bare, rounds=self.rounds, unit="ms")

    def authentication(self) -> Verdict:
        """Requests a second with a key to requests a second of an open route, 16 connections."""
        ping, open_ = load.request("GET", "/v1/ping/", key=self.stage.key), load.request("GET", "/healthz")
        return rounds.compare(
            "authentication",
            ">= 0.70",
            lambda: self.drive(self.port, lambda: ping, 16).rate,
            lambda: self.drive(self.port, lambda: open_, 16).rate,
            rounds=self.rounds,
            unit="req/s",
        )

    def without_redis(self) -> Verdict:
        """Median latency of an add while Redis is down to that with it, one connection."""
        make = lambda: self.add(key=self.stage.key)  # noqa: E731

        def down() -> float:
            self.stage.valkey.child.end(signal.SIGKILL, timeout_s=10)
            try:
                self.drive(self.port, make, 1)  # the first failure is noticed
                return self.drive(self.port, make, 1).p50_ms
            finally:
                self.stage.valkey.start()

        def up() -> float:
            self.drive(self.port, make, 1)
            return self.drive(self.port, make, 1).p50_ms

        return rounds.compare("without-redis", "<= 1.20", down, up, rounds=self.rounds, unit="ms")

    def model_hangs(self) -> Verdict:
        """Median latency of a search while every call of the model hangs to that of an idle service."""
        seed = load.request(
            "POST",
            "/v3/memories/add/",
            {"messages": [{"role": "user", "content": f"I like tea of sort {n}." } for n in range(200)], "user_id": "seeker", "infer": False},
            key=self.stage.key,
        )  # fmt: skip
        assert run(load.once(self.port, seed))[0] == 200
        search = load.request(
            "POST",
            "/v3/memories/search/",
            {"query": "Which tea?", "filters": {"user_id": "seeker"}},
            key=self.stage.key,
        )
        hanging = self.stage.worker("hanging")
        hanging.child.send(signal.SIGSTOP)

        def hung() -> float:
            run(load.drive(self.port, lambda: self.add(key=self.stage.key), connections=4, seconds=0.2)).require()
            hanging.child.send(signal.SIGCONT)
            try:
                return self.drive(self.port, lambda: search, 1).p50_ms
            finally:
                hanging.child.send(signal.SIGSTOP)

        idle = lambda: self.drive(self.port, lambda: search, 1).p50_ms  # noqa: E731
        try:
            return rounds.compare("model-hangs", "<= 1.20", hung, idle, rounds=self.rounds, unit="ms")
        finally:
            hanging.child.end(signal.SIGKILL, timeout_s=10)

    def one_of_many(self) -> Verdict:
        """Rows that a hundred identical adds at the same moment leave."""
        same = load.request(
            "POST",
            "/v3/memories/add/",
            {"messages": [{"role": "user", "content": "I am allergic to peanuts."}], "user_id": "one", "infer": False},
            key=self.stage.key,
        )

        async def all_at_once() -> list[int]:
            return [status for status, _, _ in await asyncio.gather(*(load.once(self.port, same) for _ in range(100)))]

        statuses = run(all_at_once())
        assert set(statuses) == {200}, statuses
        rows = self.stage.value("SELECT count(*) FROM memories WHERE user_id = 'one'")
        return rounds.one("one-of-many", float(rows), "= 1", "rows after 100 identical adds at once")
