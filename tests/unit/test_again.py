"""Work that loses its transaction is done again, and nothing else is."""

from __future__ import annotations

import pytest

from app import errors
from app.domain import again


class Work:
    def __init__(self, *outcomes: Exception | str) -> None:
        self._left = list(outcomes)
        self.runs = 0

    async def __call__(self) -> str:
        self.runs += 1
        outcome = self._left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def test_lost_work_is_done_again() -> None:
    work = Work(errors.TransactionLost(), errors.TransactionLost(), "done")
    assert await again.if_lost(work) == "done"
    assert work.runs == 3


async def test_work_that_loses_every_time_is_given_up() -> None:
    work = Work(*[errors.TransactionLost() for _ in range(again.TRIES + 1)])
    with pytest.raises(errors.TransactionLost):
        await again.if_lost(work)
    assert work.runs == again.TRIES


@pytest.mark.parametrize("error", [errors.DatabaseUnavailable(), errors.Conflict(), ValueError()])
async def test_other_failures_are_not_repeated(error: Exception) -> None:
    work = Work(error, "done")
    with pytest.raises(type(error)):
        await again.if_lost(work)
    assert work.runs == 1
