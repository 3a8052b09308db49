"""What an operator's Prometheus reads: the right numbers, for the right key, and nothing of a project."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest

from app import metrics
from app.runtime import Runtime
from app.store import counters, workers
from app.store.db import Conn
from tests import factories

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')
CANARY = "canary-4f1b"


def read(text: str) -> dict[str, float]:
    """Return the samples of an exposition, each named with its labels."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            found[f"{match[1]}{{{match[2]}}}" if match[2] else match[1]] = float(match[3])
    return found


async def test_requests_are_counted_by_template_and_status(client: httpx.AsyncClient) -> None:
    before = read((await client.get("/metrics")).text)
    await client.get(f"/v1/memories/{CANARY}/")
    await client.get("/v1/ping/")
    await client.get(f"/{CANARY}/")
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    after = read(answer.text)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown('memoryd_requests_total{method="GET",route="/v1/memories/{memory_id}/",status="400"}') == 1
    assert grown('memoryd_requests_total{method="GET",route="/v1/ping/",status="200"}') == 1
    assert grown('memoryd_requests_total{method="GET",route="none",status="404"}') == 1
    assert grown('memoryd_request_seconds_count{method="GET",route="/v1/ping/"}') == 1
    assert grown('memoryd_request_seconds_bucket{method="GET",route="/v1/ping/",le="+Inf"}') == 1
    assert CANARY not in answer.text


async def test_what_waits_is_shown(client: httpx.AsyncClient, conn: Conn) -> None:
    metrics.take()  # what other tests did in this process, as an API does not
    before = read((await client.get("/metrics")).text)
    await client.post(
        "/v3/memories/add/", json={"messages": "I like tea.", "user_id": CANARY, "metadata": {"k": CANARY}}
    )
    await workers.beat(conn, CANARY, slots=4, running=0)
    await counters.add(conn, {("claims", ()): 3, ("events_processed", (("kind", "ADD"), ("outcome", "done"))): 2})
    await counters.add(conn, {("claims", ()): 4})
    text = (await client.get("/metrics")).text
    after = read(text)
    assert after["memoryd_events_pending"] == before["memoryd_events_pending"] + 1
    assert after["memoryd_events_due"] == before["memoryd_events_due"] + 1
    assert after["memoryd_events_accepted_total"] == before.get("memoryd_events_accepted_total", 0) + 1
    assert after["memoryd_oldest_due_seconds"] >= 0
    assert (after["memoryd_workers"], after["memoryd_worker_slots"]) == (1, 4)
    done = 'memoryd_events_processed_total{kind="ADD",outcome="done"}'
    assert after["memoryd_claims_total"] == before.get("memoryd_claims_total", 0) + 7
    assert after[done] == before.get(done, 0) + 2
    assert CANARY not in text


async def test_only_an_administrator_of_the_first_organization_may_read_them(
    client: httpx.AsyncClient, runtime: Runtime, conn: Conn
) -> None:
    """Another organization would learn how busy its neighbours are."""
    assert (await client.get("/metrics")).status_code == 200
    del client.headers["Authorization"]
    assert (await client.get("/metrics")).status_code == 401
    other = await factories.make_project(conn)
    secret = await factories.make_key(runtime, other)
    answer = await client.get("/metrics", headers={"Authorization": f"Token {secret}"})
    assert answer.status_code == 403
    assert "first organization" in answer.json()["detail"]


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("::1", 200), ("10.0.0.8", 401), ("testclient", 401)])
async def test_where_it_is_open_this_machine_needs_no_key(runtime: Runtime, host: str, status: int) -> None:
    opened = replace(runtime, settings=runtime.settings.model_copy(update={"metrics_open": True}))
    for rt, wanted in ((opened, status), (runtime, 401)):
        transport = httpx.ASGITransport(app=factories.make_app(rt), client=(host, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://memoryd.test") as client:
            assert (await client.get("/metrics")).status_code == wanted


def test_buckets_hold_what_took_no_longer() -> None:
    metrics.request("GET", "/bucket/", 200, 0.005)
    metrics.request("GET", "/bucket/", 200, 0.3)
    metrics.request("BREW", "/bucket/", 200, 100.0)
    found = read(metrics.text([metrics.durations()]))

    def upto(end: str, method: str = "GET") -> float:
        return found[f'memoryd_request_seconds_bucket{{method="{method}",route="/bucket/",le="{end}"}}']

    assert (upto("0.005"), upto("0.25"), upto("0.5"), upto("+Inf")) == (1, 1, 2, 2)
    assert (upto("10", "other"), upto("+Inf", "other")) == (0, 1)
    assert found['memoryd_request_seconds_sum{method="GET",route="/bucket/"}'] == pytest.approx(0.305)


def test_labels_are_escaped() -> None:
    family = metrics.Family("x", "gauge", "An x.", [("", (("a", 'quo"te\\\nline'),), 1.0)])
    assert metrics.text([family]).splitlines()[-1] == r'x{a="quo\"te\\\nline"} 1'


def test_what_could_not_be_kept_is_counted_again() -> None:
    metrics.take()
    metrics.count("claims", by=2)
    taken = metrics.take()
    metrics.count("claims")
    metrics.put_back(taken)
    assert metrics.take() == {("claims", ()): 3}


async def test_an_installation_without_work_shows_zeros(client: httpx.AsyncClient) -> None:
    found = read((await client.get("/metrics")).text)
    assert found["memoryd_workers"] == 0
    assert found["memoryd_oldest_due_seconds"] == 0
    assert any(name.startswith("memoryd_build_info{") for name in found)
