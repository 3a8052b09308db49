"""What people type about keys at a shell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app import errors
from app.cli import keys


@pytest.mark.parametrize(
    ("text", "expected"), [("0", 0), ("90s", 90), ("15m", 900), ("12h", 43_200), ("2w", 1_209_600)]
)
def test_durations_are_read(text: str, expected: float) -> None:
    assert keys.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "h", "-1h", "1.5h", "1y", "tomorrow"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        keys.seconds(text)


def test_an_end_is_a_duration_or_a_time() -> None:
    assert abs(keys.moment("30d") - datetime.now(UTC) - timedelta(days=30)) < timedelta(seconds=5)
    assert keys.moment("2031-02-03") == datetime(2031, 2, 3, tzinfo=UTC)
    assert keys.moment("2031-02-03T12:00:00+02:00") == datetime(2031, 2, 3, 10, tzinfo=UTC)
    with pytest.raises(errors.InvalidRequest):
        keys.moment("soon")


def test_pins_of_one_field_are_alternatives() -> None:
    grant = keys.granted(role="owner", pin=["user_id=alice", "user_id=team-*", "app_id=a=b"]).checked()
    assert grant.pins == {"user_id": ("alice", "team-*"), "app_id": ("a=b",)}
    assert (grant.role, grant.scopes) == ("member", ("memories:read", "memories:write", "memories:delete"))


@pytest.mark.parametrize(
    "wrong", [{"scopes": ["all"]}, {"pin": ["alice"]}, {"pin": ["user=alice"]}, {"pin": ["user_id="]}]
)
def test_what_cannot_be_granted_is_refused_with_what_can(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(errors.InvalidRequest):
        keys.granted(role="owner", **wrong)  # type: ignore[arg-type]
