"""How long the worst requests delay everybody else: a client that asks for nothing, beside one that asks for too much.

    python -m bench.stall [--only NAME,NAME] [--limit-ms 250]

Starts its own servers. Each hostile request is sent a few times, one after the other; the row is the longest time that a
plain `GET /healthz` had to wait meanwhile. On a machine with other work the waits are partly that work's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from bench import load
from bench.stage import Stage, run

TIMES = 3  #: each request
ADD, SEARCH, LIST, IMPORT = "/v3/memories/add/", "/v3/memories/search/", "/v3/memories/", "/v1/import/"


def _said(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "user_id": "u", **more}


def _deep(levels: int) -> bytes:
    return b'{"messages": "x", "user_id": "u", "metadata": ' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


def _nested(depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"metadata": {"k": "v"}}
    for _ in range(depth):
        node = {"AND": [node]}
    return node


def bodies() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Return name, path and body of each request; the body is made only when it is wanted."""
    yield "one message of 1 MiB", ADD, lambda: _said("I like tea. " * 87_000)
    yield "a body of 10 MiB", ADD, lambda: {
        "messages": [{"role": "user", "content": "tea " * 250_000}] * 10, "user_id": "u",
    }  # fmt: skip
    yield (
        "200,000 tiny messages",
        ADD,
        lambda: {"messages": [{"role": "user", "content": "a"}] * 200_000, "user_id": "u"},
    )
    yield "10,000 messages", ADD, lambda: {
        "messages": [{"role": "user", "content": f"I like tea number {n}."} for n in range(10_000)], "user_id": "u",
    }  # fmt: skip
    yield "2,000 messages, infer false", ADD, lambda: {
        "messages": [{"role": "user", "content": f"I like tea number {n}."} for n in range(2_000)],
        "user_id": "raw", "infer": False,
    }  # fmt: skip
    yield "10,000 messages, infer false", ADD, lambda: {
        "messages": [{"role": "user", "content": f"I like tea number {n}."} for n in range(10_000)],
        "user_id": "raw", "infer": False,
    }  # fmt: skip
    yield "one message of 1 MiB, infer false", ADD, lambda: _said("I like green tea and Bob. " * 40_000, infer=False)
    yield "1 MiB of Chinese, infer false", ADD, lambda: _said("我住在北京喜欢喝茶" * 38_000, infer=False)
    yield "1 MiB of one letter, infer false", ADD, lambda: _said("a" * 1_048_000, infer=False)
    yield "1 MiB of opening brackets", ADD, lambda: _said("[" * 1_000_000, infer=False)
    yield "1 MiB of digits and dots", ADD, lambda: _said("1.2-3/4:" * 130_000, infer=False)
    yield "metadata of 64 KiB", ADD, lambda: _said("tea", metadata={"k": "x" * 65_000})
    yield "metadata of 100 kB", ADD, lambda: _said("tea", metadata={"k": "x" * 100_000})
    yield "metadata nested 100,000 deep", ADD, lambda: _deep(100_000)
    yield (
        "a million empty lists",
        ADD,
        lambda: b'{"messages": "x", "user_id": "u", "metadata": {"a": [' + b"[]," * 999_999 + b"[]]}}",
    )
    yield "a query of 1 MiB", SEARCH, lambda: {"query": "tea with Bob " * 80_000, "filters": {"user_id": "raw"}}
    yield "a query of 60 kB of Chinese", SEARCH, lambda: {"query": "喝茶北京" * 5_000, "filters": {"user_id": "raw"}}
    yield "200 conditions", SEARCH, lambda: {
        "query": "tea", "filters": {"OR": [{"user_id": f"u{n}"} for n in range(200)]},
    }  # fmt: skip
    yield "10,000 conditions", SEARCH, lambda: {
        "query": "tea", "filters": {"OR": [{"metadata": {f"k{n}": n}} for n in range(10_000)]},
    }  # fmt: skip
    yield (
        "100,000 ids in a filter",
        LIST,
        lambda: {"filters": {"AND": [{"user_id": {"in": [f"u{n}" for n in range(100_000)]}}]}},
    )
    yield "filters nested 60 deep", LIST, lambda: {"filters": _nested(58)}
    yield (
        "a search for 1,000",
        SEARCH,
        lambda: {"query": "tea", "filters": {"user_id": "raw"}, "top_k": 1000, "threshold": 0},
    )
    yield "a page of 200", LIST, lambda: {"filters": {"user_id": "raw"}, "page_size": 200}
    yield "an import of 1,000", IMPORT, lambda: {
        "memories": [{"memory": f"User likes tea number {n} and Bob.", "user_id": "imported"} for n in range(200)],
    }  # fmt: skip


async def _worst(port: int, key: str, path: str, body: bytes, times: int) -> tuple[float, int, float]:
    """Return the longest wait of the others in ms, the status, and how long the request itself took."""
    busy = True
    waits: list[float] = []

    async def ping() -> None:
        plain = load.request("GET", "/healthz")
        while busy:
            sample = await load.drive(port, lambda: plain, connections=1, seconds=0.05)
            waits.extend(sample.latencies_ms)

    asking = asyncio.create_task(ping())
    await asyncio.sleep(0.2)
    del waits[:]
    status, took = 0, 0.0
    data = load.request("POST", path, body, key=key)
    for _ in range(times):
        status, _, ms = await load.once(port, data, timeout_s=120)
        took = max(took, ms)
    busy = False
    await asking
    return max(waits), status, took


def main() -> int:
    """Send everything, print the table; return 1 when somebody waited too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only requests whose name holds this text")
    parser.add_argument("--limit-ms", type=float, default=250.0)
    chosen = parser.parse_args()
    failed = False
    with Stage() as stage:
        _, port = stage.api()
        run(_worst(port, stage.key, ADD, json.dumps(_said("I like tea.", infer=False)).encode(), 3))
        idle = run(_worst(port, stage.key, "/healthz", b"", 20))[0]
        print(f"{'request':<36}{'others wait':>12}  {'itself':>9}  status   (nothing beside: {idle:.0f} ms)")
        for name, path, make in bodies():
            if chosen.only not in name:
                continue
            made = make()
            body = made if isinstance(made, bytes) else json.dumps(made).encode()
            worst, status, took = run(_worst(port, stage.key, path, body, TIMES))
            late = worst > chosen.limit_ms
            failed = failed or late or status >= 500
            print(f"{name:<36}{worst:>9.0f} ms  {took:>6.0f} ms  {status}{'   TOO LONG' if late else ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
