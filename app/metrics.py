"""What this process counts about itself, and the text in which it is shown (Prometheus' exposition format 0.0.4).

Labels are words of the program: routes as templates, methods, statuses, kinds. Nothing of a project is ever one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  #: upper ends, seconds
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]  # name of a counter and its labels


@dataclass(slots=True)
class _Histogram:
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0


_counts: Counter[Key] = Counter()
_durations: dict[Labels, _Histogram] = {}


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name."""

    name: str
    kind: str  # counter, gauge or histogram
    help: str
    samples: list[tuple[str, Labels, float]]  # suffix of the name, labels, value


def count(name: str, by: int = 1, **labels: str) -> None:
    """Count something that happened in this process."""
    _counts[(name, tuple(labels.items()))] += by


def request(method: str, route: str | None, status: int, seconds: float) -> None:
    """Count a request that was answered. `route` is the template of its path; None: there is no such route."""
    method = method if method in _METHODS else "other"
    route = route or "none"
    count("requests", method=method, route=route, status=str(status))
    labels = (("method", method), ("route", route))
    histogram = _durations.get(labels)
    if histogram is None:
        histogram = _durations[labels] = _Histogram()
    histogram.buckets[bisect_left(BUCKETS_S, seconds)] += 1
    histogram.total_s += seconds


def counted() -> Mapping[Key, int]:
    """Return what was counted in this process."""
    return dict(_counts)


def take() -> Mapping[Key, int]:
    """Return what was counted in this process since the last time, to be kept elsewhere."""
    taken = dict(_counts)
    _counts.clear()
    return taken


def put_back(taken: Mapping[Key, int]) -> None:
    """Count again what could not be kept elsewhere."""
    _counts.update(taken)


def durations() -> Family:
    """Return how long requests took, of each route."""
    samples: list[tuple[str, Labels, float]] = []
    for labels, histogram in sorted(_durations.items()):
        below = 0
        for end, number in zip((*BUCKETS_S, float("inf")), histogram.buckets, strict=True):
            below += number
            samples.append(("_bucket", (*labels, ("le", "+Inf" if end == float("inf") else f"{end:g}")), below))
        samples += [("_sum", labels, histogram.total_s), ("_count", labels, below)]
    return Family("memoryd_request_seconds", "histogram", "Time from a request's head to its answer.", samples)


def text(families: Iterable[Family]) -> str:
    """Return the families as text."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for suffix, labels, value in family.samples:
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
        yield f"{family.name}{suffix}{{{shown}}} {value:.10g}" if shown else f"{family.name}{suffix} {value:.10g}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
