"""Adds with images, documents and an agent's run: from what was sent to what is remembered, and every way to fail."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from app import errors
from app.domain import add, attempt, procedure
from app.model import Event, Message, Owners, Part, Status
from app.providers.llm import ChatModel
from tests import fakes, model_stub, pdfs
from tests.file_stub import FileStub, Served
from tests.model_stub import ModelStub
from tests.worker.conftest import Lab, facts

NETS = {"outbound_allow_nets": "127.0.0.0/8", "media_timeout_s": 10.0}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
CV = "My sister Maria lives in Lisbon."


@pytest.fixture
def host() -> Iterator[FileStub]:
    """Run a host with one file of each kind."""
    files = {
        "cv.pdf": Served(pdfs.of([CV]), "application/pdf"),
        "note.txt": Served(CV.encode()),
        "page.mdx": Served(f"import A from 'a'\n\n<A>{CV}</A>\n".encode(), "text/markdown"),
        "photo": Served(PNG, "application/octet-stream"),
        "page.html": Served(b"<html>Sign in</html>", "text/html"),
    }
    with FileStub(**files) as stub:
        yield stub


@pytest.fixture
async def vision() -> AsyncIterator[tuple[ModelStub, ChatModel]]:
    """Run a model that describes the images it is sent and finds one fact."""

    def answer(asked: dict[str, Any]) -> model_stub.Reply:
        seen = not isinstance(asked["messages"][-1]["content"], str)
        return model_stub.says({"description": "A dog on a red sofa."} if seen else facts("Alice has a dog"))

    with ModelStub(default=answer) as stub:
        model = ChatModel(stub.url, "stub", timeout_s=10)
        yield stub, model
        await model.close()


def turn(*parts: Part, text: str = "", index: int = 0) -> Message:
    words = (Part("text", text),) if text else ()
    return Message("user", text, index=index, parts=(*words, *parts))


async def sent(lab: Lab, rt: Any, *turns: Message, **options: Any) -> tuple[attempt.Outcome, Event]:
    """Add these turns, process the event once, and return what came of it."""
    accepted = await lab.add(rt, messages=turns, **options)
    outcome = await add.process(rt, await lab.claim(rt))
    return outcome, await lab.event(accepted)


async def said(lab: Lab) -> list[str]:
    async with lab.db.acquire(None) as conn:
        return [row["content"] for row in await conn.fetch("SELECT content FROM messages ORDER BY id")]


# Documents


@pytest.mark.parametrize(("kind", "name"), [("pdf", "cv.pdf"), ("txt", "note.txt"), ("mdx", "page.mdx")])
async def test_a_document_is_fetched_and_its_facts_are_found(lab: Lab, host: FileStub, kind: Any, name: str) -> None:
    rt = lab.runtime(**NETS)
    url = host.url(f"{name}?signature=x")
    outcome, event = await sent(lab, rt, turn(Part(kind, url), text="Here you are."))
    assert isinstance(outcome, attempt.Done), event.error
    (memory,) = await lab.memories()
    assert "sister Maria lives in Lisbon." in memory.text
    assert "[" not in memory.text
    assert await said(lab) == [f"Here you are.\n\n[The message holds a document, {name}. Its text:]\n{CV}"]
    content = event.payload["messages"][0]["content"]
    assert content == [{"type": "text", "text": "Here you are."}, {"type": f"{kind}_url", f"{kind}_url": {"url": url}}]


async def test_a_document_inline_needs_no_host(lab: Lab) -> None:
    part = Part("txt", base64.b64encode(CV.encode()).decode())
    await sent(lab, lab.runtime(), turn(part))
    (memory,) = await lab.memories()
    assert "sister Maria lives in Lisbon." in memory.text
    assert await said(lab) == [f"[The message holds a document. Its text:]\n{CV}"]


async def test_a_long_document_goes_through_the_windows(lab: Lab) -> None:
    llm = fakes.FakeLLM([facts(f"Fact {number}") for number in range(20)])
    rt = lab.runtime(llm=llm, extraction_window_tokens=300)
    text = " ".join(f"On day {number} we ate soup." for number in range(200))
    await sent(lab, rt, turn(Part("txt", base64.b64encode(text.encode()).decode())))
    assert 5 <= len(llm.calls) < 20
    shown = "".join(prompt for _, _, prompt in llm.calls)
    assert all(f"On day {number} we" in shown for number in range(200))


async def test_nothing_is_fetched_when_an_add_is_accepted(lab: Lab, host: FileStub) -> None:
    await lab.add(lab.runtime(**NETS), messages=(turn(Part("pdf", host.url("cv.pdf"))),))
    assert host.requests == []


async def test_nothing_is_ever_fetched_for_a_direct_import(lab: Lab, host: FileStub) -> None:
    await lab.add(
        lab.runtime(**NETS), messages=(turn(Part("pdf", host.url("cv.pdf")), text="has a red bike"),), infer=False
    )
    assert [memory.text for memory in await lab.memories()] == ["has a red bike"]
    assert host.requests == []


# Images


async def test_an_image_is_fetched_by_us_and_described_by_the_model(
    lab: Lab, host: FileStub, vision: tuple[ModelStub, ChatModel]
) -> None:
    stub, model = vision
    rt = lab.runtime(llm=model, **NETS)
    outcome, event = await sent(lab, rt, turn(Part("image", host.url("photo"), "low"), text="This is Rex!"))
    assert outcome == attempt.Done(added=1), event.error
    looked, extracted = stub.requests
    words, image = looked["messages"][-1]["content"]
    assert image == {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}}
    assert "This is Rex!" in words["text"]
    shown = "This is Rex!\n\n[The message holds an image. What it shows: A dog on a red sofa.]"
    assert await said(lab) == [shown]
    assert json.dumps(shown)[1:-1] in extracted["messages"][-1]["content"]
    assert event.payload["messages"][0]["content"][1]["image_url"] == {"url": host.url("photo"), "detail": "low"}


async def test_an_image_inline_is_described(lab: Lab, vision: tuple[ModelStub, ChatModel]) -> None:
    stub, model = vision
    await sent(lab, lab.runtime(llm=model), turn(Part("image", PNG_URL)))
    assert stub.requests[0]["messages"][-1]["content"][1]["image_url"] == {"url": PNG_URL}
    assert [memory.text for memory in await lab.memories()] == ["Alice has a dog"]


async def test_an_image_without_a_model_is_refused_at_once(lab: Lab) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"MEMORYD_LLM_BASE_URL and MEMORYD_LLM_MODEL"):
        await lab.add(lab.runtime(), messages=(turn(Part("image", PNG_URL)),))
    assert await lab.count("events") == 0


async def test_a_model_that_does_not_see_fails_the_event_at_once(lab: Lab) -> None:
    with ModelStub(default=model_stub.fails(400, "image input is not supported")) as stub:
        model = ChatModel(stub.url, "blind", timeout_s=10)
        outcome, event = await sent(lab, lab.runtime(llm=model), turn(Part("image", PNG_URL)))
        await model.close()
    assert outcome == attempt.GaveUp("media_unreadable")
    assert "text only" in str(event.error)
    assert "image input is not supported" in str(event.error)


async def test_a_model_that_is_away_is_asked_again_without_a_second_fetch(lab: Lab, host: FileStub) -> None:
    described, found = {"description": "A dog."}, facts("Alice has a dog")
    llm = fakes.FakeLLM([errors.ModelUnavailable(), described, errors.ModelUnavailable(), found])
    rt = lab.runtime(llm=llm, **NETS)
    accepted = await lab.add(rt, messages=(turn(Part("image", host.url("photo"))),))
    outcomes = []
    for _ in range(3):
        await lab.execute("UPDATE events SET next_at = clock_timestamp()")
        outcomes.append(type(await add.process(rt, await lab.claim(rt))))
    assert outcomes == [attempt.RetryAt, attempt.RetryAt, attempt.Done]
    assert [name for name, _, _ in llm.calls].count("image_description") == 2
    assert len(host.requests) == 2  # again only where nothing had been kept
    assert (await lab.event(accepted)).status is Status.SUCCEEDED


async def test_facts_are_kept_beside_the_texts_they_came_from(lab: Lab, host: FileStub) -> None:
    host.files["note.txt"].appendleft(Served(b"I like tea, and nothing else."))
    llm = fakes.FakeLLM([{"facts": [{"text": "Likes tea", "speaker": "user", "messages": [1]}]}])
    rt = lab.runtime(llm=llm, **NETS)
    await lab.add(rt, messages=(turn(Part("txt", host.url("note.txt"))),))
    lab.embedder.failures = [errors.EmbedderUnavailable()]
    for _ in range(2):
        await lab.execute("UPDATE events SET next_at = clock_timestamp()")
        outcome = await add.process(rt, await lab.claim(rt))
    assert outcome == attempt.Done(added=1)
    assert len(host.requests) == 1  # the file has changed since, and what was read stays
    assert (await said(lab))[0].endswith("I like tea, and nothing else.")
    assert await lab.count("memory_sources") == 1


# Failures


@pytest.mark.parametrize(
    ("kind", "url", "code", "reason"),
    [
        ("pdf", "{host}/gone.pdf", "outbound_refused", "messages[1].content: The document cannot be fetched. 127.0.0.1 answered HTTP 404."),
        ("pdf", "{host}/note.txt", "media_unreadable", "messages[1].content: The document of 127.0.0.1 is no PDF."),
        ("txt", "{host}/page.html", "media_unreadable", "came as text/html"),
        ("txt", "http://10.0.0.1/a", "outbound_refused", "no public address"),
        ("txt", "http://169.254.169.254/latest/meta-data/", "outbound_refused", "no public address"),
        ("image", "{host}/note.txt", "media_unreadable", "no image"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_fails_the_event_at_once_and_says_why(
    lab: Lab, host: FileStub, kind: Any, url: str, code: str, reason: str
) -> None:
    rt = lab.runtime(llm=fakes.FakeLLM(), **NETS)
    place = url.format(host=host.url("")[:-1])
    turns = (Message("user", "I like tea.", index=0), turn(Part(kind, place), text="And this.", index=1))
    outcome, event = await sent(lab, rt, *turns)
    assert outcome == attempt.GaveUp(code)
    assert (event.status, event.error_code, event.results) == (Status.FAILED, code, [])
    assert reason in str(event.error)
    assert [await lab.count(table) for table in ("memories", "messages")] == [0, 0]


async def test_this_machine_is_not_called_unless_its_network_is_opened(lab: Lab, host: FileStub) -> None:
    outcome, _ = await sent(lab, lab.runtime(), turn(Part("pdf", host.url("cv.pdf"))))
    assert outcome == attempt.GaveUp("outbound_refused")
    assert host.requests == []


async def test_a_host_that_is_busy_is_asked_again_until_the_attempts_end(lab: Lab) -> None:
    with FileStub(busy=Served(status=503), late=[Served(status=503), Served(CV.encode())]) as host:
        rt = lab.runtime(**NETS)
        for name, last in (("late", attempt.Done), ("busy", attempt.GaveUp)):
            accepted = await lab.add(rt, messages=(turn(Part("txt", host.url(name))),))
            outcomes = []
            while not await lab.is_done(accepted):
                await lab.execute("UPDATE events SET next_at = clock_timestamp()")
                outcomes.append(type(await add.process(rt, await lab.claim(rt))))
            assert outcomes[-1] is last
            assert outcomes[:-1] == [attempt.RetryAt] * (1 if name == "late" else 2)
    event = await lab.event(accepted)
    assert (event.status, event.error_code) == (Status.FAILED, "outbound_unavailable")


async def test_more_text_than_a_message_may_have_fails_the_event(lab: Lab) -> None:
    part = Part("txt", base64.b64encode(b"I like tea. " * 50).decode())
    rt = lab.runtime(max_message_bytes=1000)
    outcome, event = await sent(lab, rt, turn(part, part))
    assert outcome == attempt.GaveUp("invalid_request")
    assert "MEMORYD_MAX_MESSAGE_BYTES" in str(event.error)


async def test_too_many_or_too_large_parts_are_refused_at_once(lab: Lab) -> None:
    rt = lab.runtime(media_max_parts=2, media_max_bytes=1024)
    small, large = (Part("txt", base64.b64encode(b"a" * size).decode()) for size in (10, 2000))
    with pytest.raises(errors.InvalidRequest, match="MEMORYD_MEDIA_MAX_PARTS"):
        await lab.add(rt, messages=(turn(small, small), turn(small, index=1)))
    with pytest.raises(errors.InvalidRequest, match="MEMORYD_MEDIA_MAX_BYTES"):
        await lab.add(rt, messages=(turn(large),))


# infer: false


async def test_direct_import_stores_the_text_and_reports_the_rest(lab: Lab) -> None:
    turns = (turn(Part("image", PNG_URL), text="This is Rex!"), turn(Part("pdf", "https://files.example/a"), index=1))
    accepted = await lab.add(lab.runtime(), messages=turns, infer=False)
    assert [memory.text for memory in await lab.memories()] == ["This is Rex!"]
    reason = "parts of type {} are read with infer: true only"
    assert accepted.skipped == (
        {"index": 0, "role": "user", "reason": reason.format("image")},
        {"index": 1, "role": "user", "reason": reason.format("pdf")},
    )
    assert (await lab.event(accepted)).metadata == {"facts": 1, "duplicates": 0, "skipped": list(accepted.skipped)}


# An agent's run

RUN = {"memory_type": procedure.KIND, "owners": Owners(user_id="alice", agent_id="bot", run_id="r1")}


async def test_a_run_becomes_one_memory_of_all_its_owners(lab: Lab) -> None:
    answer = {"goal": "Buy", "steps": [{"action": "Opened", "result": "200", "error": None}], "state": "", "next": ""}
    rt = lab.runtime(llm=fakes.FakeLLM([answer]))
    await lab.add(rt, "Buy item 42", "I opened the shop", metadata={"k": 1}, **RUN)
    assert await add.process(rt, await lab.claim(rt)) == attempt.Done(added=1)
    (memory,) = await lab.memories()
    assert memory.text == "Goal: Buy\nSteps:\n1. Opened\n   Result: 200"
    assert (memory.owners, memory.role) == (RUN["owners"], "assistant")
    assert memory.metadata == {"k": 1, "memory_type": "procedural_memory"}


async def test_a_run_is_recorded_without_a_model_and_with_its_documents(lab: Lab, host: FileStub) -> None:
    rt = lab.runtime(**NETS)
    turns = (Message("user", "Read this", index=0), turn(Part("txt", host.url("note.txt")), index=1))
    outcome, event = await sent(lab, rt, *turns, **RUN)
    assert outcome == attempt.Done(added=1), event.error
    (memory,) = await lab.memories()
    assert re.fullmatch(rf"Steps:\n1\. user: Read this\n2\. user: \[.* note\.txt\. .*\]\n{CV}", memory.text)
    assert event.payload["memory_type"] == "procedural_memory"


async def test_a_claim_lost_while_a_file_is_fetched_changes_nothing(fresh_lab: Lab) -> None:
    with FileStub(slow=Served(fault="hang")) as host:
        rt = fresh_lab.runtime(lease_s=0.3, **NETS)
        await fresh_lab.add(rt, messages=(turn(Part("txt", host.url("slow"))),))
        event = await fresh_lab.claim(rt)
        await fresh_lab.execute("UPDATE events SET lease_epoch = lease_epoch + 1")
        async with asyncio.timeout(10):
            assert await add.process(rt, event) == attempt.Lost()
