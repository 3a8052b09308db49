"""Where memories come from on their way into a service: a file, or another service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from app import errors
from app.domain import move
from app.model import OWNER_FIELDS

PAGE_SIZE = 200  #: the most that a list gives
LONGEST_LINE = 8 * 2**20  #: bytes; a longer one could not be sent


@dataclass(frozen=True, slots=True)
class Line:
    """One memory as its source has it."""

    place: str  # for people: the line of a file, or the id of a service
    data: bytes = b""  # JSON on one line
    fault: str | None = None  # why it cannot be read; then there is no data


@dataclass(frozen=True, slots=True)
class Source:
    """Memories to take in, in whatever order they come."""

    lines: Iterator[Line]
    total: int | None = None  # how many there are, if it is known before


def client(base_url: str, key: str) -> httpx.Client:
    """Return a client of a service that speaks this interface."""
    # A proxy cannot reach what runs on this machine.
    local = httpx.URL(base_url).host in ("localhost", "127.0.0.1", "::1")
    headers = {"Authorization": f"Token {key}"}
    timeout = httpx.Timeout(300.0, connect=10.0)  # a batch of long texts takes an embedder minutes
    return httpx.Client(base_url=base_url.rstrip("/"), headers=headers, timeout=timeout, trust_env=not local)


def refusal(response: httpx.Response) -> str:
    """Return why a service refused, in its own words."""
    try:
        body = response.json()
        said = body.get("detail") or body.get("error") or body.get("message")
    except (ValueError, AttributeError):
        said = None
    return f"HTTP {response.status_code}: {str(said or response.text)[:300]}"


# Files


def of_file(path: Path) -> Source:
    """Read a file of lines, or of one JSON value: a list, or a page or an export of the hosted platform.

    Raises: SetupError when it cannot be read at all.
    """
    try:
        with path.open("rb") as file:
            start = file.read(64 * 1024).lstrip()
        whole = _whole(path) if start.startswith(b"[") or _is_document(start) else None
    except OSError as error:
        raise errors.SetupError(f"Cannot read {path}: {error.strerror}.") from error
    if whole is not None:
        lines = (Line(f"memory {at}", orjson.dumps(one)) for at, one in enumerate(whole, start=1))
        return Source(lines, len(whole))
    with path.open("rb") as file:
        total = sum(1 for line in file if line.strip())
    return Source(_lines_of(path), total)


def of_standard_input() -> Source:
    """Read lines from standard input."""
    return Source(_read(enumerate(sys.stdin.buffer, start=1)))


def _lines_of(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        yield from _read(enumerate(file, start=1))


def _read(numbered: Iterator[tuple[int, bytes]]) -> Iterator[Line]:
    for number, raw in numbered:
        data = raw.strip().removeprefix(b"\xef\xbb\xbf")
        if not data:
            continue
        fault = _fault(data)
        yield Line(f"line {number}", b"" if fault else data, fault)


def _fault(data: bytes) -> str | None:
    if len(data) > LONGEST_LINE:
        return f"has more than {LONGEST_LINE} bytes"
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return f"is not JSON: {error}"
    return None if isinstance(value, dict) else "is no JSON object"


def _is_document(start: bytes) -> bool:
    """Whether a file that begins with an object is one value and not lines of them."""
    first = start.split(b"\n", 1)[0].strip()
    if not start.startswith(b"{"):
        return False
    try:
        value = orjson.loads(first)
    except orjson.JSONDecodeError:
        return True  # the object goes on in the next line
    return isinstance(value, dict) and isinstance(value.get("results"), list)


def _whole(path: Path) -> list[Any] | None:
    """Return the memories of a file that is one JSON value; None: it is not, so let each line speak for itself."""
    try:
        value = orjson.loads(path.read_bytes())
    except ValueError:
        return None
    if isinstance(value, dict):
        value = value.get("results", value.get("memories", [value]))
    return value if isinstance(value, list) else None


# Services


def of_service(base_url: str, key: str) -> Source:
    """Read all memories of another service: as lines if it is a memoryd, else as pages of its list.

    Raises: SetupError when it does not answer, or refuses the key.
    """
    with client(base_url, key) as http:
        try:
            with http.stream("POST", "/v1/exports/raw/", json={}) as answer:
                is_memoryd = answer.status_code == httpx.codes.OK and move.COUNT_HEADER in answer.headers
                total = int(answer.headers[move.COUNT_HEADER]) if is_memoryd else None
                if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
                    answer.read()
                    raise errors.SetupError(f"{base_url} refuses the key: {refusal(answer)}")
        except httpx.HTTPError as error:
            raise errors.SetupError(f"{base_url} does not answer ({error}).") from error
    return Source(streamed(base_url, key), total) if is_memoryd else Source(listed(base_url, key))


def streamed(
    base_url: str,
    key: str,
    filters: dict[str, Any] | None = None,
    *,
    on_count: Callable[[int], None] = lambda _count: None,
) -> Iterator[Line]:
    """Yield all memories of a memoryd that match; `on_count` hears how many there are.

    Raises: SetupError when the stream breaks off.
    """
    body = {"filters": filters} if filters else {}
    try:
        with client(base_url, key) as http, http.stream("POST", "/v1/exports/raw/", json=body) as answer:
            if answer.status_code != httpx.codes.OK:
                answer.read()
                raise errors.SetupError(f"{base_url} refuses: {refusal(answer)}")
            on_count(int(answer.headers.get(move.COUNT_HEADER, 0)))
            for number, line in enumerate(_split(answer.iter_bytes()), start=1):
                yield Line(f"memory {number}", line)
    except httpx.HTTPError as error:
        raise errors.SetupError(f"{base_url} stopped answering ({error}); run the command again.") from error


def _split(parts: Iterator[bytes]) -> Iterator[bytes]:
    # Not httpx's own: it also splits at characters that JSON leaves inside of texts.
    rest = b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
    if rest:
        yield rest


def listed(base_url: str, key: str) -> Iterator[Line]:
    """Yield all memories of a service that only has a list, each once.

    One walk for each kind of owner: a root OR asks for that kind and says nothing about the others, on a service that
    demands null of owners that are not named, too. Raises: SetupError.
    """
    seen: set[str] = set()
    with client(base_url, key) as http:
        for name in OWNER_FIELDS:
            filters = {"OR": [{name: "*"}]}
            for memory in _pages(http, {"filters": filters, "show_expired": True, "include_merged": True}):
                known = str(memory.get("id") or orjson.dumps(memory))
                if known not in seen:
                    seen.add(known)
                    yield Line(f"memory {known[:80]}", orjson.dumps(memory))


def _pages(http: httpx.Client, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    page = 1
    while True:
        try:
            answer = http.post("/v3/memories/", params={"page": page, "page_size": PAGE_SIZE}, json=body)
        except httpx.HTTPError as error:
            raise errors.SetupError(f"{http.base_url} stopped answering ({error}); run the command again.") from error
        if answer.status_code == httpx.codes.NOT_FOUND and page > 1:
            return  # some of them were deleted meanwhile
        if answer.status_code != httpx.codes.OK:
            raise errors.SetupError(f"{http.base_url} refuses to list memories: {refusal(answer)}")
        found = answer.json()
        results = found if isinstance(found, list) else found.get("results", [])
        yield from (memory for memory in results if isinstance(memory, dict))
        if isinstance(found, list) or not found.get("next") or not results:
            return
        page += 1
