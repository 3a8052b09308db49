"""The worker's figures, with a model and an embedder that take no time: how soon, how many, and for whom first."""

from __future__ import annotations

import signal
import statistics
import time

from bench import load, rounds
from bench.rounds import Verdict
from bench.speed_api import Api
from bench.stage import Program, run

SINGLES = 30  #: adds, one after the other, that a latency is the median of
BATCH = 200  #: events of one round of the throughput
QUEUED = 2000  #: events of another project, when fairness is looked at
WAIT_S = 300.0

_LEFT = "SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING') AND id >= $1"
_RATE = """
SELECT count(*) / extract(epoch FROM max(completed_at) - min(started_at))::float8
FROM events WHERE kind = 'ADD' AND status = 'SUCCEEDED' AND id >= $1
"""


class Work:
    """Workers beside an API. A worker that is not measured is stopped in time, not ended: a start costs more than a round."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._stage = api.stage

    def _paused(self, kind: str) -> Program:
        made = self._stage.worker(kind)
        made.child.send(signal.SIGSTOP)
        return made

    def _accept(self, key: str) -> str:
        status, body, _ = run(load.once(self._api.port, self._api.add(key=key)))
        assert status == 200, body
        return body.decode().rpartition('"event_id":"')[2][:36]

    def _await(self, event_id: str) -> None:
        """Wait until this event has ended."""
        deadline = time.monotonic() + WAIT_S
        sql = "SELECT status IN ('SUCCEEDED', 'FAILED') FROM events WHERE id = $1"
        while not self._stage.value(sql, event_id):
            if time.monotonic() > deadline:
                raise RuntimeError("the worker does not get done")
            time.sleep(0.05)

    def start_of_work(self) -> Verdict:
        """Milliseconds from the acceptance of an add to the start of its processing, in an idle service."""
        worker = self._stage.worker("steady")
        try:
            waits = []
            for _ in range(SINGLES):
                event_id = self._accept(self._stage.key)
                self._await(event_id)
                sql = "SELECT extract(epoch FROM started_at - created_at)::float8 * 1000 FROM events WHERE id = $1"
                waits.append(self._stage.value(sql, event_id))
            p50, p95 = statistics.median(waits), sorted(waits)[int(0.95 * len(waits))]
            return rounds.one("start-of-work", p50, "<= 60", f"ms, median of {SINGLES} adds; 95 %: {p95:.0f} ms")
        finally:
            worker.child.end(signal.SIGKILL, timeout_s=10)

    def _drain(self, worker: Program) -> float:
        first = self._fill(BATCH, self._stage.key)
        said_before = len(worker.ended)
        worker.child.send(signal.SIGCONT)
        try:
            self._emptied(first)
        finally:
            worker.child.send(signal.SIGSTOP)
        if worker.name == "bare":
            return float(self._stage.value(_RATE, first))
        ended = worker.ended[said_before:]  # an add is followed by an event that sorts its memories, which is work too
        return len(ended) / (max(ended) - min(ended)).total_seconds()

    def _fill(self, count: int, key: str) -> str:
        """Accept so many adds; return the id of the first, which all later ones are beyond."""
        first = self._accept(key)
        left = [count - 1]

        async def fill() -> None:
            while left[0] > 0:
                sample = await load.drive(
                    self._api.port, lambda: self._api.add(key=key), connections=8, seconds=min(0.5, left[0] / 2000)
                )
                left[0] -= sample.require().count

        run(fill())
        return first

    def _emptied(self, first: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while self._stage.value(_LEFT, first):
            if time.monotonic() > deadline:
                raise RuntimeError("the worker does not get done")
            time.sleep(0.1)

    def worker_throughput(self) -> Verdict:
        """Events a second of a worker to those of a bare loop that claims and ends them, in as many slots."""
        steady, bare = self._paused("steady"), self._paused("bare")
        try:
            return rounds.compare(
                "worker-throughput",
                ">= 0.60",
                lambda: self._drain(steady),
                lambda: self._drain(bare),
                rounds=self._api.rounds,
                unit="events/s",
            )
        finally:
            for program in (steady, bare):
                program.child.end(signal.SIGKILL, timeout_s=10)

    def fairness(self) -> Verdict:
        """Latency of one project's events while another has thousands waiting, to that in an idle service."""
        worker = self._stage.worker("steady")
        try:
            idle = self._latency()
            worker.child.send(signal.SIGSTOP)
            first = self._fill(QUEUED, self._stage.other_key)
            worker.child.send(signal.SIGCONT)
            busy = self._latency()
            left = self._stage.value(_LEFT, first)
            note = f"{busy:.0f} ms against {idle:.0f} ms; {left} of {QUEUED} still waited at the end"
            if left == 0:
                return Verdict("fairness", None, "<= 2", False, True, note)
            return rounds.one("fairness", busy / idle, "<= 2", note)
        finally:
            worker.child.end(signal.SIGKILL, timeout_s=10)

    def _latency(self) -> float:
        """Return the median milliseconds from acceptance to end, of adds one after the other."""
        took = []
        for _ in range(SINGLES // 2):
            event_id = self._accept(self._stage.key)
            self._await(event_id)
            sql = "SELECT extract(epoch FROM completed_at - created_at)::float8 * 1000 FROM events WHERE id = $1"
            took.append(self._stage.value(sql, event_id))
        return statistics.median(took)
