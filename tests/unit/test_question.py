"""What is read from a query's words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.domain import question

NOW = datetime(2024, 3, 6, 12, tzinfo=UTC)  # a Wednesday


def read(text: str) -> question.Question:
    return question.read(text, now=NOW)


def test_space_around_a_query_does_not_matter() -> None:
    assert read("  blue van \n") == read("blue van")


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("Where do I live?", "user"),
        ("What is my sister's name?", "user"),
        ("What does the user like?", "user"),
        ("Which book did you suggest to me?", "assistant"),
        ("What have you told me about taxes?", "assistant"),
        ("我住在哪里？", "user"),
        ("你推荐了哪本书？", "assistant"),
        ("Where does Anna live?", None),
        ("MYSQL index", None),
    ],
)
def test_first_and_second_person_point_at_a_role(text: str, role: str | None) -> None:
    assert read(text).role == role


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("When did we meet?", True),
        ("How long did it take?", True),
        ("什么时候去的？", True),
        ("いつ行きましたか", True),
        ("Who is it?", False),
    ],
)
def test_a_question_for_a_time_is_recognised(text: str, asks: bool) -> None:
    assert read(text).asks_when is asks


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("We met yesterday", True),
        ("born on 3 May", True),
        ("in 2019", True),
        ("上周去了北京", True),
        ("I may go", False),
        ("He likes tea", False),
        ("code 20191", False),
    ],
)
def test_a_memory_that_tells_a_time_is_recognised(text: str, tells: bool) -> None:
    assert question.tells_time(text) is tells


@pytest.mark.parametrize(
    ("text", "looks_up"),
    [
        ("zobaki-77", True),
        ("花生过敏", True),
        ("blue van", True),
        ("where is it", False),
        ("谁过敏", False),
        ("van?", False),
    ],
)
def test_words_that_are_no_question_are_looked_up(text: str, looks_up: bool) -> None:
    assert read(text).looks_up is looks_up


def test_a_named_time_becomes_a_window_counted_from_now() -> None:
    ((start, end),) = read("What did I do yesterday?").windows
    assert (start, end) == (datetime(2024, 3, 5, tzinfo=UTC), datetime(2024, 3, 6, tzinfo=UTC))
    ((start, end),) = read("What happened in July 2023?").windows
    assert (start, end) == (datetime(2023, 7, 1, tzinfo=UTC), datetime(2023, 8, 1, tzinfo=UTC))


def test_a_common_name_is_left_out_of_the_dense_query() -> None:
    asked = read("When did Anna's brother paint Riga?")
    frequencies = {"anna": 40, "riga": 1, "brother": 30}
    assert question.for_embedding(asked, 100, frequencies) == "When did brother paint Riga?"
    assert question.for_embedding(asked, 1000, frequencies) == asked.text


def test_a_small_scope_has_no_common_names() -> None:
    asked = read("What does Anna like?")
    assert question.for_embedding(asked, 4, {"anna": 2}) == asked.text


def test_a_query_of_a_common_name_alone_is_embedded_whole() -> None:
    assert question.for_embedding(read("Anna?"), 100, {"anna": 90}) == "Anna?"


@pytest.mark.parametrize(
    ("text", "actors", "named"),
    [
        ("What did Caroline buy?", {"Caroline", "Melanie"}, "Caroline"),
        ("what did caroline buy?", {"Caroline Smith", "Melanie Smith"}, "Caroline Smith"),
        ("Did Caroline meet Melanie?", {"Caroline", "Melanie"}, None),
        ("What is carolines?", {"Caroline"}, None),
        ("小明买了什么？", {"小明", "小红"}, "小明"),
        ("What did he buy?", {"", "Al"}, None),
        ("What did Al buy?", {"Al"}, "Al"),
    ],
)
def test_the_one_speaker_whom_a_question_names(text: str, actors: set[str], named: str | None) -> None:
    assert question.named_actor(read(text), actors) == named


def test_the_beginning_of_a_boundless_query_is_read() -> None:
    asked = question.read("tea with Bob " * 80_000 + "in Lisbon", now=NOW)
    assert len(asked.text) == question.READ_CHARS
    assert asked.norms == ("bob",)
