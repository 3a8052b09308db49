"""The older Python clients: 1.x, which speaks v2 to list and search, and 0.1, which speaks v1 unless told otherwise."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from conftest import Open
from driving import Client, Raised
from expect import UNKNOWN, refusal, say
from running import Service, wait_for


@pytest.fixture(scope="session")
def one(service: Service, open_client: Open) -> Client:
    """Return the client of 1.x."""
    client = open_client("python1", "sdk.py", "sync")
    client.new(host=service.url, api_key=service.key)
    return client


@pytest.fixture(scope="session")
def zero(service: Service, open_client: Open) -> Client:
    """Return the client of 0.1."""
    client = open_client("python0", "sdk.py", "sync")
    client.new(host=service.url, api_key=service.key)
    return client


def stored(client: Client, name: str, text: str, **options: Any) -> str:
    """Store a text word for word; return the id of the memory."""
    (result,) = client.add(say(text), user_id=name, infer=False, **options)["results"]
    return str(result["id"])


def stripped(kind: str, client: Client, call: str, *args: Any, **named: Any) -> None:
    """Check a refusal, whose class the asynchronous clients of that age do not translate."""
    with pytest.raises(Raised) as caught:
        client.ask(call, args, named)
    assert caught.value.kind in (kind, "HTTPStatusError"), caught.value


# Connection


def test_identity_comes_with_host_and_key(older: Client, service: Service) -> None:
    identity = older.new(host=service.url, api_key=service.key)
    assert all(isinstance(value, str) and value for value in identity.values()), identity


def test_identity_may_be_given_by_its_ids(older: Client, service: Service) -> None:
    identity = older.new(host=service.url, api_key=service.key)
    given = {"org_id": identity["org_id"], "project_id": identity["project_id"]}
    assert older.new(host=service.url, api_key=service.key, **given) == identity


def test_wrong_key_makes_no_client(older: Client, service: Service) -> None:
    assert refusal("ValueError", older.new, host=service.url, api_key="m0-wrong").message.startswith("Error: ")


# Add


def test_add_of_one_answers_an_object(one: Client, service: Service, name: str) -> None:
    answer = one.add("I keep two rabbits named Fig and Plum.", user_id=name)
    (accepted,) = answer["results"]
    assert accepted["status"] == "PENDING"
    service.finished(accepted["event_id"])
    assert any("Fig" in memory["memory"] for memory in one.get_all(filters={"user_id": name})["results"])


def test_add_of_zero_answers_an_object_with_relations(zero: Client, service: Service, name: str) -> None:
    answer = zero.add(say("I keep two rabbits named Fig and Plum."), user_id=name)
    assert answer["relations"] == []
    (accepted,) = answer["results"]
    assert accepted["status"] == "PENDING"
    service.finished(accepted["event_id"])
    assert any("Fig" in memory["memory"] for memory in zero.get_all(user_id=name))


def test_options_of_an_older_add_are_kept(older: Client, name: str) -> None:
    memory_id = stored(
        older, name, "Tea without sugar.", metadata={"Kind": {"deep": [1]}}, run_id="r-1", immutable=True,
        expiration_date="2099-01-31", timestamp=1721577600, includes="tea", excludes="weather",
        custom_categories=[{"drinks": "what people drink"}],
    )  # fmt: skip
    memory = older.get(memory_id)
    assert memory["metadata"] == {"Kind": {"deep": [1]}}
    assert memory["expiration_date"] == "2099-01-31"
    assert memory["created_at"].startswith("2024-07-21T16:00:00")
    assert "org_id" not in memory["metadata"]


def test_older_add_without_an_owner_is_refused(older: Client) -> None:
    stripped("ValidationError", older, "add", say("I sing."))
    stripped("ValidationError", older, "add", [], user_id="u")


# Search and list


def test_one_searches_and_lists_by_filters(one: Client, name: str) -> None:
    memory_id = stored(one, name, "I play the cello in a string quartet.", metadata={"topic": "music"})
    stored(one, name, "I swim two kilometres on Mondays.")
    mine = {"AND": [{"user_id": name}]}
    hits = one.search("Which instrument do I play?", filters=mine, top_k=5, rerank=True, keyword_search=True)["results"]
    assert hits[0]["id"] == memory_id
    assert 0 <= hits[0]["score"] <= 1
    assert [hit["id"] for hit in one.search("cello", filters={**mine, "metadata": {"topic": "music"}})["results"]] == [
        memory_id
    ]
    assert len(one.get_all(filters=mine)["results"]) == 2
    page = one.get_all(filters=mine, page=1, page_size=1)
    assert len(page["results"]) == 1


def test_zero_searches_and_lists_by_owner(zero: Client, name: str) -> None:
    memory_id = stored(zero, name, "I play the cello in a string quartet.", metadata={"topic": "music"})
    stored(zero, name, "I swim two kilometres on Mondays.")
    hits = zero.search("Which instrument do I play?", user_id=name)
    assert isinstance(hits, list)
    assert hits[0]["id"] == memory_id
    assert len(zero.search("me", user_id=name, top_k=1)) == 1
    assert [hit["id"] for hit in zero.search("me", user_id=name, metadata={"topic": "music"})] == [memory_id]
    answer = zero.search("cello", user_id=name, output_format="v1.1")
    assert answer["results"][0]["id"] == memory_id
    assert answer["relations"] == []
    listed = zero.get_all(user_id=name)
    assert isinstance(listed, list)
    assert len(listed) == 2
    assert len(zero.get_all(user_id=name, limit=1)) == 1
    page = zero.get_all(user_id=name, page=1, page_size=1)
    assert (page["count"], len(page["results"]), page["previous"]) == (2, 1, None)
    assert "page=2" in page["next"]


def test_zero_speaks_v2_on_demand(zero: Client, name: str) -> None:
    memory_id = stored(zero, name, "I play the cello in a string quartet.")
    mine = {"AND": [{"user_id": name}]}
    hits = zero.search("Which instrument do I play?", version="v2", filters=mine)
    assert isinstance(hits, list)
    assert hits[0]["id"] == memory_id
    listed = zero.get_all(version="v2", filters=mine)
    assert isinstance(listed, list)
    assert listed[0]["session_id"] is None


def test_page_past_the_end_is_not_found(zero: Client, name: str) -> None:
    stored(zero, name, "I sing.")
    refusal("MemoryNotFoundError", zero.get_all, user_id=name, page=9, page_size=2)


def test_older_search_and_list_without_an_owner_are_refused(older: Client) -> None:
    stripped("ValidationError", older, "search", "cello", filters={})
    stripped("ValidationError", older, "search", "cello")
    stripped("ValidationError", older, "get_all")


# Read, change, delete


def test_memory_lives_and_dies(older: Client, name: str) -> None:
    memory_id = stored(older, name, "I owe Sam ten euros.")
    assert older.get(memory_id)["memory"] == "I owe Sam ten euros."
    older.update(memory_id, text="I owe Sam five euros.", metadata={"paid": 5})
    memory = older.get(memory_id)
    assert (memory["memory"], memory["metadata"]) == ("I owe Sam five euros.", {"paid": 5})
    assert older.delete(memory_id)["message"]
    assert [change["event"] for change in older.history(memory_id)] == ["ADD", "UPDATE", "DELETE"]
    stripped("MemoryNotFoundError", older, "get", memory_id)


def test_one_updates_the_time(one: Client, name: str) -> None:
    memory_id = stored(one, name, "I owe Sam ten euros.")
    one.update(memory_id, timestamp=1721577600)
    assert one.get(memory_id)["created_at"].startswith("2024-07-21T16:00:00")


def test_unknown_memory_is_refused(older: Client) -> None:
    for call, args, named in [
        ("get", (UNKNOWN,), {}),
        ("update", (UNKNOWN,), {"text": "x"}),
        ("delete", (UNKNOWN,), {}),
        ("history", (UNKNOWN,), {}),
    ]:
        stripped("MemoryNotFoundError", older, call, *args, **named)


def test_older_delete_all_narrows_by_owner_alone(older: Client, name: str) -> None:
    """These clients send `org_id` and `project_id` too, which are no filter."""
    gone = stored(older, name, "Mine to lose.")
    kept = stored(older, f"{name} two", "Not mine to lose.")
    assert older.delete_all(user_id=name)["message"]
    stripped("MemoryNotFoundError", older, "get", gone)
    stripped("ValidationError", older, "delete_all")
    assert older.get(kept)["memory"] == "Not mine to lose."


# The rest


def test_older_batches_change_and_delete(older: Client, name: str) -> None:
    ids = [stored(older, name, f"Note {number}.") for number in range(2)]
    assert older.batch_update([{"memory_id": each, "text": f"Changed {each}."} for each in ids])["message"]
    assert older.get(ids[0])["memory"] == f"Changed {ids[0]}."
    assert older.batch_delete([{"memory_id": each} for each in ids])["message"]
    stripped("MemoryNotFoundError", older, "get", ids[1])
    stripped("MemoryNotFoundError", older, "batch_update", [{"memory_id": UNKNOWN, "text": "x"}])


def test_older_clients_list_and_delete_owners(older: Client, name: str) -> None:
    """They paste the name into the path as it is."""
    plain = f"owner {uuid4().hex[:8]}"
    stored(older, plain, "I am here.")
    stored(older, name, "Me too.")  # holds a slash
    listed = {(entity["type"], entity["name"]) for entity in older.users()["results"]}
    assert {("user", plain), ("user", name)} <= listed
    for each in (plain, name):
        assert older.delete_users(user_id=each)["message"] == "Entity deleted successfully."
        gone = lambda each=each: all(found["name"] != each for found in older.users()["results"])  # noqa: E731
        assert wait_for(gone, within_s=20, what="the owner is gone")


def test_feedback_of_older_clients_is_kept(older: Client, name: str) -> None:
    """After the request has succeeded the client stumbles over its own telemetry: that much is known of it."""
    memory_id = stored(older, name, "I like olives.")
    refusal("TypeError", older.feedback, memory_id, "POSITIVE", "that is right")
    stripped("MemoryNotFoundError", older, "feedback", UNKNOWN, "POSITIVE")


def test_older_project_methods_work(older: Client, service: Service) -> None:
    identity = older.new(host=service.url, api_key=service.key)
    before = older.project.get()
    assert before["project_id"] == identity["project_id"]
    assert "custom_instructions" in older.project.get(fields=["custom_instructions"])
    assert "custom_instructions" in older.get_project(fields=["custom_instructions"])
    try:
        assert older.project.update(custom_instructions="Keep all.", enable_graph=False)
        assert older.update_project(custom_categories=[{"all": "everything"}], version="v2", retrieval_criteria=[])
        after = older.project.get()
        assert (after["custom_instructions"], after["custom_categories"]) == ("Keep all.", [{"all": "everything"}])
    finally:
        older.project.update(custom_instructions=before["custom_instructions"] or "", custom_categories=[])
    assert older.project.create(name=f"side {uuid4().hex[:8]}")["project_id"]
    email = f"{uuid4().hex[:8]}@example.org"
    assert older.project.add_member(email=email, role="READER")["message"]
    assert older.project.update_member(email=email, role="OWNER")["message"]
    assert older.project.get_members()["members"]
    assert older.project.remove_member(email=email)["message"]


def test_older_webhook_methods_work(older: Client, service: Service) -> None:
    project_id = older.new(host=service.url, api_key=service.key)["project_id"]
    hook = older.create_webhook("https://1.1.1.1/hook", "mine", project_id, ["memory_add"])["webhook_id"]
    assert hook in [found["webhook_id"] for found in older.get_webhooks(project_id)]
    assert older.update_webhook(hook, name="yours")["message"]
    assert older.delete_webhook(hook)["message"]


def test_chat_is_what_older_clients_do_not_have(older: Client) -> None:
    refusal("NotImplementedError", older.chat)
