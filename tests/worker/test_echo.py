"""Fifty rounds of recalling and adding again leave what was there, with a model that repeats all it reads and without one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.domain import add
from app.model import Message, Owners
from tests import fakes
from tests.worker.conftest import Lab

DRESSES = (
    "- {}",
    "Memory: {}",
    "{}",
    "1. {}",
    '"{}"',
    "* [2024-05-06] {} (score: 0.81)",
)


class Parrot(fakes.FakeLLM):
    """Takes every line that it is shown as new for a fact."""

    async def complete_json(self, _system: str, user: str, *, name: str, **_options: Any) -> Any:
        if name != "extracted_facts":
            return {"memories": []}
        lines = user.split("<new_messages>\n")[1].split("\n</new_messages>")[0].split("\n")
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return {
            "facts": [
                {"messages": [line["message"]], "quote": text, "text": text, "speaker": line["speaker"]}
                for line in told
                for text in filter(str.strip, line["text"].split("\n"))
            ]
        }


def prompt(round_: int, texts: list[str]) -> str:
    """Return recalled texts as an application puts them into a conversation, in another form each time."""
    if round_ % 8 == 6:
        return json.dumps({"results": [{"id": str(n), "memory": text, "score": 0.8} for n, text in enumerate(texts)]})
    if round_ % 8 == 7:
        return "Relevant memories:\n" + "\n".join(f"- {text}" for text in texts)
    return "\n".join(DRESSES[round_ % len(DRESSES)].format(text) for text in texts)


@pytest.mark.parametrize("modelled", [True, False])
async def test_fifty_rounds_of_recalling_and_adding_leave_no_copy(lab: Lab, modelled: bool) -> None:
    rt = lab.runtime(llm=Parrot() if modelled else None)
    await lab.add(
        rt,
        "I live in Lisbon.",
        "That is nice.",
        "My sister Ana works as a nurse.",
        "Very good.",
        "I am allergic to peanuts.",
    )
    await add.process(rt, await lab.claim(rt))
    before = {memory.text for memory in await lab.memories()}
    assert len(before) >= 3
    for round_ in range(50):
        shown = Message(("user", "assistant")[round_ % 2], prompt(round_, sorted(before)))
        owners = Owners(user_id="alice", run_id=f"r{round_}" if round_ % 3 == 0 else None)
        await lab.add(rt, messages=(shown,), owners=owners)
        await add.process(rt, await lab.claim(rt))
        assert [m.text for m in await lab.memories() if m.text not in before] == [], prompt(round_, sorted(before))
    assert len(await lab.memories()) == len(before), "nor in another scope of the user"


async def test_what_is_new_beside_a_recalled_list_is_remembered(lab: Lab) -> None:
    rt = lab.runtime()
    await lab.add(rt, "I live in Lisbon.")
    await add.process(rt, await lab.claim(rt))
    (known,) = await lab.memories()
    await lab.add(rt, f"Relevant memories:\n- {known.text}\n\nMy sister Ana works as a nurse in Porto.")
    await add.process(rt, await lab.claim(rt))
    texts = [memory.text for memory in await lab.memories()]
    assert len(texts) == 2
    assert "Porto" in texts[1]


async def test_another_users_memory_is_no_echo(lab: Lab) -> None:
    rt = lab.runtime()
    for user in ("alice", "bob"):
        await lab.add(rt, "The office is on floor 2.", owners=Owners(user_id=user))
        await add.process(rt, await lab.claim(rt))
    assert len(await lab.memories()) == 2
