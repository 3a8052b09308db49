"""Tables on the terminal; whole and without frames where they are read by a program."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 10_000  #: characters of a line that a program reads, so that none is broken


def show(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with a line for each row."""
    people = sys.stdout.isatty()
    table = Table(*columns, box=box.SIMPLE_HEAD if people else None, header_style="bold", pad_edge=False)
    for number, column in enumerate(table.columns):
        column.no_wrap = number == 0 or not people
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    _print(table)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, a line each."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in pairs:
        table.add_row(Text(name, style="bold"), Text(_text(value)))
    _print(table)


def _print(table: Table) -> None:
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    console = Console(width=WIDE, highlight=False)
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_text(part) for part in value) if value else "none"
    return "–" if value is None else str(value)
