"""Texts to index terms of the keyword arm: the same analysis for memories and for queries. Pure.

English words become the stem of their lemma; identifiers, numbers and versions stay whole and are also taken apart;
Chinese and Japanese are cut into words and into pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from datetime import datetime
from functools import lru_cache

import rjieba
import simplemma
import Stemmer

#: Terms of one text that are indexed. A pasted file of a megabyte must not fill the index with itself.
MAX_TERMS = 4096
#: Characters of one text that are read for its terms: more than `MAX_TERMS` words have. A pattern that runs over a whole
#: megabyte keeps the interpreter to itself for a tenth of a second each.
READ_CHARS = 100_000
#: A longer message before is no context of this one: it would drown it.
NEIGHBOUR_CHARS = 500

#: Longest term, in characters; what is longer is a blob, found by its beginning.
_TERM_CHARS = 64
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
# Words that stand in most sentences and tell nothing; "may" is one, so the month has a term of its own.
_STOP = frozenset(
    """a about after again all also am an and any are aren as at be because been before being both but by can cannot
    could couldn d did didn do does doesn doing don done down during each else few for from further get gets getting got
    had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself
    just let ll m may me might more most must my myself no nor not now of off on once only or other our ours ourselves
    out over own re s same shall she should shouldn so some such t than that the their theirs them themselves then there
    these they this those through to too under until up upon us ve very was wasn we were weren what when where which
    while who whom whose why will with without won would wouldn you your yours yourself yourselves""".split()
)
# Particles and pronouns of Chinese and Japanese.
_STOP_CJK = frozenset(
    "的 了 是 在 我 你 他 她 它 们 我们 你们 他们 她们 和 与 就 都 也 很 吗 呢 吧 啊 呀 着 过 地 得 把 被 这 那 个 有 没有 不 会 要 "
    "什么 怎么 哪里 哪 谁 一个 这个 那个 は が を に で と も の へ や か ね よ な だ です ます した して する いる ある".split()
)

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\U00020000-\U0003ffff"
_HIRAGANA = r"\u3040-\u309f"
_KATAKANA = r"\u30a0-\u30ff"
_HANGUL = r"\uac00-\ud7af"
_LETTERS = rf"(?:(?![{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}])[^\W_])+"  # and digits, of every other script
_TOKEN = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<hiragana>[{_HIRAGANA}]+)|(?P<katakana>[{_KATAKANA}]+)|(?P<hangul>[{_HANGUL}]+)"
    # A word, or an identifier: words joined by the marks that stand inside names, versions, paths and addresses.
    rf"|(?P<word>{_LETTERS}(?:[-._@:/&'’+#]+{_LETTERS})*(?:\+\+|\#)?)"
)
_PARTS = re.compile(r"[^\W_]+")
_CLITIC = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# "May" is a month beside a number or after a word that names a time; otherwise it is the verb.
_MAY = re.compile(
    r"(?<=\d )May\b|\bMay(?=,? \d)|(?<=\b[iI]n )May\b|(?<=\b[oO]f )May\b|(?<=\blast )May\b|(?<=\bnext )May\b"
)
_MAY_TERM = "maymonth"

_stemmer = Stemmer.Stemmer("english")


def analyse(text: str) -> list[str]:
    """Return the index terms of `text` in reading order, repeats kept; none for stop words and punctuation alone."""
    terms: list[str] = []
    for match in _TOKEN.finditer(_fold(text[:READ_CHARS])):
        kind, run = match.lastgroup, match[0]
        terms.extend(_word(run) if kind == "word" else _characters(run, kind))
        if len(terms) >= MAX_TERMS:
            break
    return terms[:MAX_TERMS]


def document(text: str, *, actor: str | None, said_at: datetime | None, previous: str | None) -> dict[str, int]:
    """Return how often each term counts in the keyword document of a memory.

    `actor`: the speaker's name. `said_at`: when the message was said; its year, month and day become terms.
    `previous`: text of the message before it in the same scope, with its speaker in front; a long one is left out.
    """
    counts = Counter(analyse(text))
    around = analyse(actor) if actor else []
    if said_at is not None:
        around += _date(said_at)
    if previous and len(previous) <= NEIGHBOUR_CHARS:
        around += analyse(previous)
    counts.update(around)
    return dict(counts)


def query(text: str) -> list[str]:
    """Return the distinct terms that a query is looked up by, in reading order; empty when no word of it tells anything."""
    return list(dict.fromkeys(analyse(text)))


def _fold(text: str) -> str:
    """Return one form of what people write in several: width, case, accents, thousands' commas."""
    text = _MAY.sub(_MAY_TERM, unicodedata.normalize("NFKC", text))
    text = _CLITIC.sub("", _THOUSANDS.sub("", text.casefold()))
    if text.isascii():
        return text
    bare = (char for char in unicodedata.normalize("NFD", text) if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", "".join(bare))


def _word(token: str) -> list[str]:
    """Return the terms of one word or identifier: whole if it is more than a word, and each of its parts."""
    parts = _PARTS.findall(token)
    terms = [term for part in parts if (term := _normal(part))]
    return [token[:_TERM_CHARS], *terms] if len(parts) > 1 or token != parts[0] else terms


@lru_cache(maxsize=65_536)
def _normal(word: str) -> str:
    """Return the index form of one folded word; empty for a stop word. Lemma first: the stemmer misses ran → run."""
    if word in _STOP:
        return ""
    if not word.isalpha() or not word.isascii():
        return word[:_TERM_CHARS]
    lemma = simplemma.lemmatize(word, lang="en").casefold() if len(word) < 30 else word
    if lemma in (word[:-3], word[:-2]) and lemma[-1:] == lemma[-2:-1]:
        lemma = word  # preferr of preferring: the lemmatiser only cuts there, and the stemmer knows the doubled letter
    return str(_stemmer.stemWord(lemma))[:_TERM_CHARS]


def _characters(run: str, kind: str | None) -> list[str]:
    """Return the terms of a run of Chinese, Japanese or Korean characters.

    Dictionary words are precise and miss names; pairs of characters miss nothing. Both are indexed.
    """
    pairs = [run[start : start + 2] for start in range(len(run) - 1)]
    words = rjieba.cut_for_search(run) if kind == "han" else [run]
    singles = list(run) if kind == "han" else []
    terms = dict.fromkeys([*words, *pairs, *singles])
    return [term[:_TERM_CHARS] for term in terms if term not in _STOP_CJK]


def _date(at: datetime) -> list[str]:
    month = _MONTHS[at.month - 1]
    return [str(at.year), _MAY_TERM if month == "may" else _normal(month), str(at.day)]
