"""The current Python client, synchronous and asynchronous: connection, add, search and list."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Remember
from driving import Client
from expect import UNKNOWN, refusal, texts
from running import Service

MEMORY_FIELDS = {
    "id", "memory", "user_id", "agent_id", "app_id", "run_id", "session_id", "metadata", "categories", "created_at",
    "updated_at", "expiration_date", "structured_attributes", "immutable", "hash",
}  # fmt: skip


# Connection


def test_host_and_key_make_a_client(python: Client, service: Service) -> None:
    identity = python.new(host=service.url, api_key=service.key)
    assert all(isinstance(value, str) and value for value in identity.values()), identity


def test_host_with_a_slash_makes_a_client(python: Client, service: Service) -> None:
    python.new(host=f"{service.url}/", api_key=service.key)
    try:
        assert "results" in python.users()
    finally:
        python.new(host=service.url, api_key=service.key)


def test_wrong_key_makes_no_client(python: Client, service: Service) -> None:
    refused = refusal("ValueError", python.new, host=service.url, api_key="m0-wrong")
    assert refused.message.startswith("Error: ")
    assert "401" not in refused.message  # the client shows `detail`, and only without one the status line


def test_key_that_became_wrong_is_an_authentication_error(python: Client, name: str, forged: None) -> None:
    for call in (
        lambda: python.add("I sing.", user_id=name),
        lambda: python.search("singing", filters={"user_id": name}),
        lambda: python.get_all(filters={"user_id": name}),
        lambda: python.get(UNKNOWN),
        lambda: python.update(UNKNOWN, text="I dance."),
        lambda: python.delete(UNKNOWN),
        lambda: python.delete_all(user_id=name),
        lambda: python.history(UNKNOWN),
        lambda: python.users(),
        lambda: python.delete_users(user_id=name),
        lambda: python.batch_update([{"memory_id": UNKNOWN, "text": "I dance."}]),
        lambda: python.batch_delete([{"memory_id": UNKNOWN}]),
        lambda: python.feedback(UNKNOWN, "POSITIVE"),
        lambda: python.project.get(),
        lambda: python.project.update(decay=True),
        lambda: python.get_webhooks("proj_of_somebody"),
    ):
        refused = refusal("AuthenticationError", call)
        assert refused.error_code == "HTTP_401"
        assert isinstance(refused.message, str)


# Add


@pytest.mark.parametrize(
    "messages",
    [
        "I keep two rabbits named Fig and Plum.",
        {"role": "user", "content": "I keep two rabbits named Fig and Plum."},
        [
            {"role": "user", "content": "I keep two rabbits named Fig and Plum."},
            {"role": "assistant", "content": "Lovely!"},
        ],
    ],
    ids=["text", "message", "messages"],
)
def test_added_messages_become_memories(python: Client, service: Service, name: str, messages: Any) -> None:
    accepted = python.add(messages, user_id=name)
    assert accepted["status"] == "PENDING"
    event = service.finished(accepted["event_id"])
    assert event["results"]
    for result in event["results"]:
        assert result["event"] == "ADD"
        assert result["data"]["memory"]
    assert any("Fig" in text for text in texts(python.get_all(filters={"user_id": name})))


def test_verbatim_add_answers_with_its_memory(python: Client, name: str) -> None:
    answer = python.add("Tea without sugar, always.", user_id=name, infer=False)
    assert answer["status"] == "SUCCEEDED"
    (result,) = answer["results"]
    assert result["event"] == "ADD"
    assert result["data"]["memory"] == result["memory"] == "Tea without sugar, always."
    assert python.get(result["id"])["memory"] == "Tea without sugar, always."


def test_verbatim_add_keeps_what_both_said(python: Client, name: str) -> None:
    talk = [{"role": "user", "content": "Where were we?"}, {"role": "assistant", "content": "At chapter four."}]
    python.add(talk, user_id=name, infer=False)
    assert sorted(texts(python.get_all(filters={"user_id": name}))) == ["At chapter four.", "Where were we?"]


def test_same_text_is_stored_once(python: Client, remember: Remember, name: str) -> None:
    remember("The blue door is mine.", user_id=name)
    assert python.add("The blue door is mine.", user_id=name, infer=False)["results"] == []
    assert python.get_all(filters={"user_id": name})["count"] == 1


def test_owners_of_an_add_may_stand_in_filters(python: Client, remember: Remember, name: str) -> None:
    options = {"$options": "AddMemoryOptions", "filters": {"user_id": name, "run_id": "r-1"}, "infer": False}
    (result,) = python.add("The boat is called Ada.", options)["results"]
    memory = python.get(result["id"])
    assert (memory["user_id"], memory["run_id"], memory["agent_id"]) == (name, "r-1", None)


def test_every_option_of_an_add_is_accepted(python: Client, service: Service, name: str) -> None:
    accepted = python.add(
        [{"role": "user", "content": "I bake rye bread every Sunday."}],
        user_id=name,
        app_id="kitchen",
        run_id="r-2",
        metadata={"Source": {"camelCase": [1, 2.5, None, "ä"]}},
        infer=True,
        custom_categories=[{"baking": "bread and cake"}],
        custom_instructions="Keep what people bake.",
        agent_custom_instructions="Keep what the agent promised.",
        timestamp=1721577600,
        expiration_date="2099-01-31",
        structured_data_schema={"type": "object"},
        includes="bread",
        excludes="weather",
        immutable=False,
        output_format="v1.1",
        async_mode=True,
        version="v2",
        enable_graph=False,
        source="TEST",
    )
    service.finished(accepted["event_id"])
    memory = python.get_all(filters={"user_id": name})["results"][0]
    assert memory["metadata"] == {"Source": {"camelCase": [1, 2.5, None, "ä"]}}
    assert memory["expiration_date"] == "2099-01-31"
    assert memory["created_at"].startswith("2024-07-21T16:00:00")
    assert (memory["app_id"], memory["run_id"]) == ("kitchen", "r-2")


def test_facts_go_to_who_said_them(python: Client, service: Service, name: str) -> None:
    talk = [
        {"role": "user", "content": "I live in Porto with my sister Inês."},
        {"role": "assistant", "content": "I booked the museum for Friday at noon."},
    ]
    service.finished(python.add(talk, user_id=name, agent_id=f"agent {name}")["event_id"])
    found = python.get_all(filters={"OR": [{"user_id": name}, {"agent_id": f"agent {name}"}]})["results"]
    assert found
    assert all((memory["user_id"] is None) != (memory["agent_id"] is None) for memory in found)
    assert any("Porto" in memory["memory"] and memory["user_id"] == name for memory in found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": "I sing."},
        {"messages": [], "user_id": "u"},
        {"messages": "I sing.", "user_id": "u", "custom_categories": ["singing"]},
        {"messages": "I sing.", "user_id": "u", "expiration_date": "next year"},
        {"messages": "I sing.", "user_id": "u", "metadata": "blue"},
        {"messages": [{"role": "user"}], "user_id": "u"},
        {"messages": "I sing.", "user_id": " "},
    ],
    ids=["no owner", "no messages", "bare categories", "no date", "metadata text", "no content", "empty owner"],
)
def test_malformed_add_is_a_validation_error(python: Client, wrong: dict[str, Any]) -> None:
    refused = refusal("ValidationError", python.add, **wrong)
    assert refused.error_code == "HTTP_400"
    assert isinstance(refused.message, str)
    assert refused.details["detail"] == refused.message


def test_body_that_is_too_large_is_a_quota_error(python: Client, name: str) -> None:
    """The refusal has to arrive though the client is still sending."""
    refused = refusal("MemoryQuotaExceededError", python.add, "a" * 11 * 2**20, user_id=name)
    assert refused.error_code == "HTTP_413"


def test_message_that_is_too_large_is_a_validation_error(python: Client, name: str) -> None:
    refusal("ValidationError", python.add, "a" * (2**20 + 1), user_id=name)


def test_messages_of_another_type_never_leave_the_client(python: Client) -> None:
    refusal("ValueError", python.add, 7, user_id="u")


# Search


def test_search_finds_the_memory_that_is_meant(python: Client, two_facts: dict[str, str], name: str) -> None:
    hits = python.search("Which instrument do I play?", filters={"user_id": name})["results"]
    assert hits[0]["id"] == two_facts["cello"]
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert MEMORY_FIELDS | {"score", "score_breakdown"} <= hits[0].keys()


@pytest.mark.parametrize(
    "shape",
    [
        lambda who: {"user_id": who},
        lambda who: {"AND": [{"user_id": who}]},
        lambda who: {"OR": [{"user_id": who}, {"agent_id": who}]},
        lambda who: {"AND": [{"user_id": {"in": [who, "nobody"]}}, {"created_at": {"gte": "2024-01-01"}}]},
        lambda who: {"AND": [{"user_id": who, "metadata": {"topic": "music"}}]},
        lambda who: {"AND": [{"user_id": who}, {"NOT": {"metadata": {"topic": "sport"}}}]},
        lambda who: {"AND": [{"user_id": who}, {"NOT": [{"metadata": {"topic": "sport"}}]}]},
        lambda who: {"user_id": who, "agent_id": {"ne": "someone"}},
        lambda who: {"AND": [{"user_id": who}, {"keywords": {"icontains": "CELLO"}}]},
        lambda who: {"AND": [{"user_id": "*"}, {"user_id": who}]},
        lambda who: {
            "AND": [{"user_id": who}],
            "OR": [{"metadata": {"topic": "music"}}, {"metadata": {"topic": "art"}}],
        },
    ],
)
def test_filters_in_every_shape_find_the_memory(
    python: Client, two_facts: dict[str, str], name: str, shape: Any
) -> None:
    found = python.search("playing the cello", filters=shape(name))["results"]
    assert found[0]["id"] == two_facts["cello"]


def test_options_of_a_search_narrow_it(python: Client, two_facts: dict[str, str], name: str) -> None:
    mine = {"user_id": name}
    assert len(python.search("me", filters=mine, top_k=1, threshold=0.0)["results"]) == 1
    assert python.search("cello", filters=mine, threshold=1.0)["results"] == []
    sporty = python.search("what do I do", filters=mine, metadata={"topic": "sport"}, threshold=0.0)["results"]
    assert [hit["id"] for hit in sporty] == [two_facts["swim"]]
    assert python.search("cello", filters=mine, categories=["no such category"])["results"] == []
    short = python.search("cello", filters=mine, fields=["memory"])["results"][0]
    assert "memory" in short
    assert "metadata" not in short


def test_typed_options_of_a_search_are_accepted(python: Client, two_facts: dict[str, str], name: str) -> None:
    options = {
        "$options": "SearchMemoryOptions",
        "filters": {"user_id": name},
        "top_k": 5,
        "rerank": True,
        "threshold": 0.0,
        "show_expired": True,
        "reference_date": "2026-03-01",
        "latest_only": True,
        "keyword_search": True,
    }
    assert python.search("  cello  ", options)["results"][0]["id"] == two_facts["cello"]


def test_expired_memory_is_found_only_on_request(python: Client, remember: Remember, name: str) -> None:
    memory_id = remember("The trial ends with the old year.", user_id=name, expiration_date="2020-01-01")
    mine = {"user_id": name}
    assert python.search("trial", filters=mine)["results"] == []
    assert python.search("trial", filters=mine, show_expired=True)["results"][0]["id"] == memory_id
    assert python.get_all(filters=mine)["results"] == []
    assert python.get_all(filters=mine, show_expired=True)["count"] == 1
    assert python.get(memory_id)["expiration_date"] == "2020-01-01"


def test_search_without_an_owner_is_a_validation_error(python: Client) -> None:
    for filters in (None, {}, {"metadata": {"a": 1}}, {"NOT": {"user_id": "u"}}, {"user_id": {"ne": "u"}}):
        refused = refusal("ValidationError", python.search, "cello", filters=filters)
        assert isinstance(refused.message, str)


def test_unknown_filter_key_is_named_in_the_refusal(python: Client, name: str) -> None:
    refused = refusal("ValidationError", python.search, "cello", filters={"user_id": name, "colour": "red"})
    assert "colour" in refused.message


def test_out_of_range_options_are_validation_errors(python: Client, name: str) -> None:
    mine = {"user_id": name}
    refusal("ValidationError", python.search, "cello", filters=mine, top_k=0)
    refusal("ValidationError", python.search, "cello", filters=mine, top_k=1001)
    refusal("ValidationError", python.search, "cello", filters=mine, threshold=1.5)
    refusal("ValidationError", python.search, "cello", filters=mine, reference_date="tomorrow-ish")


def test_misuse_of_search_never_leaves_the_client(python: Client, name: str) -> None:
    refusal("ValueError", python.search, "cello", user_id=name)
    refusal("ValueError", python.search, "   ", filters={"user_id": name})
    refusal("ValueError", python.get_all, user_id=name)


# List


def test_list_comes_in_pages(python: Client, remember: Remember, name: str) -> None:
    for number in range(5):
        remember(f"Note number {number} of five.", user_id=name)
    mine = {"user_id": name}
    first = python.get_all(filters=mine, page=1, page_size=2)
    assert (first["count"], first["previous"], len(first["results"])) == (5, None, 2)
    assert "page=2" in first["next"]
    assert "page_size=2" in first["next"]
    last = python.get_all(filters=mine, page=3, page_size=2)
    assert last["next"] is None
    assert len(last["results"]) == 1
    assert len(python.get_all(filters=mine, page_size=3)["results"]) == 3
    assert len(python.get_all(filters=mine, page=1)["results"]) == 5
    assert len(set(texts(python.get_all(filters=mine)))) == 5


def test_page_past_the_end_is_not_found(python: Client, two_facts: dict[str, str], name: str) -> None:
    refused = refusal("MemoryNotFoundError", python.get_all, filters={"user_id": name}, page=9, page_size=2)
    assert refused.message == "Invalid page."


def test_malformed_list_is_a_validation_error(python: Client, name: str) -> None:
    refusal("ValidationError", python.get_all)
    refusal("ValidationError", python.get_all, filters={})
    refusal("ValidationError", python.get_all, filters={"user_id": name}, page_size=201)
    refusal("ValidationError", python.get_all, filters={"user_id": name}, page=0)
    refusal("ValidationError", python.get_all, filters={"user_id": name}, start_date="soon")


def test_dates_of_a_list_are_inclusive(python: Client, remember: Remember, name: str) -> None:
    remember("Noon of the third.", user_id=name, timestamp=1709467200)  # 2024-03-03T12:00:00Z
    options = {"$options": "GetAllMemoryOptions", "filters": {"user_id": name}, "latest_only": True}
    for start, end, count in [("2024-03-03", "2024-03-03", 1), ("2024-03-04", "2024-03-09", 0)]:
        assert python.get_all(options | {"start_date": start, "end_date": end})["count"] == count


def test_listed_memory_has_every_field(python: Client, two_facts: dict[str, str], name: str) -> None:
    for memory in python.get_all(filters={"user_id": name}, categories=None)["results"]:
        assert MEMORY_FIELDS | {"replaced_by", "synthesized", "lifecycle_state"} <= memory.keys()
        assert memory["created_at"].endswith("Z")
