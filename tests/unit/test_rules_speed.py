"""No text makes a pattern slow: repeats of every class of character, 100 kB of them."""

from __future__ import annotations

import inspect
import re
import time
from datetime import UTC, datetime
from types import ModuleType

import pytest

from app.domain import (
    dates,
    dates_en,
    dates_zh,
    link,
    machine,
    names_zh,
    refer,
    rules,
    rules_en,
    rules_zh,
    sentences,
    talk_en,
    voice,
)
from app.domain.conversation import Conversation
from app.model import Message

SIZE = 100_000
LIMIT_S = (
    0.15  # of the processor, for one pattern over SIZE characters: 0.05 on a quiet machine; a bad pattern takes seconds
)
UNITS = (
    *"aA1 \n\t.,?!'’\"“-–_([{<@#:;/我的吗月年一周《，。é",
    *(
        "I ",
        "my ",
        "A ",
        "Aa ",
        "a ",
        "1 ",
        "a.",
        "a@",
        "1-",
        "A-1",
        "and ",
        "May 1 ",
        "my a ",
        "in A ",
        "I'm ",
        "2023 ",
        "for ",
    ),
    *(
        "，我",
        "我的",
        "第一",
        "1月",
        "在A",
        "been a ",
        "A's ",
        "of A ",
        "Mr. ",
        "just ",
        "wow, ",
        "can you ",
        "my dog ",
        "a_",
        "a=",
        "a: b ",
        "[a",
        "a  ",
        "aB1/",
        "<a ",
        "you are a ",
        "Memories of ",
        "记忆",
    ),
)
MODULES = (
    dates,
    dates_en,
    dates_zh,
    link,
    machine,
    names_zh,
    refer,
    rules,
    rules_en,
    rules_zh,
    sentences,
    talk_en,
    voice,
)


def _patterns(module: ModuleType) -> list[tuple[re.Pattern[str], bool]]:
    """Patterns of a module; true: it is only ever matched at one place, so its cost is not paid at every character."""
    source = inspect.getsource(module)
    named = {k: v for k, v in vars(module).items() if isinstance(v, re.Pattern)}
    found = [
        (p, not re.search(rf"\b{name}\.(?:search|finditer|findall|sub|split)\(", source)) for name, p in named.items()
    ]
    return found + [(p, False) for p, _ in getattr(module, "_RULES", ())]


def _seconds(pattern: re.Pattern[str], text: str, *, anchored: bool) -> float:
    started = time.process_time()
    if anchored:
        pattern.match(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - started


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_pattern_is_quick_on_hostile_text(module: ModuleType) -> None:
    slow = []
    for unit in UNITS:
        text = (unit * (SIZE // len(unit) + 1))[: SIZE - 1] + "!"
        for pattern, anchored in _patterns(module):
            # Growth is what matters: a tenth of the text shows it at a hundredth of the price of a bad pattern.
            if _seconds(pattern, text[: SIZE // 10], anchored=anchored) < LIMIT_S / 10:
                continue
            if min(_seconds(pattern, text, anchored=anchored) for _ in range(5)) > LIMIT_S:
                slow.append((unit, pattern.pattern[:80]))
    assert slow == []


@pytest.mark.parametrize("unit", [*UNITS, "I went home and my ", "昨天我去了上海。", "a:\n- b\n", "```\n", "u@e.com "])
def test_facts_dates_and_entities_grow_in_line_with_the_text(unit: str) -> None:
    text = (unit * (8_000 // len(unit) + 1))[:8_000]
    base = datetime(2026, 11, 30, tzinfo=UTC)
    started = time.process_time()
    rules.facts(Conversation((Message("user", text), Message("assistant", text, "Ann", 1)), base))
    link.entities(text)
    dates.resolve(text, base=base)
    assert time.process_time() - started < 3  # some 0.3 s on a quiet machine
