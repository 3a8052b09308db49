"""POST /v3/memories/add/ with images, documents and an agent's run, as clients send them."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import httpx
import pytest

from app import config
from app.runtime import Runtime
from tests import fakes
from tests.file_stub import FileStub, Served

ADD = "/v3/memories/add/"
PNG = f"data:image/png;base64,{base64.b64encode(bytes.fromhex('89504e470d0a1a0a') + bytes(300)).decode()}"
NOTE = base64.b64encode(b"My sister Maria lives in Lisbon.").decode()


async def add(client: httpx.AsyncClient, content: Any, **body: Any) -> httpx.Response:
    return await client.post(ADD, json={"messages": [{"role": "user", "content": content}], "user_id": "u1", **body})


def part(type_: str, url: object) -> dict[str, Any]:
    return {"type": type_, type_: {"url": url}}


async def test_one_part_without_a_list_becomes_memories(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    answer = await add(client, part("txt_url", NOTE))
    assert (answer.status_code, answer.json()["status"]) == (200, "PENDING"), answer.text
    await queue.drain(runtime)
    event = (await client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
    assert event["status"] == "SUCCEEDED", event
    assert "Maria lives in Lisbon" in event["results"][0]["memory"]
    assert event["payload"]["messages"][0]["content"] == [part("txt_url", NOTE)]


async def test_a_failing_address_ends_in_an_event_that_says_why(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    with FileStub(a=Served(b"I like tea.")) as host:
        answer = await add(client, [{"type": "text", "text": "I like tea."}, part("pdf_url", host.url("a"))])
        await queue.drain(runtime)
        assert host.requests == []
    event = (await client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
    assert (event["status"], event["error_code"], event["results"]) == ("FAILED", "outbound_refused", [])
    assert "MEMORYD_OUTBOUND_ALLOW_NETS" in event["error"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([{"type": "image_url"}], "image_url without a url"),
        ([{"type": "video_url", "video_url": {"url": "https://a.example/b"}}], "video_url are not known"),
        (part("txt_url", "%%%"), "nor base64"),
        (part("image_url", "data:text/plain;base64,aGk="), "no image type"),
        (part("pdf_url", "ftp://a.example/b.pdf"), "neither an http(s) URL"),
        (part("pdf_url", "http://user:word@a.example/b.pdf"), "password"),
        (part("image_url", PNG), "MEMORYD_LLM_BASE_URL"),
        ([part("txt_url", NOTE)] * 21, "MEMORYD_MEDIA_MAX_PARTS"),
    ],
)
async def test_what_can_never_be_read_is_refused_at_once(client: httpx.AsyncClient, content: Any, reason: str) -> None:
    answer = await add(client, content)
    assert answer.status_code == 400
    assert reason in answer.json()["detail"]
    assert "user:word" not in answer.text


async def test_an_event_shows_an_image_in_brief(client: httpx.AsyncClient, runtime: Runtime) -> None:
    seeing = dataclasses.replace(runtime, llm=fakes.FakeLLM())  # type: ignore[arg-type]
    client._transport.app.state.runtime = seeing  # type: ignore[attr-defined]
    answer = await add(client, part("image_url", PNG))
    assert answer.status_code == 200, answer.text
    event = (await client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
    shown = event["payload"]["messages"][0]["content"][0]["image_url"]["url"]
    assert shown == f"{PNG[:80]}… ({len(PNG)} characters)"


# infer: false


async def test_direct_import_skips_and_reports_what_is_not_text(client: httpx.AsyncClient) -> None:
    messages = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "has a red bike"}, part("image_url", "http://10.0.0.1/a")],
        },
        {"role": "user", "content": part("pdf_url", "https://files.example/a.pdf")},
        {"role": "user", "content": {"type": "video_url"}},
    ]
    answer = await client.post(ADD, json={"messages": messages, "user_id": "u1", "infer": False})
    assert answer.status_code == 200, answer.text
    assert [result["memory"] for result in answer.json()["results"]] == ["has a red bike"]
    assert [(entry["index"], entry["reason"].split(" are ")[0]) for entry in answer.json()["skipped"]] == [
        (0, "parts of type image"), (1, "parts of type pdf"), (2, "parts of type video_url"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content", [part("image_url", PNG), [part("txt_url", NOTE), part("pdf_url", "https://a.example/b")]]
)
async def test_direct_import_of_nothing_but_media_is_refused(client: httpx.AsyncClient, content: Any) -> None:
    answer = await add(client, content, infer=False)
    assert answer.status_code == 400
    assert "infer: true" in answer.json()["detail"]


# An agent's run


async def test_a_run_is_one_memory_with_its_kind_in_the_metadata(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue
) -> None:
    body = {"user_id": None, "agent_id": "bot", "memory_type": "procedural_memory", "metadata": {"task": "buy"}}
    answer = await add(client, "Opened the shop and found item 42.", **body)
    assert answer.status_code == 200, answer.text
    await queue.drain(runtime)
    filters = {"AND": [{"agent_id": "bot"}, {"metadata": {"memory_type": "procedural_memory"}}]}
    (memory,) = (await client.post("/v3/memories/", json={"filters": filters})).json()["results"]
    assert memory["memory"] == "Steps:\n1. user: Opened the shop and found item 42."
    assert (memory["agent_id"], memory["user_id"]) == ("bot", None)
    assert memory["metadata"] == {"task": "buy", "memory_type": "procedural_memory"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"memory_type": "procedural_memory"}, "agent_id"),
        ({"memory_type": "procedural_memory", "agent_id": "bot", "infer": False}, "infer: false"),
        ({"memory_type": "semantic_memory", "agent_id": "bot"}, "memory_type"),
        ({"memory_type": 7, "agent_id": "bot"}, "memory_type"),
    ],
)
async def test_other_kinds_and_a_run_of_nobody_are_refused(
    client: httpx.AsyncClient, body: dict[str, Any], reason: str
) -> None:
    answer = await add(client, "I like tea.", **body)
    assert answer.status_code == 400
    assert reason in answer.json()["detail"]


async def test_no_kind_is_as_good_as_none(client: httpx.AsyncClient) -> None:
    assert (await add(client, "I like tea.", memory_type=None)).status_code == 200


def test_networks_are_opened_by_name() -> None:
    opened = config.load(outbound_allow_nets="10.0.0.0/8, fd00::/8").outbound_allow_nets
    assert [str(network) for network in opened] == ["10.0.0.0/8", "fd00::/8"]
