"""What becomes an index term, and that memories and queries meet."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.domain import lexemes


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("She ran with the children", "run child"),
        ("Two mice lived there", "mouse"),
        ("preferring better studies", "prefer good study"),
        ("Caroline's painting", "Caroline painted"),
        ("NAÏVE Café", "naive cafe"),
        ("Ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("paid 1,250 euros", "1250"),
        ("Straße", "STRASSE"),
        ("用户喜欢喝咖啡，住在北京海淀区", "咖啡 海淀 北京"),
        ("小明在字节跳动工作", "字节跳动"),
        ("她爱喝茶", "茶"),
        ("私は東京でコーヒーを飲みました", "コーヒー 東京"),
        ("서울에서 한국어 수업", "한국어"),
        ("работает в Москве", "Москве"),
    ],
)
def test_a_memory_and_a_query_meet_in_one_form(memory: str, query: str) -> None:
    assert set(lexemes.query(query)) <= set(lexemes.document(memory, actor=None, said_at=None, previous=None))


@pytest.mark.parametrize(
    ("token", "parts"),
    [
        ("user_id", {"user", "id"}),
        ("anna.berg@example.org", {"anna", "berg", "exampl", "org"}),
        ("v1.12.3", {"v1", "12"}),
        ("ORD-2231-x", {"2231"}),
        ("/var/lib/memoryd", {"var", "memoryd"}),
        ("well-known", {"know"}),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(token: str, parts: set[str]) -> None:
    terms = lexemes.analyse(f"see {token}.")
    assert token.strip("/").casefold() in terms
    assert parts <= set(terms)


def test_languages_with_signs_keep_them() -> None:
    assert {"c++", "c#"} <= set(lexemes.analyse("C++ or C#?"))


@pytest.mark.parametrize("text", ["", "?!…", "to be or not to be", "的 了 是", "🍵", "'s"])
def test_what_tells_nothing_has_no_terms(text: str) -> None:
    assert lexemes.query(text) == []


def test_may_is_a_month_only_beside_a_date() -> None:
    month = lexemes.document("x", actor=None, said_at=datetime(2023, 5, 7, tzinfo=UTC), previous=None)
    assert set(lexemes.analyse("in May")) & set(month)
    assert set(lexemes.analyse("7 May 2023")) <= set(month)
    assert not lexemes.analyse("I may")


def test_a_document_also_holds_speaker_date_and_the_message_before() -> None:
    document = lexemes.document(
        "tea, tea", actor="Anna Berg", said_at=datetime(2024, 2, 9, tzinfo=UTC), previous="Bob: Coffee or tea?"
    )
    assert document == {"tea": 3, "anna": 1, "berg": 1, "2024": 1, "februari": 1, "9": 1, "bob": 1, "coffe": 1}


def test_a_long_message_before_is_left_out() -> None:
    assert lexemes.document("tea", actor=None, said_at=None, previous="word " * 101) == {"tea": 1}


def test_a_query_names_each_term_once() -> None:
    assert lexemes.query("tea or more tea and teas") == ["tea"]


def test_a_pasted_file_does_not_fill_the_index() -> None:
    terms = lexemes.analyse(" ".join(f"x{number}" for number in range(100_000)) + " " + "a" * 10_000)
    assert len(terms) == lexemes.MAX_TERMS
    assert max(map(len, lexemes.analyse("b" * 10_000 + " 長" * 9))) <= 64


def test_analysis_is_the_same_every_time() -> None:
    text = "Anna 喜欢 running v1.2 コーヒー"
    assert lexemes.analyse(text) == lexemes.analyse(text)


def test_no_more_of_a_text_is_read_than_gives_its_terms() -> None:
    """A pattern that runs over a megabyte keeps the interpreter to itself, and every other request waits."""
    assert lexemes.analyse("the " * (lexemes.READ_CHARS // 4) + "lighthouse") == []
    assert lexemes.analyse("the " * (lexemes.READ_CHARS // 8) + "lighthouse") == ["lighthous"]
