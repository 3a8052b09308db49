"""A body becomes a JSON object, or is refused."""

from __future__ import annotations

import time

import pytest

from app import config, errors
from app.api import wire

SETTINGS = config.Settings(_env_file=None)


def parse(body: bytes, *cleaned: str) -> dict[str, object]:
    return wire.parse(body, SETTINGS, cleaned=frozenset(cleaned))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"  ", b"[]", b'"x"', b"5", b"null", b"{", b"\xff\xfe", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}',
        b'{"a": "\\ud800"}', b'{"a": "\\ud83d here"}', b'{"\\udc00": 1}', b'{"a": "\xc3("}', b'{"a": "\x00"}',
        b'{"a": ' + b"9" * 5000 + b"}", b'{"a": 1} x', b"\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(errors.InvalidRequest, match="body"):
        parse(body)


@pytest.mark.parametrize("levels", [63, 62])
def test_depth_within_the_limit_is_taken(levels: int) -> None:
    assert parse(b'{"a": ' + b"[" * levels + b"]" * levels + b"}")


@pytest.mark.parametrize("levels", [64, 900, 3_000, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_beyond_the_limit_is_refused_at_once(levels: int, opened: bytes, closed: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(errors.InvalidRequest):
        parse(b'{"a": ' + opened * levels + (b"1" if closed == b"}" else b"") + closed * levels + b"}")
    assert time.perf_counter() - started < 1


def test_many_brackets_on_one_level_are_no_depth() -> None:
    assert len(parse(b'{"a": [' + b"[]," * 500 + b"[]]}")["a"]) == 501  # type: ignore[arg-type]


def test_too_many_messages_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(errors.InvalidRequest, match="MEMORYD_MAX_MESSAGES"):
        parse(b'{"messages": [' + b"1," * 10_000 + b"1]}")


def test_nul_is_removed_from_what_people_wrote() -> None:
    body = b'{"messages": [{"content": "a\\u0000b"}], "metadata": {"k": ["x\\u0000"]}}'
    assert parse(body, "messages", "metadata") == {"messages": [{"content": "ab"}], "metadata": {"k": ["x"]}}


@pytest.mark.parametrize(
    "body",
    [
        b'{"user_id": "a\\u0000"}',
        b'{"filters": {"metadata": {"k": "\\u0000"}}}',
        b'{"query": "\\u0000x"}',
        b'{"metadata": {"\\u0000": 1}}',
    ],
)
def test_nul_is_refused_where_it_would_change_what_is_meant(body: bytes) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"U\+0000"):
        parse(body, "messages", "metadata")


def test_the_words_backslash_u0000_are_no_nul() -> None:
    assert parse(b'{"query": "\\\\u0000"}') == {"query": "\\u0000"}
