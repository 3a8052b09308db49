"""Scores are from 0 to 1, orders are total, and one scope is searched as if it were alone."""

from __future__ import annotations

import random

import pytest

from app.model import Project
from app.store.db import Conn
from tests import factories, fakes
from tests.field.conftest import SEARCH, Service


async def test_no_score_leaves_the_range(service: Service) -> None:
    rng = random.Random(5)
    texts = [" ".join([rng.choice("abcdefgh") * rng.randint(1, 6)] * rng.randint(1, 9)) for _ in range(20)]
    await service.add(*texts, "Zanzibar Zanzibar Zanzibar", "周末周末周末")
    for query in [*texts, "Zanzibar", "周末", "a"]:
        assert all(0 <= hit["score"] <= 1 for hit in await service.find(SEARCH, query=query))


async def test_default_threshold_keeps_an_exact_match_and_none_keeps_all(service: Service) -> None:
    texts = ["likes green tea", "has a red bike", "works at a bakery", "parks on level 3", "speaks Dutch"]
    await service.add(*texts)
    answer = await service.client.post(SEARCH, json={"query": "has a red bike", "filters": {"user_id": "u1"}})
    assert answer.json()["results"][0]["memory"] == "has a red bike"
    assert answer.json()["results"][0]["score"] >= 0.1
    assert set(await service.search("has a red bike", top_k=100)) == set(texts)
    by_cut = [set(await service.search("has a red bike", threshold=cut)) for cut in (0, 0.1, 0.3, 0.5, 0.9, 1)]
    assert all(higher <= lower for lower, higher in zip(by_cut, by_cut[1:], strict=False))


async def test_equal_scores_are_newest_first_every_time(service: Service) -> None:
    for run, moment in {"r1": 1_600_000_000, "r2": 1_700_000_000, "r3": 1_650_000_000}.items():
        await service.add("likes green tea", user_id="u1", run_id=run, timestamp=moment)
    filters = {"AND": [{"user_id": "u1"}, {"run_id": "*"}]}
    found = await service.find(SEARCH, filters, "green tea")
    assert [hit["run_id"] for hit in found] == ["r2", "r3", "r1"]
    assert await service.find(SEARCH, filters, "green tea") == found


async def test_twenty_thousand_memories_of_others_hide_none(service: Service, conn: Conn, project: Project) -> None:
    other = await factories.make_scope(conn, project, user_id="other")
    await factories.make_memory(conn, other, "green tea")
    await conn.execute(
        "INSERT INTO memories (project_id, id, scope_id, user_id, text, hash)"
        " SELECT project_id, gen_random_uuid(), scope_id, user_id, text || n, md5(n::text)"
        " FROM memories, generate_series(1, 20000) n WHERE scope_id = $1",
        other.id,
    )
    await conn.execute(
        "INSERT INTO memory_vectors (project_id, memory_id, scope_id, model, embedding)"
        " SELECT m.project_id, m.id, m.scope_id, $2, $3::halfvec FROM memories m WHERE m.scope_id = $1"
        " ON CONFLICT DO NOTHING",
        other.id,
        fakes.MODEL,
        fakes.vector("green tea"),
    )
    mine = [f"{word} {number}" for number, word in enumerate(["tea", "bike", "lamp", "stone"] * 5)]
    await service.add(*mine)
    assert set(await service.search("green tea", top_k=20)) == set(mine)


@pytest.mark.parametrize("query", ["blue van", "VAN", "周末"])
async def test_space_around_a_query_does_not_matter_in_any_language(service: Service, query: str) -> None:
    await service.add("parks the blue van on level 3", "周末吃夜宵")
    plain = await service.find(SEARCH, query=query)
    for padded in (f"  {query} \n", f"\t{query}", f"\u3000{query}\u00a0"):
        assert await service.find(SEARCH, query=padded) == plain
