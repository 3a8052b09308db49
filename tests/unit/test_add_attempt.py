"""When a failed attempt is followed by another, and after how long."""

from __future__ import annotations

import pytest

from app import errors
from app.domain import attempt

DELAYS = (2.0, 10.0, 60.0)


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_waits_follow_the_schedule_with_a_fifth_of_jitter(attempts: int) -> None:
    waits = {attempt.next_delay(DELAYS, attempts, errors.ModelUnavailable()) for _ in range(50)}
    assert len(waits) > 1
    middle = DELAYS[attempts - 1]
    assert all(wait is not None and 0.8 * middle <= wait <= 1.2 * middle for wait in waits)


def test_after_the_last_wait_there_is_none() -> None:
    assert attempt.next_delay(DELAYS, 4, errors.ModelUnavailable()) is None
    assert attempt.next_delay((), 1, errors.ModelUnavailable()) is None


@pytest.mark.parametrize("error", [errors.EmbedderRefused(), errors.InvalidRequest(), errors.SetupError()])
def test_what_no_repeat_can_help_fails_at_once(error: errors.AppError) -> None:
    assert attempt.next_delay(DELAYS, 1, error) is None


@pytest.mark.parametrize("error", [errors.ModelRefused(), errors.DatabaseUnavailable(), errors.InternalError()])
def test_what_may_pass_is_tried_again(error: errors.AppError) -> None:
    assert attempt.next_delay(DELAYS, 1, error) is not None


def test_a_server_that_asks_for_more_time_gets_it_within_reason() -> None:
    assert attempt.next_delay(DELAYS, 1, errors.ModelUnavailable(retry_after_s=30)) == 30
    assert attempt.next_delay(DELAYS, 1, errors.ModelUnavailable(retry_after_s=10**6)) == attempt.LONGEST_WAIT_S
