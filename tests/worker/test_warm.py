"""The first add costs no more than the others: what has to be loaded is loaded before there is any."""

from __future__ import annotations

import subprocess
import sys

_FIRST_USE = """
import asyncio, time
from app.domain import lexemes, link, warm

class Runtime:
    llm = None

asyncio.run(warm.up(Runtime()))
started = time.process_time()
lexemes.analyse("Another meeting was cancelled by our friends"); link.entities("Bob met 李雷 in Rome")
print(time.process_time() - started)
"""


def test_after_warming_up_the_first_text_costs_milliseconds() -> None:
    """In a process of its own: in this one everything is loaded already. Without it, the first text took 300 ms."""
    took = subprocess.run([sys.executable, "-c", _FIRST_USE], capture_output=True, text=True, check=True, timeout=100)
    assert float(took.stdout.split()[-1]) < 0.15
