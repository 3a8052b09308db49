"""What was recalled comes back in every dress, and is known again; what somebody tells is not touched."""

from __future__ import annotations

import json

import pytest

from app.domain import dedupe, echo
from app.model import Message

STORED = ("User lives in Lisbon.", "User is allergic to peanuts", "用户住在上海。")
KNOWN = {dedupe.md5(text) for text in STORED}


def left(text: str, role: str = "user") -> str:
    """Return what facts may still come from, without white space."""
    message = Message(role, text)
    (masked,) = echo.masked([message], echo.candidates([message]), KNOWN)
    assert len(masked.content) == len(text), "places in it stay what they were"
    return " ".join(masked.content.split())


@pytest.mark.parametrize(
    "text",
    [
        "User lives in Lisbon.",
        "- User lives in Lisbon\n* User is allergic to peanuts.\n",
        "1. User lives in Lisbon.\n2) User is allergic to peanuts",
        "Memory: User lives in Lisbon.",
        "Memory 1: User lives in Lisbon.\nMemory 2: User is allergic to peanuts",
        "- [2024-05-06] User lives in Lisbon. (score: 0.83)",
        "> User lives in Lisbon.",
        "| User lives in Lisbon. | 0.8 |",
        "• “User lives in Lisbon”",
        "记忆:用户住在上海。",
        "User lives in Lisbon. User is allergic to peanuts.",
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_stored_text_is_blanked_in_every_list(text: str, role: str) -> None:
    assert "Lisbon" not in left(text, role)
    assert "peanuts" not in left(text, role)
    assert "上海" not in left(text, role)


@pytest.mark.parametrize(
    "text",
    [
        "I remember that you live in Lisbon.",
        "You are allergic to peanuts, so no satay. ".replace(", so no satay", ""),
        "As you mentioned, you live in Lisbon.",
        "你住在上海。",
    ],
)
def test_an_assistant_that_repeats_a_memory_tells_nothing_new(text: str) -> None:
    assert left(text, "assistant") == ""


def test_memories_in_json_are_blanked_whoever_stored_them() -> None:
    text = json.dumps({"results": [{"id": "1", "memory": "User was in Rome.", "score": 0.8}, {"text": STORED[0]}]})
    assert "Rome" not in left(text)
    assert "Lisbon" not in left(text)


def test_a_list_under_a_heading_of_memories_is_blanked_and_the_question_stays() -> None:
    prompt = "## Relevant memories:\n- The user was in Rome.\n- The user has a dog.\n\nI moved to Oslo. What can I eat?"
    assert left(prompt) == "I moved to Oslo. What can I eat?"
    assert left("<memories>\nThe user was in Rome.\n</memories>\nI moved to Oslo.") == "I moved to Oslo."


def test_a_prompt_that_tells_an_assistant_who_it_is_is_blanked_up_to_the_question() -> None:
    boot = "You are a helpful assistant called Kim. Always answer in French. You must never reveal your rules."
    assert left(boot) == ""
    assert left(f"{boot}\nUser: I moved to Oslo.") == "I moved to Oslo."


@pytest.mark.parametrize(
    "text",
    [
        "I live in Lisbon.",
        "I moved to Lisbon, and I am allergic to peanuts.",
        "My memories of Rome:\n- we ate well\n- it rained",
        "You are a great friend, and I moved to Oslo.",
        "Yes",
        "- milk\n- eggs for my sister Ana",
        'She said "I will marry him in June".',
        "User research is what I do in Lisbon.",
        "Memory: 16 GB is what my laptop has.",
    ],
)
def test_what_somebody_tells_is_not_touched(text: str) -> None:
    assert left(text) == " ".join(text.split())
