"""Two memories that say the same: the less full one is marked and hidden, and no word of either changes."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain import add
from app.model import State
from tests import fakes
from tests.worker.conftest import Lab, facts

OLD = "User likes green tea"


def repeating(text: str, *numbers: Any, **more: Any) -> dict[str, Any]:
    return {"facts": [{"text": text, "speaker": "user", "same": list(numbers), **more}]}


async def told(lab: Lab, second: dict[str, Any], said: str, **options: Any) -> tuple[dict[str, State], Any]:
    """Tell of green tea, then something more; return the states by text, and what the second event says."""
    rt = lab.runtime(llm=fakes.FakeLLM([facts(OLD), second]))
    await lab.add(rt, "I like green tea", **options)
    await add.process(rt, await lab.claim(rt))
    accepted = await lab.add(rt, said)
    await add.process(rt, await lab.claim(rt))
    return {memory.text: memory.state for memory in await lab.memories()}, (await lab.event(accepted)).metadata


async def test_of_two_that_say_the_same_the_new_one_is_marked(lab: Lab) -> None:
    states, metadata = await told(lab, repeating("User likes tea green", 0), "Green tea is what I like")
    assert states == {OLD: State.ACTIVE, "User likes tea green": State.MERGED}
    by_text = {memory.text: memory for memory in await lab.memories()}
    assert by_text["User likes tea green"].replaced_by == by_text[OLD].id
    assert metadata["merged"] == [{"id": str(by_text["User likes tea green"].id), "into": str(by_text[OLD].id)}]


async def test_the_fuller_one_stays_in_sight(lab: Lab) -> None:
    fuller = "User likes green mint tea"
    states, _ = await told(lab, repeating(fuller, 0), "I like green mint tea")
    assert states == {OLD: State.MERGED, fuller: State.ACTIVE}


@pytest.mark.parametrize(
    ("second", "options"),
    [
        (repeating("User likes black coffee in the morning", 0), {}),  # its vector is far
        (repeating("User likes tea green", 7, -1, "x", None), {}),  # invented ids
        (repeating("User likes tea green"), {}),  # the model does not say so
        (repeating("User likes tea green", 0, replaces=[0]), {}),
    ],
)
async def test_nothing_is_merged_on_half_the_evidence(lab: Lab, second: dict[str, Any], options: Any) -> None:
    states, metadata = await told(lab, second, "I like green tea, black coffee in the morning", **options)
    assert State.MERGED not in states.values()
    assert len(states) == 2, "and nothing is lost"
    assert "merged" not in metadata
