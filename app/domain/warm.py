"""What is loaded at its first use is loaded before there is any: dictionaries and tables take a second or more.

In a thread that second still belongs to others, because much of it holds the interpreter; at the start nobody waits.
"""

from __future__ import annotations

import asyncio

from app.domain import lexemes, link
from app.providers import tokens
from app.runtime import Runtime

#: A sentence in each language that has a dictionary, with something to look up in it.
_SENTENCES = ("The children were running to meet Alice in Paris last May.", "王小明上个月搬到上海，很喜欢喝茶。")


async def up(rt: Runtime) -> None:
    """Load what reading, indexing and embedding a text needs. Before the first claim, and before the API says ready."""
    await asyncio.to_thread(_load, counts=rt.llm is not None)


def _load(*, counts: bool) -> None:
    for sentence in _SENTENCES:
        lexemes.analyse(sentence)
        link.entities(sentence)
    if counts:
        tokens.count(_SENTENCES[0])
