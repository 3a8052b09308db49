"""A process starts only with servers and models that fit together, and stops in order."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from app import config, errors, runtime
from app.model import Owners
from app.store import models, workers
from tests import factories, fakes
from tests.conftest import FreshDatabase
from tests.worker.conftest import Lab, eventually
from worker import main


class Other(fakes.FakeEmbedder):
    """Another model than the stored one."""

    def __init__(self, model: str = "other", dims: int = fakes.DIMS) -> None:
        super().__init__()
        self.model, self.dims = model, dims


class Endpoint(fakes.FakeEmbedder):
    """Says its dimensions with its first answer, as an endpoint does."""

    model = "endpoint"
    dims = 0

    async def check(self) -> None:
        await super().check()
        self.dims = 48


async def test_a_model_is_registered_at_its_first_start(lab: Lab) -> None:
    await runtime.check_embedder(lab.db, Other())
    await runtime.check_embedder(lab.db, Other())
    async with lab.db.acquire(None) as conn:
        assert await models.stored(conn) == {fakes.MODEL: fakes.DIMS, "other": fakes.DIMS}


async def test_other_dimensions_under_the_same_name_are_refused_with_both_numbers(lab: Lab) -> None:
    with pytest.raises(errors.SetupError, match=r"48 dimensions.*32"):
        await runtime.check_embedder(lab.db, Other(fakes.MODEL, 48))


async def test_a_model_that_could_not_find_what_is_stored_is_refused_by_name(lab: Lab) -> None:
    await lab.add(lab.runtime(), "I like tea", infer=False)
    with pytest.raises(errors.SetupError, match=f"{fakes.MODEL}.*other"):
        await runtime.check_embedder(lab.db, Other())
    await runtime.check_embedder(lab.db, fakes.FakeEmbedder())


async def test_an_endpoint_is_asked_for_its_dimensions(lab: Lab) -> None:
    await runtime.check_embedder(lab.db, Endpoint())
    async with lab.db.acquire(None) as conn:
        assert (await models.stored(conn))["endpoint"] == 48


async def test_an_endpoint_that_is_away_does_not_stop_the_start(lab: Lab) -> None:
    endpoint = Endpoint()
    endpoint.failures = [errors.EmbedderUnavailable()]
    await runtime.check_embedder(lab.db, endpoint)
    async with lab.db.acquire(None) as conn:
        assert "endpoint" not in await models.stored(conn)


async def test_dimensions_that_were_unknown_at_the_start_are_compared_at_the_first_add(lab: Lab) -> None:
    async with lab.db.acquire(None) as conn:
        await models.register(conn, "late", 48)
    lab.embedder.model = "late"
    with pytest.raises(errors.EmbedderRefused, match=r"32 dimensions.*48"):
        await lab.add(lab.runtime(), "I like tea", infer=False)
    assert await lab.count("memories") == 0


async def test_without_a_database_the_start_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(errors.SetupError, match="DATABASE_URL"):
        async with runtime.open_runtime(config.load(data=tmp_path)):
            pass


async def test_without_a_schema_the_start_says_which_command_to_run(empty_dsn: str, tmp_path: Path) -> None:
    with pytest.raises(errors.SetupError, match="memoryd migrate"):
        async with runtime.open_runtime(config.load(data=tmp_path, database_url=empty_dsn)):
            pass


async def test_a_command_may_leave_out_what_it_does_not_use(fresh_db: FreshDatabase, tmp_path: Path) -> None:
    settings = config.load(data=tmp_path, database_url=fresh_db.dsn)
    async with runtime.open_runtime(settings, llm=False, embedder=False, queue=False) as rt:
        assert rt.llm is None
        with pytest.raises(errors.SetupError, match="embedder"):
            await rt.embedder.embed(["x"])


async def test_a_worker_process_ends_with_zero_at_sigterm(fresh_db: FreshDatabase, tmp_path: Path) -> None:
    settings = config.load(data=tmp_path, database_url=fresh_db.dsn, sweep_s=0.05)
    async with fresh_db.db.transaction(None) as conn:
        lab = Lab(fresh_db.db, await factories.make_project(conn), tmp_path)
    accepted = await lab.add(lab.runtime(), "I live in Oslo.", owners=Owners(user_id="alice"))
    running = asyncio.create_task(main.run(settings))
    await eventually(lambda: lab.is_done(accepted), within_s=60)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    async with fresh_db.db.acquire(None) as conn:
        assert await workers.alive(conn, within_s=60) == []
    assert len(await lab.memories()) == 1
