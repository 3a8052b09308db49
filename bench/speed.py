"""How fast the service is, against the plainest thing that does the same: ratios, measured in turn in one run.

    python -m bench.speed [--only NAME,NAME] [--rounds 5] [--seconds 3]

Starts its own PostgreSQL (with fsync), Valkey, API, workers and reference on loopback, and throws them away. Every round
measures both sides one after the other; a row is void where the baseline itself differs by more than 40 per cent.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from bench.rounds import Verdict
from bench.speed_api import Api
from bench.speed_worker import Work
from bench.stage import Stage


def measures(api: Api) -> dict[str, Callable[[], Verdict]]:
    """Return what can be measured, by name, in the order in which it is."""
    work = Work(api)
    found: list[Callable[[], Verdict]] = [
        api.accept_throughput,
        api.accept_latency,
        api.authentication,
        api.without_redis,
        api.one_of_many,
        work.start_of_work,
        work.worker_throughput,
        work.fairness,
        api.model_hangs,
    ]
    return {one.__name__.replace("_", "-"): one for one in found}


NAMES = (
    "accept-throughput", "accept-latency", "authentication", "without-redis", "one-of-many", "start-of-work",
    "worker-throughput", "fairness", "model-hangs",
)  # fmt: skip


def table(rows: list[Verdict]) -> str:
    """Return the rows for people."""
    lines = [f"{'figure':<20}{'value':>9}  {'bar':<8}  verdict  measured"]
    for row in rows:
        value = "-" if row.value is None else f"{row.value:.2f}"
        lines.append(f"{row.name:<20}{value:>9}  {row.bar:<8}  {row.word:<7}  {row.note}")
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table; return 1 when a row fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(NAMES), help=f"names, comma-separated: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=5, help="A and B so many times each, 1 to 50")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement, 0.2 to 60")
    chosen = parser.parse_args()
    names = [name.strip() for name in chosen.only.split(",")]
    if unknown := set(names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if not (1 <= chosen.rounds <= 50 and 0.2 <= chosen.seconds <= 60):
        parser.error("--rounds is 1 to 50, --seconds 0.2 to 60")
    rows: list[Verdict] = []
    for name in names:
        with Stage() as stage:  # of its own each: what one leaves behind slows no other down
            rows.append(measures(Api(stage, rounds=chosen.rounds, seconds=chosen.seconds))[name]())
        print(table(rows[-1:]).splitlines()[1], flush=True)
    print("\n" + table(rows))
    return int(any(row.word == "FAIL" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
