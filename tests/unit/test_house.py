"""Rules of the house that no tool checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import typer

from app.cli import commands

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


def test_what_decisions_are_enforced_by_exists():
    found = []
    for path in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        if path.name.startswith("0000"):
            continue
        enforced = path.read_text(encoding="utf-8").partition("**Enforced by**")[2]
        named = re.findall(r"`((?:tests|app|worker)\b[^`]*)`", enforced)
        assert any(name.startswith("tests") for name in named), path.name
        found += [f"{path.name}: {name}" for name in named if not any(ROOT.glob(name.rstrip("/")))]
    assert not found


def test_readme_names_every_command_and_no_other():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Commands")[2].partition("\n## ")[0]
    named = set()
    for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        group = None
        for code in re.findall(r"`([^`]*)`", row):
            words = [word for word in code.split() if word.isalpha()]
            if words[0] == "memoryd":
                group = words[1] if len(words) > 2 else None
                named.add(" ".join(words[1:3]))
            else:
                named.add(f"{group} {words[0]}")
    assert named == set(_commands(typer.main.get_command(commands.cli)))


def _commands(group, before=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} ")
        else:
            yield before + name
