"""Two things measured in turn, and what their ratio says: A, B, A, B, so that a busy minute hits both."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

VOID_SPREAD = 0.4  #: where the baseline itself differs by more between rounds, the machine was not quiet enough to tell


@dataclass(frozen=True)
class Verdict:
    """One row of the table."""

    name: str
    value: float | None  # the median of the rounds' ratios; None: nothing was measured
    bar: str  # such as ">= 0.60"
    passed: bool
    void: bool
    note: str

    @property
    def word(self) -> str:
        """What the row says."""
        return "void" if self.void else "pass" if self.passed else "FAIL"


def meets(value: float, bar: str) -> bool:
    """Return whether a value is on the right side of a bar."""
    sign, number = bar.split()
    return {">=": value >= float(number), "<=": value <= float(number), "=": value == float(number)}[sign]


def one(name: str, value: float, bar: str, note: str = "") -> Verdict:
    """Return a row of one number."""
    return Verdict(name, value, bar, meets(value, bar), False, note)


def compare(
    name: str,
    bar: str,
    ours: Callable[[], float],
    baseline: Callable[[], float],
    *,
    rounds: int,
    unit: str,
) -> Verdict:
    """Measure both `rounds` times in turn; the ratio is that of ours to the baseline, of each round."""
    ratios, mine, theirs = [], [], []
    for number in range(rounds):
        first, second = (ours, baseline) if number % 2 == 0 else (baseline, ours)
        found = {first: first(), second: second()}
        mine.append(found[ours])
        theirs.append(found[baseline])
        ratios.append(found[ours] / found[baseline])
    value = statistics.median(ratios)
    # Without the outermost rounds where there are five: one round of somebody else's work is not the machine.
    inner = sorted(theirs)[1:-1] if rounds >= 5 else theirs
    spread = (max(inner) - min(inner)) / statistics.median(theirs)
    note = (
        f"{statistics.median(mine):.4g} {unit} against {statistics.median(theirs):.4g}, "
        f"rounds {min(ratios):.2f} to {max(ratios):.2f}, baseline's spread {spread:.0%}"
    )
    return Verdict(name, value, bar, meets(value, bar), spread > VOID_SPREAD, note)
