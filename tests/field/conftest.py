"""The service as a program sees it that stores, lists and searches; every answer is compared with its description."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.model import ProjectSettings
from app.providers import llm
from app.runtime import Runtime
from app.store.db import Conn
from tests import factories
from tests.api.conftest import client, conformity, described, plain_logs
from tests.model_stub import ModelStub, Reply, says

__all__ = ["client", "conformity", "described", "plain_logs"]

ADD, LIST, SEARCH = "/v3/memories/add/", "/v3/memories/", "/v3/memories/search/"
OWNERS = {"user_id", "agent_id", "app_id", "run_id"}


class Service:
    """A client, and the few sentences that tests say to it."""

    def __init__(self, client: httpx.AsyncClient, rt: Runtime) -> None:
        self.client, self.rt = client, rt

    async def add(self, *texts: str, **body: Any) -> list[str]:
        """Store texts as they are, for u1 unless another owner is named; return the ids of what was new."""
        answer = await self.client.post(ADD, json=said(*texts) | {"infer": False} | body_for(body))
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "SUCCEEDED"
        return [result["id"] for result in answer.json()["results"]]

    async def tell(self, *texts: str, **body: Any) -> dict[str, Any]:
        """Have the facts of texts extracted; return the event at its end."""
        answer = await self.client.post(ADD, json=said(*texts) | body_for(body))
        assert answer.status_code == 200, answer.text
        async with asyncio.timeout(20):
            while True:
                await self.rt.queue.drain(self.rt)  # type: ignore[attr-defined]
                event = (await self.client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
                if event["status"] in ("SUCCEEDED", "FAILED"):
                    return event
                await asyncio.sleep(0.005)  # until the next attempt is due

    async def find(self, path: str, filters: Any = None, query: str = "x", **body: Any) -> list[dict[str, Any]]:
        """List, or search everything that the filters leave; return the memories."""
        if path == SEARCH:
            body = {"query": query, "threshold": 0, "top_k": 1000} | body
        answer = await self.client.post(path, json={"filters": filters or {"user_id": "u1"}, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()["results"]

    async def list(self, filters: Any = None, **body: Any) -> list[str]:
        """Return the texts of a list, newest first."""
        return [memory["memory"] for memory in await self.find(LIST, filters, **body)]

    async def search(self, query: str, filters: Any = None, **body: Any) -> list[str]:
        """Return the texts of a search without a threshold, best first."""
        return [memory["memory"] for memory in await self.find(SEARCH, filters, query, **body)]

    async def get(self, memory_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/memories/{memory_id}/")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        answer = await self.client.get(f"/v1/memories/{memory_id}/history/")
        assert answer.status_code == 200, answer.text
        return answer.json()

    @asynccontextmanager
    async def of(self, conn: Conn, **settings: Any) -> AsyncIterator[Service]:
        """Be another project, with these settings."""
        project = await factories.make_project(conn, settings=ProjectSettings(**settings))
        former = self.client.headers["Authorization"]
        self.client.headers["Authorization"] = f"Token {await factories.make_key(self.rt, project)}"
        yield self
        self.client.headers["Authorization"] = former


def said(*texts: str) -> dict[str, Any]:
    """Return these texts as messages of a user; none at all when there are none."""
    return {"messages": [{"role": "user", "content": text} for text in texts]} if texts else {}


def body_for(body: dict[str, Any]) -> dict[str, Any]:
    """Return `body`, with an owner."""
    return body if OWNERS & set(body) else {"user_id": "u1", **body}


@pytest.fixture
def service(client: httpx.AsyncClient, runtime: Runtime) -> Service:
    """Return the service without a model."""
    return Service(client, runtime)


@pytest.fixture
async def stub() -> AsyncIterator[ModelStub]:
    """Run a stand-in for a chat model."""
    with ModelStub() as stub:
        yield stub


@pytest.fixture
async def modelled(client: httpx.AsyncClient, runtime: Runtime, stub: ModelStub) -> AsyncIterator[Service]:
    """Return the service with `stub` as its model; a failed event is tried twice more, at once."""
    model = llm.ChatModel(stub.url, "stub", timeout_s=5)
    settings = runtime.settings.model_copy(update={"retry_delays_s": (0.01, 0.01)})
    rt = replace(runtime, llm=model, settings=settings)
    transport = httpx.ASGITransport(app=factories.make_app(rt))
    async with httpx.AsyncClient(transport=transport, base_url=client.base_url, headers=client.headers) as other:
        other.event_hooks = client.event_hooks
        yield Service(other, rt)
    await model.close()


def extraction(*replies: Reply) -> Callable[[dict[str, Any]], Reply]:
    """Return a script that answers extractions one after the other, the last reply for ever; other questions get nothing."""
    left = list(replies)

    def answer(asked: dict[str, Any]) -> Reply:
        if asked.get("response_format", {}).get("json_schema", {}).get("name") != "extracted_facts":
            return says({})
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def extractions(stub: ModelStub) -> int:
    """Return how often the model was asked for facts."""
    formats = [asked.get("response_format", {}) for asked in stub.requests]
    return sum(form.get("json_schema", {}).get("name") == "extracted_facts" for form in formats)
