"""Rules of the house that no tool checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: What only a statement looks like; prose about deleting and selecting does not.
SQL = re.compile(
    r"\b(SELECT\b.+\bFROM|INSERT\s+INTO|DELETE\s+FROM|UPDATE\s+\w+\s+(\w+\s+)?SET|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|DATABASE))\b",
    re.DOTALL,
)


def strings(path):
    """Yield the line and text of every string in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_statements_are_written_in_the_store_alone():
    files = [path for folder in ("app", "worker") for path in (ROOT / folder).rglob("*.py")]
    outside = [path for path in files if ROOT / "app" / "store" not in path.parents]
    assert outside
    found = [f"{path.relative_to(ROOT)}:{line}" for path in outside for line, text in strings(path) if SQL.search(text)]
    assert not found
