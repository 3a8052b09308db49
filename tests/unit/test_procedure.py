"""Records of an agent's run: what a model is asked, how its answers become one, and what is done without it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app import errors
from app.domain import procedure
from app.domain.conversation import Conversation, Found
from app.model import Message
from tests import fakes


def run_of(*said: str, **options: Any) -> Conversation:
    roles = ("user", "assistant")
    messages = tuple(Message(roles[index % 2], text, index=index) for index, text in enumerate(said))
    return Conversation(messages, datetime(2026, 5, 1, tzinfo=UTC), **options)


def answer(*steps: Any, goal: str = "", state: str = "", after: str = "") -> dict[str, Any]:
    return {"goal": goal, "steps": list(steps), "state": state, "next": after}


def step(action: str, result: str = "", error: str | None = None) -> dict[str, Any]:
    return {"action": action, "result": result, "error": error}


async def record(llm: Any, conversation: Conversation, window_tokens: int = 4000) -> str:
    (fact,) = (await procedure.facts(llm, conversation, window_tokens=window_tokens)).facts
    assert fact.role == "assistant"
    return fact.text


async def test_a_run_becomes_one_text_with_its_exact_results() -> None:
    said = answer(
        step("Opened https://shop.example/api?id=42", 'HTTP 200 {"price": 12.5}'),
        step("Called pay(12.5)", "", "Card declined: 51"),
        goal="Buy item 42 for at most 15 euros",
        state="Item found, not paid",
        after="Ask for another card",
    )
    llm = fakes.FakeLLM([said])
    assert await record(llm, run_of("Buy item 42", "I opened the shop.")) == (
        "Goal: Buy item 42 for at most 15 euros\n"
        "Steps:\n"
        '1. Opened https://shop.example/api?id=42\n   Result: HTTP 200 {"price": 12.5}\n'
        "2. Called pay(12.5)\n   Error: Card declined: 51\n"
        "State: Item found, not paid\n"
        "Next: Ask for another card"
    )
    (name, system, prompt), = llm.calls  # fmt: skip
    assert name == "procedural_record"
    assert "I opened the shop." in prompt
    assert "I opened the shop." not in system


async def test_a_long_run_is_read_in_windows_that_know_what_came_before() -> None:
    llm = fakes.FakeLLM([
        answer(step("First"), goal="The goal", state="Begun"),
        answer(step("Second"), state="Going on", after="More"),
        answer(step("Third"), goal="The goal, and quickly", state="Finished"),
    ])  # fmt: skip
    words = "word " * 180
    assert await record(llm, run_of(words, words, words), window_tokens=220) == (
        "Goal: The goal, and quickly\nSteps:\n1. First\n2. Second\n3. Third\nState: Finished"
    )
    assert '"goal: The goal"' in llm.calls[1][2]
    assert '"First"' in llm.calls[1][2]
    assert '"Second"' not in llm.calls[1][2]


async def test_an_answer_too_long_to_end_is_asked_for_in_halves() -> None:
    cut = errors.ModelRefused("cut", reason="cut")
    llm = fakes.FakeLLM([cut, answer(step("First")), answer(step("Second"))])
    assert await record(llm, run_of("a", "b")) == "Steps:\n1. First\n2. Second"


@pytest.mark.parametrize("given", [{}, answer(), {"steps": [7], "goal": None, "state": "", "next": "x"}, []])
async def test_an_answer_that_records_nothing_is_refused(given: Any) -> None:
    with pytest.raises(errors.ModelRefused):
        await record(fakes.FakeLLM([given]), run_of("a"))


async def test_the_instructions_for_the_agent_reach_the_model() -> None:
    llm = fakes.FakeLLM([answer(step("a"))])
    await record(llm, run_of("a", custom_instructions="For users", agent_custom_instructions="Log prices only"))
    assert "Log prices only" in llm.calls[0][1]
    assert "For users" not in llm.calls[0][1]


async def test_without_a_model_every_message_is_a_step() -> None:
    long = "x" * 501
    assert await record(None, run_of("Buy item 42", "Opened the shop.", f" {long} ")) == (
        f"Steps:\n1. user: Buy item 42\n2. assistant: Opened the shop.\n3. user: {'x' * 500}… (+1 characters)"
    )


async def test_a_record_says_how_many_steps_it_leaves_out() -> None:
    text = await record(None, run_of(*(f"{number} {'x' * 300}" for number in range(500))))
    lines = text.splitlines()
    assert len(text) <= procedure.MAX_CHARS
    assert lines[1].startswith("1. user: 0 ")
    assert lines[-1].startswith("500. assistant: 499 ")
    (gap,) = (line for line in lines if line.startswith("…"))
    assert f"… {500 - (len(lines) - 2)} steps are left out …" == gap


async def test_a_run_that_says_nothing_is_no_memory() -> None:
    assert await procedure.facts(None, run_of(" "), window_tokens=100) == Found([])
