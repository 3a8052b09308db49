"""What a model says becomes facts, item by item; what it makes up does not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from app import errors
from app.domain import checkpoint, extract, prompts
from app.domain.conversation import Conversation
from app.model import Fact, Message, Source
from app.providers import llm
from tests.model_stub import ModelStub, Reply, says

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)  # a Monday
KNOWN = tuple((uuid4(), f"known {number}") for number in range(3))


@pytest.fixture
async def stub() -> AsyncIterator[ModelStub]:
    with ModelStub() as stub:
        yield stub


@pytest.fixture
async def model(stub: ModelStub) -> AsyncIterator[llm.ChatModel]:
    model = llm.ChatModel(stub.url, "stub", timeout_s=5)
    yield model
    await model.close()


def talk(*turns: str | tuple[str, str], **more: Any) -> Conversation:
    """A conversation; a turn is what the user says, or a role and a content."""
    messages = tuple(
        Message(*(("user", turn) if isinstance(turn, str) else turn), index=at) for at, turn in enumerate(turns)
    )
    return Conversation(messages, NOON, **more)


def fact(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "speaker": "user", "messages": [1], "linked": [], "date": None} | more


async def extracted(model: llm.ChatModel, conversation: Conversation, window_tokens: int = 4000) -> list[Fact]:
    return (await extract.facts(model, conversation, window_tokens=window_tokens)).facts


# Items


async def test_a_fact_carries_all_that_the_model_said_about_it(stub: ModelStub, model: llm.ChatModel) -> None:
    item = fact("User moved to Leeds.", messages=[2], linked=[1], date="2024-05-03")
    stub.then(says({"facts": [item]}))
    conversation = talk("hello", "I moved to Leeds on Friday", existing=KNOWN, timezone=ZoneInfo("Europe/London"))
    conversation = replace(conversation, messages=tuple(replace(m, name="Ann") for m in conversation.messages))
    (found,) = await extracted(model, conversation)
    assert found == Fact(
        text="User moved to Leeds.",
        role="user",
        actor="Ann",
        sources=(Source(1, 0, 26),),
        linked_ids=(KNOWN[1][0],),
        happened_from=datetime(2024, 5, 2, 23, tzinfo=UTC),
        happened_to=datetime(2024, 5, 3, 23, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    "content",
    [
        '```json\n{"facts":["likes tea"]}\n```',
        'Here are the facts: {"facts":["likes tea"]} Hope this helps {smile}',
        '<think>maybe {"facts":["wrong"]}</think>\n{"facts":["likes tea"]}',
        'maybe {"facts":["wrong"]}</think>\n{"facts":["likes tea"]}',
        '{"facts":["likes tea","likes cof',
        '{"facts":[" likes\\n tea ", "likes tea"]}',
        '{"facts":["likes\\u0000 tea"]}',
    ],
)
async def test_plain_strings_are_facts_too(stub: ModelStub, model: llm.ChatModel, content: str) -> None:
    stub.default = says(content)
    found = await extracted(model, talk("I like tea"))
    assert [item.text for item in found] == ["likes tea"]
    assert found[0].sources == (Source(0, 0, 10),), "of one message, there is no doubt about the source"


async def test_items_of_a_wrong_shape_are_skipped_one_by_one(stub: ModelStub, model: llm.ChatModel) -> None:
    items = ["likes tea", None, 5, {"x": 1}, "", ["a"], {"text": 7}, {"text": " "}, True, "likes rye"]
    stub.then(says({"facts": items}))
    found = await extract.facts(model, talk("I like tea and rye"), window_tokens=4000)
    assert [item.text for item in found.facts] == ["likes tea", "likes rye"]
    assert found.refused == {"wrong_shape": len(items) - 2}


@pytest.mark.parametrize("items", [[5], [{"x": 1}, ["a"]], [{"text": 7}], [None], [""], [{"text": " "}], ["", None]])
async def test_items_that_are_all_of_a_wrong_shape_are_a_failure(
    stub: ModelStub, model: llm.ChatModel, items: list[Any]
) -> None:
    stub.default = says({"facts": items})
    with pytest.raises(errors.ModelRefused):
        await extracted(model, talk("hi"))


async def test_nothing_to_remember_is_an_answer(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = says({"facts": []})
    assert await extracted(model, talk("hi")) == []
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    "content", ["", "nothing here", "null", "{}", "[]", "[null]", '{"facts":null}', '{"facts":[', "<think>hm"]
)
async def test_a_failure_is_never_an_empty_list(stub: ModelStub, model: llm.ChatModel, content: str) -> None:
    stub.default = says(content, reasoning_content='{"facts":["likes tea"]}')
    with pytest.raises(errors.ModelRefused):
        await extracted(model, talk("I like tea"))


async def test_an_endpoint_that_fails_is_not_an_empty_list(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = Reply(fault="drop")
    with pytest.raises(errors.ModelUnavailable):
        await extracted(model, talk("I like tea"))


async def test_invented_ids_are_dropped_and_the_facts_stay(stub: ModelStub, model: llm.ChatModel) -> None:
    made_up = [999, -1, 3, True, 1.0, None, str(uuid4()), "9" * 5000, [0], "2"]
    stub.then(
        says(
            {
                "facts": [
                    fact("likes tea", linked=made_up, messages=[0, 7, "x", 1]),
                    fact("eats rye", linked="0", messages=None),
                ]
            }
        )
    )
    one, two = await extracted(model, talk("I like tea", "rye as well", existing=KNOWN))
    assert one.linked_ids == (KNOWN[2][0],)
    assert one.sources == (Source(0, 0, 10),)
    assert two.linked_ids == (KNOWN[0][0],)
    assert two.sources == (Source(1, 0, 11),), "the message that tells it is looked for"


async def test_the_model_sees_small_numbers_and_no_ids(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says({"facts": []}))
    await extracted(model, talk("hi", existing=KNOWN))
    asked = json.dumps(stub.requests[0])
    assert not any(str(id_) in asked for id_, _ in KNOWN)
    assert r"{\"id\": 2, \"text\": \"known 2\"}" in asked


async def test_the_messages_decide_whose_statement_a_fact_is(stub: ModelStub, model: llm.ChatModel) -> None:
    conversation = talk("what should I read?", ("assistant", "Try reading Middlemarch."))
    stub.then(
        says(
            {
                "facts": [
                    fact("was told to read Middlemarch", speaker="user", messages=[2]),
                    fact("asked what to read", speaker="assistant", messages=[1]),
                    fact("should read Middlemarch", speaker="assistant", messages=[1, 2]),
                    fact("reads Middlemarch", speaker="somebody", messages=[1, 2]),
                    fact("Middlemarch was tried", speaker="user", messages=[]),
                    "a try of Middlemarch",
                ]
            }
        )
    )
    roles = [item.role for item in await extracted(model, conversation)]
    assert roles == ["assistant", "user", "assistant", "user", "assistant", "assistant"]


async def test_facts_without_a_speaker_are_the_agents_where_there_is_only_an_agent(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    stub.then(says({"facts": [{"text": "tea", "messages": [1, 2]}]}))
    (found,) = await extracted(model, talk("tea", ("assistant", "tea"), agent_only=True))
    assert found.role == "assistant"


@pytest.mark.parametrize(
    ("date", "first", "end"),
    [
        ("2024-05-03", (2024, 5, 3), (2024, 5, 4)),
        ("2024-05-03T10:00:00Z", (2024, 5, 3), (2024, 5, 4)),
        ("2024-05-03/2024-05-05", (2024, 5, 3), (2024, 5, 6)),
        ("2024-05", (2024, 5, 1), (2024, 6, 1)),
        ("2024-12/2025-02", (2024, 12, 1), (2025, 3, 1)),
        ("2024", (2024, 1, 1), (2025, 1, 1)),
    ],
)
async def test_dates_become_spans_whose_end_is_exclusive(
    stub: ModelStub, model: llm.ChatModel, date: str, first: Any, end: Any
) -> None:
    stub.then(says({"facts": [fact("had tea", date=date)]}))
    (found,) = await extracted(model, talk("I had tea the other day, or was it last year?"))
    assert (found.happened_from, found.happened_to) == (datetime(*first, tzinfo=UTC), datetime(*end, tzinfo=UTC))


@pytest.mark.parametrize(
    "date",
    ["soon", "", "2024-02-30", "0000-01-01", "9999-12-31", "2024-05-05/2024-05-03", "2024-13", "/", 5, [], "²⁰²⁴"],
)
async def test_a_date_that_cannot_be_read_is_no_date_and_the_fact_stays(
    stub: ModelStub, model: llm.ChatModel, date: Any
) -> None:
    stub.then(says({"facts": [fact("had tea", date=date)]}))
    (found,) = await extracted(model, talk("had tea years ago", timezone=ZoneInfo("Asia/Shanghai")))
    assert (found.happened_from, found.happened_to) == (None, None)


async def test_facts_are_capped_in_number_and_length(stub: ModelStub, model: llm.ChatModel) -> None:
    said = " ".join(f"fact {number}." for number in range(500))
    stub.then(says({"facts": ["fact " * 100_000, *(f"fact {number}" for number in range(500))]}))
    found = await extract.facts(model, talk(said), window_tokens=4000)
    assert len(found.facts) == extract.MAX_FACTS
    assert found.refused == {"too_long": 1, "too_many": 500 - extract.MAX_FACTS}


async def test_the_same_fact_fifty_times_is_one(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says({"facts": [fact("likes tea")] * 50}))
    found = await extract.facts(model, talk("I like tea"), window_tokens=4000)
    assert [item.text for item in found.facts] == ["likes tea"]
    assert found.refused == {"repeated": 49}


async def test_lone_surrogates_never_get_through(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.then(says('{"facts":["tea \\ud83d\\ude00 b \\ud800 c"]}'))
    (found,) = await extracted(model, talk("tea b c"))
    assert found.text == "tea 😀 b \ufffd c"


# Windows


def numbered(stub: ModelStub) -> None:
    """Let the stub state what it was shown: one fact for each new message."""

    def echo(asked: dict[str, Any]) -> Reply:
        lines = section(asked["messages"][1]["content"], "new_messages")
        return says({"facts": [fact(line["text"][:60], messages=[line["message"]]) for line in lines]})

    stub.default = echo


def section(prompt: str, name: str) -> list[dict[str, Any]]:
    """The lines of one section of a prompt."""
    assert prompt.count(f"<{name}>\n") == prompt.count(f"\n</{name}>") == 1
    body = prompt.split(f"<{name}>\n")[1].split(f"\n</{name}>")[0]
    return [] if body == "(none)" else [json.loads(line) for line in body.split("\n")]


async def test_a_long_conversation_is_read_in_windows_and_nothing_is_left_out(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    numbered(stub)
    turns = [f"Message number {number} says something of its own." for number in range(100)]
    found = await extracted(model, talk(*turns), window_tokens=400)
    assert [item.text for item in found] == turns
    assert [item.sources for item in found] == [(Source(at, 0, len(turn)),) for at, turn in enumerate(turns)]
    assert len(stub.requests) > 5


async def test_a_message_longer_than_a_window_is_read_in_pieces_that_know_their_place(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    numbered(stub)
    long = " ".join(f"Sentence {number} is a sentence of the story." for number in range(200))
    found = await extracted(model, talk("before", long, "after"), window_tokens=300)
    pieces = [(item, source) for item in found for source in item.sources if source.message_index == 1]
    assert len(pieces) > 5
    assert all(long[source.start : source.end].split(" is ")[0].strip() in item.text for item, source in pieces)
    shown = [line["text"] for asked in stub.prompts() for line in section(asked, "new_messages")]
    assert "".join(shown) == f"before{long}after"


async def test_a_later_window_sees_the_end_of_the_former_as_context(stub: ModelStub, model: llm.ChatModel) -> None:
    numbered(stub)
    turns = [f"Message number {number} " + "goes on and on " * 40 for number in range(30)]
    past = (Message("user", "long ago"),)
    await extracted(model, talk(*turns, earlier=past), window_tokens=1000)
    first, second, *_ = stub.prompts()
    assert [line["text"] for line in section(first, "earlier_messages")] == ["long ago"]
    before = [line["text"] for line in section(first, "new_messages")]
    context = [line["text"] for line in section(second, "earlier_messages")]
    assert context[-1] == before[-1][: prompts.EARLIER_CHARS] + "…"
    assert [line["text"] for line in section(second, "noted_facts")] == [text[:60].strip() for text in before]


async def test_a_window_whose_answer_is_cut_is_halved_until_the_answers_fit(
    stub: ModelStub, model: llm.ChatModel
) -> None:
    def at_most_two(asked: dict[str, Any]) -> Reply:
        lines = section(asked["messages"][1]["content"], "new_messages")
        texts = [line["text"] for line in lines]
        return says({"facts": texts}) if len(texts) <= 2 else says('{"facts":["a","b', finish="length")

    stub.default = at_most_two
    turns = [f"fact {number}" for number in range(9)]
    assert [item.text for item in await extracted(model, talk(*turns))] == turns


async def test_one_message_whose_answer_stays_cut_is_a_failure(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = says('{"facts":["likes tea","likes cof', finish="length")
    with pytest.raises(errors.ModelRefused, match="cut off"):
        await extracted(model, talk("x"))


async def test_the_same_text_from_two_windows_is_one_fact(stub: ModelStub, model: llm.ChatModel) -> None:
    stub.default = says({"facts": ["a word"]})
    found = await extracted(model, talk(*["word " * 50] * 20), window_tokens=300)
    assert [item.text for item in found] == ["a word"]


@pytest.mark.parametrize("messages", [(), (("system", "You are Kim."),), ("   ",), (("tool", "42"),)])
async def test_without_a_speaker_the_model_is_not_asked(
    stub: ModelStub, model: llm.ChatModel, messages: tuple[Any, ...]
) -> None:
    assert await extracted(model, talk(*messages)) == []
    assert stub.requests == []


# Without a model


async def test_without_a_model_rules_find_the_facts() -> None:
    found = (await extract.facts(None, talk("My sister Ana lives in Porto. How are you?"), window_tokens=4000)).facts
    assert ["Porto" in item.text for item in found] == [True]
    assert found[0].sources[0].message_index == 0


# Checkpoint


def test_facts_survive_the_checkpoint() -> None:
    found = [
        Fact("likes tea"),
        Fact("喜欢茶", "assistant", "Ann", (Source(0, 1, 2), Source(3, 0, 9)), (UUID(int=5),), NOON, NOON),
    ]
    stored = json.loads(json.dumps(extract.to_json(found)))
    assert extract.from_json(stored) == found


@pytest.mark.parametrize("texts", [None, {0: "a picture of tea"}])
@pytest.mark.parametrize("facts", [[], [Fact("likes tea")]])
def test_what_was_dropped_survives_the_checkpoint(facts: list[Fact], texts: dict[int, str] | None) -> None:
    kept = checkpoint.Kept(texts, facts, refused={"number": 3})
    assert checkpoint.read(json.loads(json.dumps(checkpoint.rows(kept)))) == kept


def test_what_an_older_release_dropped_is_still_told() -> None:
    rows = [{"texts": {}, "extracted": True, "dropped": 3}]
    assert checkpoint.read(rows) == checkpoint.Kept(None, [], {"wrong_shape": 3})
