from __future__ import annotations

import pytest

from app.domain import sentences


def texts(text: str) -> list[str]:
    return [s.text for s in sentences.split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved. It is quiet!", ["I moved.", "It is quiet!"]),
        (
            "Dr. Wu sees me at 9 a.m. on Fridays. Mr. J. Smith too.",
            ["Dr. Wu sees me at 9 a.m. on Fridays.", "Mr. J. Smith too."],
        ),
        ("Version 2.3.1 is on example.com/a.b now. Good.", ["Version 2.3.1 is on example.com/a.b now.", "Good."]),
        ("我搬家了。新家在望京！你呢？", ["我搬家了。", "新家在望京！", "你呢？"]),
        ("Really?! Yes... I think so", ["Really?!", "Yes...", "I think so"]),
        ('She said "stop." Then she left.', ['She said "stop."', "Then she left."]),
        ("one line\nanother line", ["one line", "another line"]),
        ("Plans:\n- learn Spanish\n2. run", ["Plans:", "learn Spanish", "run"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_says_so(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_a_span_points_at_its_words_in_the_message() -> None:
    message = "Hello there.\n\n- **Anna** lives in Oslo.  She is 40."
    for sentence in sentences.split(message):
        assert " ".join(message[sentence.start : sentence.end].replace("**", "").split()) == sentence.text


def test_code_logs_and_tables_are_no_sentences() -> None:
    message = (
        "My build broke.\n```\nsecret = load()\n```\n2026-11-30 10:00:01 ERROR db down\n"
        'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no\n| a | b |\n{"key": 1}\nI use Debian.'
    )
    assert texts(message) == ["My build broke.", "I use Debian."]


def test_an_unclosed_fence_hides_the_rest() -> None:
    assert texts("Look:\n```py\nx = 1\nmore") == ["Look:"]


def test_a_wrapped_line_goes_on() -> None:
    first = "I have been working on the same garden for the last seven years and"
    assert texts(f"{first}\nit is nearly done.") == [f"{first} it is nearly done."]


def test_an_overlong_sentence_is_cut_and_nothing_is_lost() -> None:
    text = ", ".join(f"item number {i}" for i in range(200))
    parts = sentences.split(text)
    assert all(len(p.text) <= sentences.LONGEST for p in parts)
    assert "".join(p.text for p in parts).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我用 Python 写代码", True),
        ("I live in 北京 now with my family", False),
        ("東京に住んでいます", False),
        ("hello", False),
    ],
)
def test_chinese_is_told_by_its_characters(text: str, expected: bool) -> None:
    assert sentences.is_chinese(text) is expected
