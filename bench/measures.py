"""Recall, reciprocal rank and their 95 % intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

KS = (5, 10, 20)


def of_ranking(ranked: Sequence[str], wanted: Collection[str]) -> dict[str, float]:
    """Return recall at each of KS and the reciprocal rank of the first right one."""
    right = [item in wanted for item in ranked]
    row = {f"recall@{k}": sum(right[:k]) / len(wanted) for k in KS}
    row["mrr"] = next((1 / (place + 1) for place, hit in enumerate(right) if hit), 0.0)
    return row


class Report:
    """Rows of measures by kind of question."""

    def __init__(self) -> None:
        self._rows: dict[str, list[dict[str, float]]] = defaultdict(list)

    def add(self, kind: str, row: dict[str, float]) -> None:
        """Count one question."""
        self._rows[kind].append(row)
        self._rows["all"].append(row)

    def mean(self, measure: str, kind: str = "all") -> float:
        """Return the mean over the questions of a kind, in percent."""
        return 100 * float(np.mean([row[measure] for row in self._rows[kind]]))

    def interval(self, measure: str, kind: str = "all", *, rounds: int = 1000) -> tuple[float, float]:
        """Return the 95 % interval of the mean by bootstrap, in percent; the same every time."""
        values = np.array([row[measure] for row in self._rows[kind]])
        picks = np.random.default_rng(7).integers(0, len(values), (rounds, len(values)))
        low, high = np.percentile(values[picks].mean(axis=1), [2.5, 97.5])
        return 100 * float(low), 100 * float(high)

    def table(self, measures: Sequence[str] = (*(f"recall@{k}" for k in KS), "mrr")) -> str:
        """Return a Markdown table: a row per kind, a column per measure."""
        lines = ["| kind | n | " + " | ".join(measures) + " |", "|---" * (2 + len(measures)) + "|"]
        for kind in ["all", *sorted(set(self._rows) - {"all"})]:
            cells = []
            for measure in measures:
                low, high = self.interval(measure, kind)
                cells.append(f"{self.mean(measure, kind):.1f} ({low:.1f}-{high:.1f})")
            lines.append(f"| {kind} | {len(self._rows[kind])} | " + " | ".join(cells) + " |")
        return "\n".join(lines)
