"""Keys that are pinned to owners: what is inside, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import errors
from app.domain import pins
from app.model import Owners
from app.store import filters

ALICE = pins.read({"user_id": ["alice*"]})


@pytest.mark.parametrize(
    ("owners", "inside"),
    [
        (Owners(user_id="alice"), True),
        (Owners(user_id="alice-2", agent_id="bot"), True),
        (Owners(user_id="Alice"), False),
        (Owners(user_id="malice"), False),
        (Owners(agent_id="alice"), False),
    ],
)
def test_the_pinned_owner_must_be_there_and_match(owners: Owners, inside: bool) -> None:
    assert pins.allows(ALICE, owners) is inside


def test_patterns_of_one_field_are_alternatives_and_fields_all_count() -> None:
    both = pins.read({"user_id": ["alice", "bob"], "app_id": ["shop-*"]})
    assert pins.allows(both, Owners(user_id="bob", app_id="shop-1"))
    assert not pins.allows(both, Owners(user_id="bob"))
    assert not pins.allows(both, Owners(user_id="bob", app_id="shop"))


def test_no_pins_allow_everything() -> None:
    assert pins.allows({}, Owners(run_id="x"))
    assert pins.covers({}, "user", "x")


def test_an_owner_is_covered_when_nobody_elses_memory_can_name_it() -> None:
    assert pins.covers(ALICE, "user", "alice")
    assert not pins.covers(ALICE, "user", "bob")
    assert not pins.covers(ALICE, "agent", "alice")
    assert not pins.covers(pins.read({"user_id": ["alice"], "app_id": ["*"]}), "user", "alice")


@pytest.mark.parametrize(
    "raw", [{"user": ["x"]}, {"user_id": []}, {"user_id": [" "]}, {"user_id": ["x" * 256]}, {"user_id": ["a\0"]}]
)
def test_pins_that_say_nothing_are_refused(raw: dict[str, list[str]]) -> None:
    with pytest.raises(errors.InvalidRequest):
        pins.read(raw)


@given(pattern=st.text(alphabet="ab*%_\\.[\n", min_size=1), name=st.text(alphabet="ab%_\\.[\n", min_size=1))
def test_only_the_star_means_anything(pattern: str, name: str) -> None:
    """Against the plainest matcher there is; and as LIKE reads what the store makes of the pattern."""
    assert pins.allows({"user_id": (pattern,)}, Owners(user_id=name)) == star(pattern, name)
    assert like(filters._like(pattern), name) == star(pattern, name)


def star(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return star(pattern[1:], name) or (bool(name) and star(pattern, name[1:]))
    return bool(name) and name[0] == pattern[0] and star(pattern[1:], name[1:])


def like(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "%":
        return like(pattern[1:], name) or (bool(name) and like(pattern, name[1:]))
    if pattern[0] == "\\":
        return name[:1] == pattern[1] and like(pattern[2:], name[1:])
    return bool(name) and (pattern[0] == "_" or name[0] == pattern[0]) and like(pattern[1:], name[1:])
