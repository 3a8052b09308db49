"""What an event keeps of an add is what was asked for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from app.domain import request
from app.domain.request import Request
from app.model import Message, Owners

FULL = Request(
    messages=(Message("user", "Hi, I'm Ann", "ann", 0), Message("assistant", "你好", None, 1)),
    owners=Owners("u", "a", "p", "r"),
    metadata={"n": 1, "big": 2**70},
    infer=False,
    immutable=True,
    expiration_date=date(2030, 1, 2),
    timestamp=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
    observation_at=datetime(2024, 5, 6, tzinfo=UTC),
    timezone="Asia/Shanghai",
    custom_instructions="short",
    agent_custom_instructions="shorter",
    includes="sport",
    excludes="money",
    custom_categories=[{"a": "b"}],
)
LEAST = Request(messages=(Message("user", "x"),), owners=Owners(user_id="u"))


@pytest.mark.parametrize("asked", [FULL, LEAST])
def test_a_request_survives_its_event(asked: Request) -> None:
    assert request.from_payload(request.to_payload(asked)) == asked


def test_the_payload_speaks_the_words_of_the_wire_and_leaves_out_what_was_not_said() -> None:
    payload = request.to_payload(LEAST)
    assert payload == {"messages": [{"role": "user", "content": "x"}], "user_id": "u", "infer": True}
    assert request.to_payload(FULL)["observation_datetime"] == "2024-05-06T00:00:00+00:00"


def test_the_zone_of_the_speakers_is_utc_unless_named() -> None:
    assert (LEAST.zone.key, FULL.zone.key) == ("UTC", "Asia/Shanghai")


@pytest.mark.parametrize("payload", [{}, {"messages": [{}], "infer": True}, {"messages": 3, "infer": True}])
def test_a_payload_of_another_form_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        request.from_payload(payload)


def test_a_fingerprint_ignores_the_order_of_keys_and_nothing_else() -> None:
    one = request.fingerprint("ADD", {"a": 1, "b": [1, 2]})
    assert one == request.fingerprint("ADD", {"b": [1, 2], "a": 1})
    others = [("ADD", {"a": 1, "b": [2, 1]}), ("DELETE", {"a": 1, "b": [1, 2]}), ("ADD", {"a": "1", "b": [1, 2]})]
    assert one not in {request.fingerprint(kind, payload) for kind, payload in others}
