"""Webhooks from the change to the receiver, through a running worker and a real receiver on loopback."""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from app import errors
from app.domain import batch, edit, endpoints, erase
from app.model import Condition, Endpoint, Operator, Owners, Status, WebhookEvent
from app.runtime import Runtime
from app.store import deliveries, webhooks
from app.store.deliveries import Delivery
from tests.fakes import FakeLLM
from tests.receiver import Received, Receiver, Reply
from tests.worker.conftest import Lab, eventually, facts
from tests.worker.test_worker import working

OPEN = "127.0.0.0/8"
FAST = {"webhook_delays_s": (0.05, 0.1), "outbound_allow_nets": OPEN, "webhook_timeout_s": 5.0}
EVERYTHING = [event.value for event in WebhookEvent]


class Post:
    """A project with endpoints, and what tests of deliveries do with them."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def runtime(self, **settings: Any) -> Runtime:
        return self.lab.runtime(**(FAST | settings))

    async def endpoint(self, rt: Runtime, url: str, *kinds: str) -> tuple[Endpoint, str]:
        """Make an endpoint for these kinds of events, or for all; return it with its secret."""
        wanted = endpoints.Wanted("test", url, list(kinds) or EVERYTHING)
        return await endpoints.create(rt, self.lab.caller(), wanted)

    async def log(self, endpoint: Endpoint) -> list[Delivery]:
        """Return the deliveries of an endpoint, oldest first."""
        async with self.lab.db.acquire(self.lab.project.id) as conn:
            place = self.lab.project.id, endpoint.id
            return (await deliveries.list_page(conn, *place, status=None, limit=1000, offset=0))[1][::-1]

    async def now(self, endpoint: Endpoint) -> Endpoint:
        async with self.lab.db.acquire(self.lab.project.id) as conn:
            return await webhooks.get(conn, self.lab.project.id, endpoint.id)

    def ended(self, endpoint: Endpoint, count: int = 1) -> Callable[[], Awaitable[bool]]:
        """Return what tells whether so many deliveries of the endpoint have ended."""

        async def have_ended() -> bool:
            log = await self.log(endpoint)
            return len(log) >= count and all(one.completed_at for one in log)

        return have_ended


@pytest.fixture
def post(fresh_lab: Lab) -> Post:
    return Post(fresh_lab)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as stub:
        yield stub


def kinds(received: list[Received]) -> list[str]:
    return [one.sent["event_type"] for one in received]


# What is sent


async def test_add_is_told_as_documented_with_more_beside_it(post: Post, receiver: Receiver) -> None:
    rt = post.runtime(llm=FakeLLM([facts("Likes tea", "Lives in Oslo")]))
    endpoint, secret = await post.endpoint(rt, receiver.url(), "memory_add")
    accepted = await post.lab.add(rt, "I like tea, and I live in Oslo.", owners=Owners(user_id="alice", run_id="r1"))
    async with working(rt):
        await eventually(post.ended(endpoint, 2))
    stored = {str(memory.id): memory.text for memory in await post.lab.memories()}
    assert len(stored) == 2
    assert {one.details["id"]: one.details for one in receiver.at()} == {
        id: {"id": id, "data": {"memory": text}, "event": "ADD"} for id, text in stored.items()
    }
    for one in receiver.at():
        one.verify(secret)
        beside = {name: value for name, value in one.sent.items() if name not in ("event_details", "timestamp")}
        assert isinstance(beside.pop("sequence"), int)
        assert beside == {
            "event_type": "memory_add",
            "event_id": str(accepted.event.id),
            "project_id": post.lab.project.public_id,
            "user_id": "alice",
            "run_id": "r1",
        }
        assert one.sent["timestamp"].endswith("Z")
        assert one.headers["content-type"] == "application/json"


async def test_every_change_is_told_once(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_add", "memory_update", "memory_delete")
    caller = post.lab.caller()
    for text in ("one", "two", "three", "four", "five", "six"):
        await post.lab.add(rt, text, infer=False, owners=Owners(user_id="bob" if text == "six" else "alice"))
    by_text = {memory.text: memory.id for memory in await post.lab.memories()}
    await edit.update(rt, caller, by_text["one"], edit.Update(text="uno"))
    await batch.update(rt, caller, [(by_text["two"], edit.Update(metadata={"a": 1}))])
    await edit.delete(rt, caller, by_text["one"])
    await batch.delete(rt, caller, [by_text["two"], by_text["three"]])
    await edit.delete_all(rt, caller, Condition("user_id", Operator.EQ, "alice"), {"user_id": "alice"})
    await erase.owner(rt, caller, "user", "bob")
    async with working(rt):
        await eventually(post.ended(endpoint, 13))
    got = sorted((one.details["event"], one.details["data"]["memory"]) for one in receiver.at())
    assert got == sorted(
        [
            ("ADD", text) for text in ("one", "two", "three", "four", "five")
        ]  # what was not sent before the erase never is
        + [("UPDATE", "uno"), ("UPDATE", "two")]
        + [("DELETE", text) for text in ("uno", "two", "three", "four", "five", "")]  # an erase tells no text
    )
    assert len({one.id for one in receiver.at()}) == 13
    gone = [one.sent for one in receiver.at() if one.details["data"]["memory"] == ""]
    assert [sent["event_details"]["id"] for sent in gone] == [str(by_text["six"])]
    assert all(sent["event_id"] and "user_id" not in sent for sent in gone)


async def test_categories_are_told_with_the_name_of_the_memory(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_categorize")
    await post.lab.add(rt, "I love hiking in the mountains and playing football.", infer=False)
    async with working(rt):
        await eventually(post.ended(endpoint))
    [memory], [one] = await post.lab.memories(), receiver.at()
    assert one.details == {
        "event": "CATEGORIZE",
        "memory_id": str(memory.id),
        "categories": list(memory.categories or ()),
    }


async def test_end_of_an_add_is_told_well_or_failed(post: Post, receiver: Receiver) -> None:
    llm = FakeLLM([facts("Likes tea"), errors.ModelRefused(), errors.ModelRefused(), errors.ModelRefused()])
    rt = post.runtime(llm=llm)
    endpoint, _ = await post.endpoint(rt, receiver.url(), "ingest_job_completed", "ingest_job_failed")
    good = await post.lab.add(rt, "I like tea")
    bad = await post.lab.add(rt, "I like rice")
    async with working(rt):
        await eventually(post.ended(endpoint, 2))
    by_kind = {one.sent["event_type"]: one.sent for one in receiver.at()}
    [memory] = await post.lab.memories()
    completed, failed = by_kind["ingest_job_completed"], by_kind["ingest_job_failed"]
    assert [item["id"] for item in completed["event_details"].pop("results")] == [str(memory.id)]
    assert completed["event_details"] == {
        "event": "INGEST_JOB_COMPLETED", "event_id": str(good.event.id), "status": "SUCCEEDED", "error": None,
    }  # fmt: skip
    assert failed["event_details"] == {
        "event": "INGEST_JOB_FAILED", "event_id": str(bad.event.id), "status": "FAILED", "results": [],
        "error": (await post.lab.event(bad)).error,
    }  # fmt: skip
    assert failed["user_id"] == "alice"


async def test_add_whose_workers_die_is_told_as_failed(post: Post, receiver: Receiver) -> None:
    rt = post.runtime(lease_s=0.05, retry_delays_s=())
    endpoint, _ = await post.endpoint(rt, receiver.url(), "ingest_job_failed")
    await post.lab.add(rt, "I like tea")
    await post.lab.claim(rt)  # and nobody ever comes back to it
    async with working(rt):
        await eventually(post.ended(endpoint))
    assert receiver.at()[0].details["status"] == "FAILED"


async def test_add_that_a_delete_all_overtook_is_told_as_cancelled(post: Post, receiver: Receiver) -> None:
    rt = post.runtime(llm=FakeLLM([facts("Likes tea")]))
    endpoint, _ = await post.endpoint(rt, receiver.url(), "ingest_job_cancelled", "ingest_job_completed")
    await post.lab.add(rt, "I like tea")
    await edit.delete_all(rt, post.lab.caller(), Condition("user_id", Operator.EQ, "alice"), {"user_id": "alice"})
    async with working(rt):
        await eventually(post.ended(endpoint))
    assert kinds(receiver.at()) == ["ingest_job_cancelled"]


async def test_endpoint_hears_only_what_it_asks_for_of_its_own_project(post: Post, receiver: Receiver) -> None:
    from tests import factories

    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url("deletes"), "memory_delete")
    silent, _ = await post.endpoint(rt, receiver.url("inactive"))
    await endpoints.update(rt, post.lab.caller(), silent.id, endpoints.Wanted(is_active=False))
    async with post.lab.db.transaction(None) as conn:
        stranger = await factories.make_project(conn)
    await post.lab.add(rt, "canary", infer=False, project=stranger)
    await post.lab.add(rt, "mine", infer=False)
    [mine] = await post.lab.memories()
    await edit.delete(rt, post.lab.caller(), mine.id)
    async with working(rt):
        await eventually(post.ended(endpoint))
    assert [one.details["data"]["memory"] for one in receiver.requests] == ["mine"]
    assert await post.lab.count("deliveries") == 1


async def test_change_that_is_rolled_back_is_told_to_nobody(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    await post.endpoint(rt, receiver.url())
    await post.lab.add(rt, "one", infer=False)
    [memory] = await post.lab.memories()
    before = await post.lab.count("deliveries")
    with pytest.raises(errors.MemoryNotFound):
        await batch.delete(rt, post.lab.caller(), [memory.id, uuid4()])
    assert await post.lab.count("deliveries") == before


# signatures


async def test_signed_bytes_are_the_bytes_sent(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, secret = await post.endpoint(rt, receiver.url(), "memory_add")
    text = 'naïve 日本 "q" 😀'
    await post.lab.add(rt, text, infer=False)
    async with working(rt):
        await eventually(post.ended(endpoint))
    [one] = receiver.at()
    one.verify(secret)
    assert json.loads(one.body)["event_details"]["data"]["memory"] == text


async def test_rotated_secret_and_the_former_one_both_verify_for_a_while(post: Post, receiver: Receiver) -> None:
    receiver.replies["hook"] = deque([Reply(500), Reply()])
    rt = post.runtime(webhook_overlap_s=600.0)
    endpoint, first = await post.endpoint(rt, receiver.url(), "memory_add")
    await post.lab.add(rt, "one", infer=False)
    second, _ = await endpoints.rotate(rt, post.lab.project, endpoint.id)
    third, _ = await endpoints.rotate(rt, post.lab.project, endpoint.id)
    async with working(rt):
        await eventually(post.ended(endpoint))
    for one in receiver.at():
        for secret in (first, second, third):
            one.verify(secret)
    await post.lab.execute("UPDATE webhooks SET former_secrets = replace(former_secrets::text, '20', '19')::jsonb")
    await post.lab.add(rt, "two", infer=False)
    async with working(rt):
        await eventually(post.ended(endpoint, 2))
    receiver.at()[-1].verify(third)
    assert len(receiver.at()[-1].headers["webhook-signature"].split(" ")) == 1


# attempts


async def test_attempts_share_an_id_and_a_body_and_wait_longer_each_time(post: Post, receiver: Receiver) -> None:
    with Receiver(hook=[Reply(500, b"broken"), Reply(503), Reply()]) as flaky:
        rt = post.runtime(webhook_delays_s=(0.1, 0.6))
        endpoint, _ = await post.endpoint(rt, flaky.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)
        async with working(rt):
            await eventually(post.ended(endpoint))
            await post.lab.add(rt, "two", infer=False)
            await eventually(post.ended(endpoint, 2))
        first, second, third, other = flaky.at()
    assert {(one.id, one.body) for one in (first, second, third)} == {(first.id, first.body)}
    assert other.id != first.id
    assert 0.08 <= second.at - first.at < third.at - second.at
    delivered = (await post.log(endpoint))[0]
    assert (delivered.status, delivered.attempts) == (Status.SUCCEEDED, 3)
    assert [(made.status_code, made.response) for made in delivered.log] == [(200, "ok"), (503, "ok"), (500, "broken")]
    assert all(made.latency_ms is not None for made in delivered.log)


async def test_last_failed_attempt_ends_a_delivery_which_can_be_sent_again(post: Post) -> None:
    with Receiver(hook=[Reply(500)] * 3 + [Reply()]) as flaky:
        rt = post.runtime()
        endpoint, _ = await post.endpoint(rt, flaky.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)
        async with working(rt):
            await eventually(post.ended(endpoint))
            [failed] = await post.log(endpoint)
            assert (failed.status, failed.attempts) == (Status.FAILED, 3)
            assert await endpoints.replay(rt, post.lab.project, endpoint.id, failed.id) == 1
            await eventually(post.ended(endpoint))
        assert len({one.id for one in flaky.at()}) == 1
    [again] = await post.log(endpoint)
    assert (again.status, again.attempts, len(again.log)) == (Status.SUCCEEDED, 1, 4)


async def test_retry_after_is_waited_for(post: Post) -> None:
    with Receiver(hook=Reply(429, headers={"Retry-After": "7200"})) as busy:
        rt = post.runtime()
        endpoint, _ = await post.endpoint(rt, busy.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)

        async def is_put_off() -> bool:
            [one] = await post.log(endpoint)
            return bool(one.log)

        async with working(rt):
            await eventually(is_put_off)
    [one] = await post.log(endpoint)
    assert one.status is Status.PENDING
    assert 7190 < (one.next_at - one.log[0].started_at).total_seconds() < 7210


async def test_gone_disables_the_endpoint_and_keeps_what_waits(post: Post) -> None:
    with Receiver(hook=[Reply(410), Reply()]) as gone:
        rt = post.runtime()
        endpoint, _ = await post.endpoint(rt, gone.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)

        async def is_disabled() -> bool:
            return not (await post.now(endpoint)).is_active

        async with working(rt):
            await eventually(is_disabled)
            assert "410" in str((await post.now(endpoint)).disabled_reason)
            await post.lab.add(rt, "two", infer=False)
            assert [one.status for one in await post.log(endpoint)] == [Status.FAILED]
            with pytest.raises(errors.Conflict):
                await endpoints.replay(rt, post.lab.project, endpoint.id, None)
            await endpoints.update(rt, post.lab.caller(), endpoint.id, endpoints.Wanted(is_active=True))
            assert await endpoints.replay(rt, post.lab.project, endpoint.id, None) == 1
            await eventually(post.ended(endpoint))
    now = await post.now(endpoint)
    assert (now.is_active, now.disabled_reason) == (True, None)
    assert [one.status for one in await post.log(endpoint)] == [Status.SUCCEEDED]


async def test_endpoint_that_fails_for_days_is_disabled_and_one_success_starts_anew(post: Post) -> None:
    with Receiver(hook=[Reply(500), Reply(), Reply(500)]) as dead:
        rt = post.runtime()
        endpoint, _ = await post.endpoint(rt, dead.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)
        aged = "UPDATE webhooks SET failing_since = now() - interval '5 days 1 hour', failed_at = now() - interval '9 hours'"
        async with working(rt):
            await eventually(post.ended(endpoint))
            await post.lab.execute("UPDATE webhooks SET failing_since = failing_since - interval '6 days'")
            await post.lab.add(rt, "two", infer=False)
            await eventually(post.ended(endpoint, 2))
            assert (await post.now(endpoint)).is_active, "the row of failures was broken by a success"
            await post.lab.execute(aged)
            await post.lab.execute("UPDATE deliveries SET status = 'PENDING', completed_at = NULL, attempts = 0")

            async def is_disabled() -> bool:
                return not (await post.now(endpoint)).is_active

            await eventually(is_disabled)
    assert (await post.now(endpoint)).disabled_reason == "Every attempt has failed for 5 days."


async def test_answer_is_kept_to_its_first_kilobyte(post: Post) -> None:
    with Receiver(hook=Reply(body=b"a\0\xff" * 200_000)) as chatty:
        rt = post.runtime()
        endpoint, _ = await post.endpoint(rt, chatty.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)
        async with working(rt):
            await eventually(post.ended(endpoint))
    [one] = await post.log(endpoint)
    assert one.status is Status.SUCCEEDED
    assert 0 < len(str(one.log[0].response)) <= 1024


# where the request goes


async def test_address_is_checked_at_each_delivery(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [["93.184.216.34"], ["127.0.0.1"]]

    def getaddrinfo(_host: Any, *_args: Any, **_options: Any) -> list[Any]:
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, 0)) for text in found]

    with Receiver() as inside:
        rt = post.runtime(outbound_allow_nets=(), webhook_delays_s=())
        # A name server that says something else as soon as the endpoint is made.
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        endpoint, _ = await post.endpoint(rt, "http://rebinding.example/hook", "memory_add")
        await post.lab.execute("UPDATE webhooks SET url = $1", inside.url(host="rebinding.example"))
        await post.lab.add(rt, "one", infer=False)
        async with working(rt):
            await eventually(post.ended(endpoint))
        assert inside.requests == []
    [one] = await post.log(endpoint)
    assert (one.status, one.log[0].status_code, one.log[0].error_code) == (Status.FAILED, None, "outbound_refused")


async def test_redirect_is_a_failure_and_is_not_followed(post: Post, receiver: Receiver) -> None:
    receiver.replies["hook"] = deque([Reply(302, headers={"Location": receiver.url("elsewhere")})])
    rt = post.runtime(webhook_delays_s=())
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_add")
    await post.lab.add(rt, "one", infer=False)
    async with working(rt):
        await eventually(post.ended(endpoint))
    assert [one.path for one in receiver.requests] == ["/hook"]
    [one] = await post.log(endpoint)
    assert (one.status, one.log[0].status_code) == (Status.FAILED, 302)


# slow and dead receivers


async def test_slow_endpoint_delays_neither_adds_nor_other_endpoints(post: Post) -> None:
    with Receiver(slow=Reply(hangs=True)) as both:
        rt = post.runtime(webhook_timeout_s=60.0, drain_s=0.0)
        slow, _ = await post.endpoint(rt, both.url("slow"), "memory_add")
        quick, secret = await post.endpoint(rt, both.url("quick"), "memory_add")
        async with working(rt):
            accepted = [await post.lab.add(rt, f"I live in Oslo at number {n}.") for n in range(20)]
            await eventually(lambda: post.lab.is_done(*accepted))
            await eventually(post.ended(quick, 20))
        assert {one.status for one in await post.log(quick)} == {Status.SUCCEEDED}
        assert len({one.details["id"] for one in both.at("quick")}) == 20
        for one in both.at("quick"):
            one.verify(secret)
        assert len(both.at("slow")) <= 2, "a slow endpoint holds few slots"
    # The worker stopped meanwhile: what it held is given back, at no cost.
    assert {(one.status, one.attempts) for one in await post.log(slow)} == {(Status.PENDING, 0)}


async def test_attempt_without_an_answer_times_out_and_is_logged(post: Post) -> None:
    with Receiver(hook=Reply(hangs=True)) as dead:
        rt = post.runtime(webhook_timeout_s=0.2, webhook_delays_s=())
        endpoint, _ = await post.endpoint(rt, dead.url(), "memory_add")
        await post.lab.add(rt, "one", infer=False)
        async with working(rt):
            await eventually(post.ended(endpoint))
    [one] = await post.log(endpoint)
    assert (one.status, one.log[0].error_code) == (Status.FAILED, "outbound_unavailable")
    assert "0.2 s" in str(one.log[0].error)


async def test_refused_connection_is_tried_again(post: Post) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    rt = post.runtime(webhook_delays_s=(0.05,))
    endpoint, _ = await post.endpoint(rt, f"http://127.0.0.1:{port}/", "memory_add")
    await post.lab.add(rt, "one", infer=False)
    async with working(rt):
        await eventually(post.ended(endpoint))
    [one] = await post.log(endpoint)
    assert (one.status, [made.error_code for made in one.log]) == (Status.FAILED, ["outbound_unavailable"] * 2)


# Workers


async def test_delivery_of_a_dead_worker_is_made_by_another(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_add")
    await post.lab.add(rt, "one", infer=False)
    async with post.lab.db.acquire(None) as conn:
        claimed = await deliveries.claim(conn, lease_s=0.01, per_endpoint=2)
    assert claimed is not None
    assert not any(secret in repr(claimed) for secret in claimed.secrets)
    async with working(rt):
        await eventually(post.ended(endpoint))
    [one] = await post.log(endpoint)
    assert (one.status, [made.error_code for made in one.log]) == (Status.SUCCEEDED, [None, "worker_lost"])
    assert len(receiver.at()) == 1


async def test_several_workers_deliver_each_change_once(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_add")
    for number in range(30):
        await post.lab.add(rt, f"number {number}", infer=False)
    async with working(rt, 3):
        await eventually(post.ended(endpoint, 30))
    assert len(receiver.at()) == len({one.id for one in receiver.at()}) == 30


async def test_endpoint_that_is_deleted_takes_its_deliveries_along(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_add")
    await post.lab.add(rt, "one", infer=False)
    await endpoints.delete(rt, post.lab.caller(), endpoint.id)
    assert await post.lab.count("deliveries") == 0


async def test_old_deliveries_are_deleted_with_their_log(post: Post, receiver: Receiver) -> None:
    rt = post.runtime()
    endpoint, _ = await post.endpoint(rt, receiver.url(), "memory_add")
    for text in ("old", "new"):
        await post.lab.add(rt, text, infer=False)
    async with working(rt):
        await eventually(post.ended(endpoint, 2))
    await post.lab.execute(
        "UPDATE deliveries SET created_at = now() - interval '31 days' WHERE details -> 'data' ->> 'memory' = 'old'"
    )

    async def one_is_left() -> bool:
        return await post.lab.count("deliveries") == 1

    async with working(rt):
        await eventually(one_is_left)
    assert await post.lab.count("delivery_attempts") == 1
