"""What the tests say to clients, and what they expect back."""

from __future__ import annotations

from typing import Any

import pytest
from driving import Raised

UNKNOWN = "3b241101-e2bb-4255-8caf-4136c566a962"  #: well-formed, and nobody's id


def refusal(kind: str, call: Any, *args: Any, **named: Any) -> Raised:
    """Return what the client raised, which is of the class `kind`."""
    with pytest.raises(Raised) as caught:
        call(*args, **named)
    assert caught.value.kind == kind, caught.value
    return caught.value


def raised_by(call: Any, *args: Any, **named: Any) -> Raised | None:
    """Return what the call raised, if it raised."""
    try:
        call(*args, **named)
    except Raised as raised:
        return raised
    return None


def say(text: str) -> list[dict[str, str]]:
    """Return the messages of somebody who says this."""
    return [{"role": "user", "content": text}]


def texts(answer: dict[str, Any]) -> list[str]:
    """Return the texts of the memories in an answer."""
    return [memory["memory"] for memory in answer["results"]]
