"""The interface, tried by what its description says: every operation with bodies that fit it, and with some that do not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import uvicorn
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from app import api, config
from app.runtime import Runtime
from app.store import db as databases
from tests import conftest, factories, fakes

EXAMPLES = 5  # of each kind for each operation; a few seconds in all


def no_fault(ctx: Any, answer: Any, case: Any) -> None:
    """Refuse every 5xx but the one that a route declares for what memoryd does not offer."""
    declared = case.operation.definition.raw["responses"]
    assert answer.status_code < 500 or (answer.status_code == 501 and "501" in declared), answer.text


CHECKS = [
    no_fault,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]

described = schemathesis.openapi.from_dict(yaml.safe_load(api.openapi_yaml()))
operations = {f"{found.ok().method.upper()} {found.ok().path}": found.ok() for found in described.get_all_operations()}


@dataclass(frozen=True)
class Live:
    """A service that listens, and the ids of things that are in it."""

    url: str
    headers: dict[str, str]
    ids: dict[str, str]


@pytest.fixture(scope="module")
async def live(postgres_dsn: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """Run the API on a port of its own, in a thread, over a database of its own."""
    ready: Future[tuple[str, str]] = Future()
    server = uvicorn.Server(uvicorn.Config(app=None, log_config=None, lifespan="off"))  # type: ignore[arg-type]
    async with conftest._clone(postgres_dsn, template) as dsn:
        work = _serve(server, dsn, tmp_path_factory.mktemp("data"), ready)
        thread = threading.Thread(target=asyncio.run, args=(work,), daemon=True)
        thread.start()
        url, secret = await asyncio.wait_for(asyncio.wrap_future(ready), 60)
        headers = {"Authorization": f"Token {secret}"}
        async with httpx.AsyncClient(base_url=url, headers=headers) as client:
            ids = await _furnish(client)
        yield Live(url, headers, ids)
        server.should_exit = True
        await asyncio.to_thread(thread.join, 30)


async def _serve(server: uvicorn.Server, dsn: str, data: Path, ready: Future[tuple[str, str]]) -> None:
    db = await databases.Database.open(dsn, pool_size=4, statement_cache=256)
    rt = Runtime(config.load(data=data), db, fakes.RecordingQueue(), None, fakes.FakeEmbedder())
    async with db.transaction(None) as conn:
        project = await factories.make_project(conn)
    secret = await factories.make_key(rt, project)
    server.config.app = factories.make_app(rt)
    listening = server.config
    listening.host, listening.port = "127.0.0.1", 0
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    ready.set_result((f"http://127.0.0.1:{port}", secret))
    await serving
    await db.close()


async def _furnish(client: httpx.AsyncClient) -> dict[str, str]:
    """Put something of every kind into the service; return path parameters that lead to it."""
    ping = (await client.get("/v1/ping/")).json()
    added = await client.post("/v3/memories/add/", json={"messages": "likes tea", "user_id": "u1", "infer": False})
    webhook = await client.post(
        f"/api/v1/webhooks/projects/{ping['project_id']}/",
        json={"url": "https://93.184.216.34/hook", "name": "hook", "event_types": ["memory_add"]},
    )
    return {
        "memory_id": added.json()["results"][0]["id"],
        "event_id": added.json()["event_id"],
        "org_id": ping["org_id"],
        "project_id": ping["project_id"],
        "webhook_id": webhook.json().get("webhook_id", "wh_1"),
        "entity_type": "user",
        "entity_id": "u1",
    }


def _lead(case: Any, ids: dict[str, str]) -> None:
    """Replace what nobody guesses: ids in the path, the query and the body, and filters, which any object is by its schema."""
    for place in (case.path_parameters, case.query, case.body):
        if isinstance(place, dict):
            place.update({name: ids[name] for name in place if name in ids})
            if "filters" in place and place is case.body:
                place["filters"] = {"user_id": "u1"}
    if isinstance(case.body, dict):
        for item in case.body.get("memories") or ():
            if isinstance(item, dict):
                item["memory_id"] = ids["memory_id"]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (name, mode)
        for name, operation in operations.items()
        for mode in schemathesis.GenerationMode
        if mode.is_positive or operation.body or operation.query  # any text is a path
    ],
    ids=str,
)
def test_every_answer_is_one_that_the_description_promises(
    live: Live, name: str, mode: schemathesis.GenerationMode
) -> None:
    operation = operations[name]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode), known=st.sampled_from((mode.is_positive, False)))
    def attempt(case: Any, known: bool) -> None:
        if known and operation.method != "delete":  # a delete that succeeds would take the others' things away
            _lead(case, live.ids)
        answer = case.call(base_url=live.url, headers=live.headers, timeout=30)
        case.validate_response(answer, checks=CHECKS, headers=live.headers)

    attempt()
