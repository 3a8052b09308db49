"""`explain: true`: a search says why."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

SEARCH = "/v3/memories/search/"
TEXTS = (
    "Anna sold the blue van to Oskar",
    "Oskar bakes rye bread",
    "The cat sleeps all day",
    "Riga is cold in May 2023",
)


async def add(client: httpx.AsyncClient, *texts: str, **body: Any) -> list[str]:
    said = [{"role": "user", "content": text} for text in texts]
    answer = await client.post("/v3/memories/add/", json={"messages": said, "user_id": "u1", "infer": False, **body})
    return [result["id"] for result in answer.json()["results"]]


async def search(client: httpx.AsyncClient, query: str, **body: Any) -> dict[str, Any]:
    sent = {"query": query, "filters": {"user_id": "u1"}, "threshold": 0, "reference_date": "2024-03-01", **body}
    answer = await client.post(SEARCH, json=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_explained_search_is_the_same_search(client: httpx.AsyncClient) -> None:
    await add(client, *TEXTS)
    plain = await search(client, "Who has the blue van?")
    explained = await search(client, "Who has the blue van?", explain=True)
    assert set(plain) == {"results", "answerable"}
    bare = [{name: hit[name] for name in hit if name != "explain"} for hit in explained["results"]]
    assert bare == plain["results"]
    assert explained["results"] == (await search(client, "Who has the blue van?", explain=True))["results"]


async def test_a_hit_says_what_each_arm_thought_of_it(client: httpx.AsyncClient) -> None:
    await add(client, *TEXTS, timestamp="2024-02-01")
    found = await search(client, "Which van did Oskar buy in May?", explain=True)
    for place, hit in enumerate(found["results"], start=1):
        why, raw = hit["explain"], hit["score_breakdown"]
        assert [why["arms"][arm]["score"] for arm in ("semantic", "keyword", "entity")] == list(raw.values())
        assert sum(why["parts"].values()) == pytest.approx(why["fused"], abs=1e-4)
        assert why["calibrated"] + why["time"] == pytest.approx(hit["score"])
        assert (why["arms"]["keyword"]["rank"] is None) == (raw["bm25"] == 0)
        assert (why["arms"]["entity"]["rank"] is None) == (raw["entity"] == 0)
        (source,) = why["sources"]
        assert (source["text"], source["role"]) == (hit["memory"], "user")
        assert place <= len(TEXTS)
    by_text = {hit["memory"]: hit["explain"] for hit in found["results"]}
    assert set(by_text[TEXTS[0]]["matched_terms"]) == {"van", "oskar"}
    assert by_text[TEXTS[0]]["matched_entities"] == ["oskar"]
    # Its text stands before the next one's, whose index knows of it.
    assert by_text[TEXTS[1]]["context_terms"] == ["van"]
    ranks = sorted(why["arms"]["semantic"]["rank"] for why in by_text.values())
    assert ranks == [1, 2, 3, 4]


async def test_the_query_says_how_it_was_read(client: httpx.AsyncClient) -> None:
    await add(client, *TEXTS)
    why = (await search(client, "Was Oskar in Riga last week?", explain=True, top_k=2))["explain"]
    assert why["entities"] == ["oskar", "riga"]
    assert why["terms"] == ["oskar", "riga", "last", "week"]
    assert why["dates"] == [{"from": "2024-02-19T00:00:00Z", "to": "2024-02-26T00:00:00Z"}]
    assert (why["memories"], why["candidates"]["semantic"], why["candidates"]["all"]) == (4, 4, 4)
    assert (why["threshold"], why["top_k"], why["reference_date"]) == (0, 2, "2024-03-01T00:00:00Z")
    assert {"embed", "semantic", "keyword", "entity", "rank"} <= set(why["took_ms"])
    assert all(took >= 0 for took in why["took_ms"].values())


async def test_names_that_most_memories_hold_are_told_as_left_out(client: httpx.AsyncClient) -> None:
    await add(client, *(f"Anna told me about thing {number}" for number in range(30)))
    why = (await search(client, "What did Anna say to Oskar?", explain=True))["explain"]
    assert (why["stripped_names"], why["embedded"]) == (["Anna"], "What did say to Oskar?")


async def test_nothing_found_is_explained_too(client: httpx.AsyncClient) -> None:
    found = await search(client, "tea", explain=True)
    assert (found["results"], found["explain"]["memories"], found["explain"]["embedded"]) == ([], 0, None)


async def test_chosen_fields_keep_the_explanation(client: httpx.AsyncClient) -> None:
    await add(client, *TEXTS)
    found = await search(client, "tea", explain=True, fields=["memory"])
    assert set(found["results"][0]) == {"id", "memory", "explain"}


async def test_explain_is_true_or_false(client: httpx.AsyncClient) -> None:
    answer = await client.post(SEARCH, json={"query": "x", "filters": {"user_id": "u1"}, "explain": "why not"})
    assert answer.status_code == 400
    assert "explain" in answer.json()["error"]
