"""Categories without a model."""

from __future__ import annotations

import numpy as np
import pytest

from app.domain import categories, category_words
from app.domain.categories import Category, Likeness
from app.model import DEFAULT_CATEGORIES

DEFAULT = categories.listed(None)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("User lives in Berlin.", "personal_details"),
        ("User's sister Maria has two kids.", "family"),
        ("User works at Acme Corp as a nurse.", "professional_details"),
        ("User plays tennis every Sunday", "sports"),
        ("User is planning a trip to Japan in May", "travel"),
        ("User had sushi for dinner", "food"),
        ("User plays the piano", "music"),
        ("User is allergic to peanuts", "health"),
        ("User bought a new MacBook", "technology"),
        ("User paints watercolors", "hobbies"),
        ("User bought a red dress", "fashion"),
        ("User watched Dune at the cinema", "entertainment"),
        ("User graduated from MIT in 2019", "milestones"),
        ("User prefers short answers", "user_preferences"),
        ("User met John at the station", "misc"),
        ("用户住在北京", "personal_details"),
        ("用户的妹妹今年结婚", "family"),
        ("用户在青禾公司上班", "professional_details"),
        ("用户每周打羽毛球", "sports"),
        ("用户下个月去日本旅行", "travel"),
        ("用户喜欢吃火锅", "food"),
        ("用户会弹钢琴", "music"),
        ("用户对花生过敏", "health"),
        ("用户买了一台新电脑", "technology"),
        ("用户在学摄影", "hobbies"),
        ("用户买了一条裙子", "fashion"),
        ("用户昨天看了电影", "entertainment"),
        ("用户升职了", "milestones"),
        ("用户最喜欢的颜色是绿色", "user_preferences"),
        ("会议室在三楼", "misc"),
    ],
)
def test_words_tell_the_default_categories(text: str, name: str) -> None:
    found = categories.of(text, DEFAULT)
    assert name in found
    assert len(found) <= categories.MOST
    assert ("misc" in found) == (name == "misc")


def test_every_default_category_has_words_and_a_meaning() -> None:
    assert set(category_words.ENGLISH) == set(category_words.CHINESE) == set(DEFAULT_CATEGORIES) - {"misc"}
    assert categories.listed([]) == DEFAULT
    assert [category.name for category in DEFAULT] == list(DEFAULT_CATEGORIES)
    assert all(category.meaning for category in DEFAULT)


def test_lists_are_read_as_they_were_given() -> None:
    given = [{"workLifeBalance": "d"}, {"AIResearch": "d", "work_life": None}, "bare", {"AIResearch": "again"}]
    assert categories.listed(given) == (
        Category("workLifeBalance", "d"), Category("AIResearch", "d"), Category("work_life"), Category("bare"),
    )  # fmt: skip


def test_a_shorter_list_of_default_names_is_all_there_is() -> None:
    wanted = categories.listed([{"food": "what I eat"}, "travel"])
    assert categories.of("User had sushi for dinner in Tokyo", wanted) == ("food",)
    assert categories.of("User bought a red dress", wanted) == ()


def test_without_vectors_shared_words_judge_an_own_category() -> None:
    wanted = categories.listed([{"billing": "invoices, payments and refunds"}, {"other": "the rest"}])
    assert categories.of("User asked about billing", wanted) == ("billing",)
    assert categories.of("User wants refunds of two payments", wanted) == ("billing",)
    assert categories.of("User likes tea", wanted) == ("other",)


def test_likeness_counts_against_what_is_usual() -> None:
    """A category that is like everything wins nothing by it."""
    wanted = categories.listed([{"broad": "b"}, {"right": "r"}])
    plain = np.array([1, 0, 0], np.float32)
    text = np.array([0.6, 0.8, 0], np.float32)
    references = np.stack([plain, np.array([0.8, 0, 0.6], np.float32), np.array([0.9, 0.1, 0.4], np.float32)])
    anchors = np.tile(plain, (len(categories.anchors()), 1))
    own = np.array([[0.99, 0.1, 0], [0.1, 0.99, 0]], np.float32)
    assert categories.of("zzz", wanted, Likeness(text, own, anchors, references)) == ("right",)
    assert categories.of("zzz", wanted, Likeness(plain, own, anchors, references)) == ()


@pytest.mark.parametrize("text", ["", "…", "\u0000", "a" * 100_000, "吃" * 50_000])
def test_any_text_has_an_answer(text: str) -> None:
    assert len(categories.of(text, DEFAULT)) <= categories.MOST
