"""Input that breaks others: refused or taken, never a fault, never slow."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.api.conftest import json_of

ADD, LIST, SEARCH = "/v3/memories/add/", "/v3/memories/", "/v3/memories/search/"
JSON = {"Content-Type": "application/json"}


def raw_add(**parts: bytes) -> bytes:
    """Return an add as bytes, with parts of it replaced by raw JSON."""
    given = {"messages": b'"I like tea."', "user_id": b'"u1"', "infer": b"false", **parts}
    return b"{" + b",".join(b'"' + name.encode() + b'":' + value for name, value in given.items()) + b"}"


async def send(client: httpx.AsyncClient, body: bytes, path: str = ADD) -> httpx.Response:
    return await client.post(path, content=body, headers=JSON)


@pytest.mark.parametrize("path", [ADD, LIST, SEARCH])
@pytest.mark.parametrize("body", [b"[]", b'"x"', b"{", b"", b"\xff\xfe", b"null", b"5", b"{}x"])
async def test_body_that_is_no_object_is_400(client: httpx.AsyncClient, path: str, body: bytes) -> None:
    assert (await send(client, body, path)).status_code == 400


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "application/json; charset=nope",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "x",
    ],
)
async def test_content_type_does_not_matter(client: httpx.AsyncClient, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    assert (await client.post(ADD, content=raw_add(), headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        raw_add(user_id=b'"a\\u0000b"'),
        raw_add(metadata=b'{"a\\u0000": 1}'),
        raw_add(metadata=b'{"a": {"b\\u0000c": 1}}'),
        raw_add(custom_instructions=b'"x\\u0000"'),
        raw_add(messages=b'"a\x00b"'),
        raw_add(messages=b'"\\ud83d here"'),
        raw_add(user_id=b'"\\ud800"'),
        raw_add(metadata=b'{"k": "\\udfff"}'),
        raw_add(metadata=b'{"k": NaN}'),
        raw_add(metadata=b'{"k": -Infinity}'),
        raw_add(metadata=b'{"k": 1e999}'),
        raw_add(metadata=b'{"k": ' + b"9" * 5000 + b"}"),
        raw_add(messages=b'"\xc3("'),
        raw_add(metadata=b'{"k": ' + b"[" * 900 + b"]" * 900 + b"}"),
        raw_add(metadata=b'{"k": ' + b'{"k":' * 900 + b"1" + b"}" * 900 + b"}"),
        raw_add(metadata=b"[" * 100_000 + b"]" * 100_000),
        raw_add(user_id=b"1e400"),
        raw_add(timestamp=b"1e300"),
        raw_add(timestamp=b"-1e300"),
    ],
    ids=lambda body: body[30:70].decode("latin-1").replace("\x00", "NUL"),
)  # fmt: skip
async def test_what_a_database_could_not_keep_is_400_and_nothing_is_stored(
    client: httpx.AsyncClient, body: bytes
) -> None:
    started = time.perf_counter()
    answer = await send(client, body)
    assert answer.status_code == 400
    assert time.perf_counter() - started < 1
    listed = await client.post(LIST, json={"filters": {"user_id": "*"}})
    assert listed.json()["count"] == 0


async def test_nul_leaves_texts_and_metadata_values(client: httpx.AsyncClient) -> None:
    answer = await send(client, raw_add(messages=b'"a\\u0000b"', metadata=b'{"k": ["x\\u0000y", {"z": "\\u0000"}]}'))
    assert answer.json()["results"][0]["memory"] == "ab"
    memory = (await client.get(f"/v1/memories/{answer.json()['results'][0]['id']}/")).json()
    assert memory["metadata"] == {"k": ["xy", {"z": ""}]}
    changed = await client.put(f"/v1/memories/{memory['id']}/", content=b'{"text": "c\\u0000d"}')
    assert changed.json()["memory"] == "cd"


@pytest.mark.parametrize("path", [LIST, SEARCH])
@pytest.mark.parametrize(
    "filters",
    [
        {"user_id": "a\0"},
        {"user_id": "u", "metadata": {"k": "\0"}},
        {"user_id": "u", "metadata": {"k\0": 1}},
        {"user_id": "u", "keywords": {"contains": "\0"}},
        {"user_id": ["u"]},
        {"user_id": {"in": []}},
        {"user_id": {"gt": "a"}},
        {"user_id": {"$ne": "a"}},
        {"user_id": "u", "created_at": {"gte": "soon"}},
        {"user_id": "u", "created_at": {"gte": 1e308}},
        {"AND": [{"user_id": "u"}] * 201},
        {"AND": "x"},
        {"OR": []},
        {"NOT": 5},
        {"user_id); DROP TABLE memories; --": "x"},
    ],
)
async def test_filter_that_cannot_be_honoured_is_400(
    client: httpx.AsyncClient, path: str, filters: dict[str, Any]
) -> None:
    answer = await client.post(path, json={"query": "x", "filters": filters})
    assert (answer.status_code, answer.json()["error"] == answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize(("depth", "status"), [(10, 200), (11, 400), (30, 400)])
async def test_filters_nest_ten_deep(client: httpx.AsyncClient, depth: int, status: int) -> None:
    node: dict[str, Any] = {"user_id": "u"}
    for _ in range(depth):
        node = {"AND": [node]}
    assert (await client.post(LIST, json={"filters": node})).status_code == status


@pytest.mark.parametrize(
    "value", ["'; DROP TABLE memories; --", "%", "_", "\\", '"', "a\\'b", "{}", "\u202e", "\ufeff"]
)
async def test_values_are_data(client: httpx.AsyncClient, value: str) -> None:
    await client.post(ADD, json={"messages": "plain", "user_id": "u1", "infer": False, "metadata": {value: value}})
    hit = await client.post(LIST, json={"filters": {"user_id": "u1", "metadata": {value: value}}})
    assert hit.json()["count"] == 1
    miss = await client.post(LIST, json={"filters": {"user_id": "u1", "keywords": {"contains": value}}})
    assert miss.json()["count"] == 0


async def test_ten_thousand_messages_are_taken_and_one_more_is_not(client: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "content": "x"}] * 10_000
    assert (await client.post(ADD, json={"user_id": "u1", "messages": messages})).status_code == 200
    answer = await client.post(ADD, json={"user_id": "u1", "messages": [*messages, messages[0]]})
    assert (answer.status_code, "MEMORYD_MAX_MESSAGES" in answer.json()["detail"]) == (400, True)


async def test_lone_surrogate_written_as_an_escape_is_400(client: httpx.AsyncClient) -> None:
    body = json_of({"messages": "cut emoji \ud83d here", "user_id": "u1"})
    assert b"\\ud83d" in body
    assert (await send(client, body)).status_code == 400


@pytest.mark.parametrize(
    "path", [b"/v1/memories/%00/", b"/v1/memories/%ff/", b"/v1/event/%ff%fe/", b"/%00", b"/v1/memories/%C3%A4/"]
)
async def test_path_of_odd_bytes_is_a_client_error(client: httpx.AsyncClient, path: bytes) -> None:
    answer = await client.get(httpx.URL("http://memoryd.test").copy_with(raw_path=path))
    assert answer.status_code in (400, 404)


@pytest.mark.parametrize("query", [b"page=%00", b"page=%ff", b"page=1&page=2", b"page_size=" + b"9" * 5000, b"&&==&"])
async def test_query_of_odd_bytes_is_no_fault(client: httpx.AsyncClient, query: bytes) -> None:
    url = httpx.URL("http://memoryd.test").copy_with(raw_path=b"/v3/memories/?" + query)
    answer = await client.post(url, json={"filters": {"user_id": "u"}})
    assert answer.status_code in (200, 400, 404)


@pytest.mark.parametrize(
    "address",
    ["/v1/memories/?user_id=%ff", "/v1/memories/?user_id=%ED%A0%80", "/v2/entities/user/%ff/", "/v1/memories/%c0%80/"],
)
async def test_address_that_is_no_text_is_refused(client: httpx.AsyncClient, address: str) -> None:
    answer = await client.delete(address)
    assert answer.status_code == 400
    assert "UTF-8" in answer.json()["detail"]
