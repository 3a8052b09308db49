"""Categories of a text without a model: by words for the default ones, by likeness for a project's own. Pure.

Deterministic: equal texts and equal categories give equal answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.domain import category_words, lexemes
from app.model import DEFAULT_CATEGORIES, Vector, Vectors

MOST = 3  #: categories of one memory, found without a model
LONGEST = 4000  #: characters of a text that are read

_REST = frozenset(
    "misc other others miscellaneous general 其他 其它 杂项 未分类".split()
)  # for what no other one wants
#: A project's own category fits a text when its likeness is at least so far above its usual one, in standard deviations;
#: above that of every default category without a word in common; and nearly the highest of the own ones. On a set of ours
#: (bench/categorization.py: 67 texts, 6 lists, English and Chinese) precision is 0.95 and recall 0.91; without taking off
#: the usual likeness, which differs much from category to category, they are 0.57 and 0.86.
LEAST, NEAR = 0.5, 0.3
_SHARED = 2  # terms that a text and a category's description have in common, where no likeness is known
#: Words of a description that are about descriptions.
_FILLER = re.compile(
    r"\b(?:for users? (?:who|interested in)|includes?|(?:content )?related to|tracks?|documents?|(?:basic )?information about|"
    r"(?:that )?the user(?:'s)?|users?|(?:any|every)thing about)\b|用户的?|有关|关于",
    re.IGNORECASE,
)
_ITEM = re.compile(r"""~?(?:'([^']+)'|"([^"]+)"|(\S+))""")


@dataclass(frozen=True, slots=True)
class Category:
    """A name that memories may get."""

    name: str  # exactly as it was given
    meaning: str | None = None

    @property
    def text(self) -> str:
        """Name and meaning as one text."""
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).replace("_", " ").replace("-", " ")
        return f"{spaced}: {self.meaning}" if self.meaning else spaced

    @property
    def likened(self) -> str:
        """What is embedded of it: `text` without words that stand in every description."""
        return " ".join(_FILLER.sub("", self.text).split()).strip(" ,") or self.name


def listed(raw: Sequence[Any] | None) -> tuple[Category, ...]:
    """Return the categories of a list as it was given: objects of names and descriptions, or bare names.

    None and an empty list mean the default ones.
    """
    if not raw:
        return tuple(Category(name, category_words.MEANINGS[name]) for name in DEFAULT_CATEGORIES)
    pairs: dict[str, str | None] = {}
    for item in raw:
        for name, meaning in item.items() if isinstance(item, Mapping) else ((item, None),):
            pairs.setdefault(name, meaning or None)
    return tuple(Category(name, meaning) for name, meaning in pairs.items())


def own(categories: Sequence[Category]) -> tuple[Category, ...]:
    """Return those that no words are known for: their likeness to a text decides."""
    return tuple(c for c in categories if c.name not in category_words.ENGLISH and not is_rest(c))


def is_rest(category: Category) -> bool:
    """Whether it is for what no other category wants."""
    return category.name.strip().casefold() in _REST


#: Statements about nothing in particular, which show how like a category is to any text at all.
REFERENCES = category_words.REFERENCES


@lru_cache(maxsize=1)
def anchors() -> tuple[Category, ...]:
    """Return what a project's own categories are measured against: the default ones with a subject, in both languages."""
    chinese = category_words.MEANINGS_ZH
    meanings = (category_words.MEANINGS, chinese)
    return tuple(Category(name, meaning[name]) for meaning in meanings for name in chinese)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Vectors of one embedding model, rows of unit length."""

    text: Vector  # of the memory
    own: Vectors  # `likened` of `own(categories)`, in order
    anchors: Vectors  # `likened` of `anchors()`, in order
    references: Vectors  # of REFERENCES, in order


def of(text: str, categories: Sequence[Category], likeness: Likeness | None = None) -> tuple[str, ...]:
    """Return the names of the categories that the text belongs to, the surest first; at most `MOST`.

    `likeness` judges a project's own categories; without it shared words do.
    """
    text = text[:LONGEST]
    known = {c.name for c in categories}
    found = {name: weight for name, weight in by_words(text).items() if name in known}
    mine = own(categories)
    found |= _by_words_shared(text, mine) if likeness is None else _by_likeness(text, mine, likeness)
    place = {c.name: number for number, c in enumerate(categories)}
    best = sorted(found, key=lambda name: (-found[name], place[name]))[:MOST]
    rest = [c.name for c in categories if is_rest(c)]
    return tuple(best or rest[:1])


# By words


@dataclass(frozen=True, slots=True)
class _Words:
    stems: Mapping[str, float]
    phrases: Mapping[str, float]
    chinese: Mapping[str, float]


def by_words(text: str) -> dict[str, float]:
    """Return the default categories that the text has words of, each with a weight of 1 or more."""
    folded = " ".join(re.findall(r"[\w'-]+", text.casefold().replace("’", "'")))
    padded, stems = f" {folded} ", set(lexemes.analyse(text))
    weights: dict[str, float] = {}
    for name, words in _lexicon().items():
        total = sum(words.stems[stem] for stem in stems & words.stems.keys())
        total += sum(weight for phrase, weight in words.phrases.items() if f" {phrase} " in padded)
        total += sum(weight for word, weight in words.chinese.items() if word in text)
        if total >= 1:
            weights[name] = total
    return weights


@lru_cache(maxsize=1)
def _lexicon() -> dict[str, _Words]:
    return {
        name: _Words(
            stems={
                stem: weight
                for word, weight in _items(category_words.ENGLISH[name])
                if " " not in word
                for stem in lexemes.query(word)
            },
            phrases={word: weight for word, weight in _items(category_words.ENGLISH[name]) if " " in word},
            chinese=dict(_items(category_words.CHINESE[name])),
        )
        for name in category_words.ENGLISH
    }


def _items(words: str) -> list[tuple[str, float]]:
    found = [(next(filter(None, match.groups())), match[0]) for match in _ITEM.finditer(words)]
    return [(word, 0.5 if whole.startswith("~") else 1.0) for word, whole in found]


# By likeness


def _by_words_shared(text: str, mine: Sequence[Category]) -> dict[str, float]:
    terms = set(lexemes.analyse(text))
    shared = {c.name: len(terms & _terms(c.text)) for c in mine}
    named = {c.name for c in mine if terms & _terms(Category(c.name).text)}
    return {name: float(count) for name, count in shared.items() if count >= _SHARED or name in named}


def _by_likeness(text: str, mine: Sequence[Category], likeness: Likeness) -> dict[str, float]:
    """A category fits when it is more like the text than usual, and than every default one that means something else."""
    if not mine:
        return {}
    others = _unusual(likeness.anchors, likeness)
    values = _unusual(likeness.own, likeness)
    top = max(values)
    found = {}
    for category, value in zip(mine, values, strict=True):
        alike = {c.name for c in anchors() if _alike(category.text, c.text)}
        rivals = [v for c, v in zip(anchors(), others, strict=True) if c.name not in alike]
        if value >= LEAST and value > max(rivals, default=LEAST) and value >= top - NEAR:
            found[category.name] = 1 + value
    return found


def _unusual(rows: Vectors, likeness: Likeness) -> list[float]:
    """Return how far the likeness of each row to the text is above its mean likeness, in standard deviations."""
    usual = likeness.references @ rows.T
    spread = np.maximum(usual.std(axis=0), 1e-6)
    return [float(value) for value in (rows @ likeness.text - usual.mean(axis=0)) / spread]


@lru_cache(maxsize=1024)
def _terms(text: str) -> frozenset[str]:
    return frozenset(lexemes.analyse(text))


def _alike(one: str, other: str) -> bool:
    return bool(_terms(one) & _terms(other))
