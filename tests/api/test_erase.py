"""An erase leaves no byte of what its owner said: in no table, in no answer, in no log line."""

from __future__ import annotations

import base64
import re
from collections import deque
from typing import Any

import httpx
import pytest

from app import config
from app.domain import deliver
from app.model import OWNER_FIELDS, Project
from app.runtime import Runtime
from app.store import deliveries, idempotency, traces, vector_indexes
from app.store.db import Conn
from tests import fakes
from tests.api.canary import Canary, found_in, rows
from tests.receiver import Receiver, Reply

SCHEMA = {"type": "object", "properties": {"drink": {"type": "string", "description": "What the person drinks"}}}
EVENTS = [
    "memory_add",
    "memory_update",
    "memory_delete",
    "memory_categorize",
    "ingest_job_completed",
    "ingest_job_failed",
]


@pytest.fixture
def settings(tmp_path: Any) -> config.Settings:
    """Let deliveries go to this machine, and fail quickly."""
    return config.load(data=tmp_path, outbound_allow_nets="127.0.0.0/8", retry_delays_s=(0.001,))


class Inhabitant:
    """An owner who has used everything, with a canary in every field."""

    def __init__(self, client: httpx.AsyncClient, rt: Runtime, queue: fakes.RecordingQueue, project: Project) -> None:
        self.client, self.rt, self.queue, self.project = client, rt, queue, project
        self.canary = Canary()
        self.name = self.canary("owner")
        self.events: list[str] = []  # of adds
        self.memories: list[str] = []

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = await self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def lives(self, kind: str, receiver: Receiver) -> None:
        """Use every route that keeps something."""
        say, c = self.canary, self.canary
        mine = {f"{kind}_id": self.name} | ({"run_id": c("run")} if kind != "run" else {})
        hook = {"name": "hook", "url": receiver.url(), "event_types": EVENTS}
        await self.call("POST", f"/api/v1/webhooks/projects/{self.project.public_id}/", hook)
        await self._sets_up(kind)
        note = base64.b64encode(f"My cat is called {say('document')}.".encode()).decode()
        adds: list[dict[str, Any]] = [
            {
                "messages": [
                    {"role": "user", "content": f"I live in {say('city')} and I like tea.", "name": c("speaker")},
                    {"role": "assistant", "content": f"I will remember {say('promise')} for you."},
                ],
                "metadata": {c("key"): {"deep": [c("value")]}},
                "custom_instructions": f"Keep {c('instruction')}.",
                "custom_categories": [{c("category"): c("described")}],
            },
            {"messages": [{"role": "user", "content": {"type": "txt_url", "txt_url": {"url": note}}}]},
            {"messages": [{"role": "user", "content": [
                {"type": "text", "text": f"My letter is {c('letter')}."},
                {"type": "pdf_url", "pdf_url": {"url": f"http://10.9.9.9/{c('address')}.pdf"}}]}]},
        ]  # fmt: skip
        for number, body in enumerate(adds):
            for owners in (mine, {**mine, "agent_id": c("agent")} if kind == "user" else mine):
                key = {"Idempotency-Key": c(f"add{number}{len(owners)}")}
                self.events.append((await self.call("POST", "/v3/memories/add/", body | owners, **key))["event_id"])
        for number in range(5):
            body = {"messages": f"Raw {say('raw')} {number}", "infer": False, "metadata": {c("key"): 1}} | mine
            answer = await self.call("POST", "/v3/memories/add/", body, **{"Idempotency-Key": c(f"raw{number}")})
            self.memories += [item["id"] for item in answer["results"]]
            self.events.append(answer["event_id"])
        await self.queue.drain(self.rt)
        await self._changes(kind, mine)
        await self._asks(kind, mine)
        await self.queue.drain(self.rt)
        await self._is_told(receiver)
        pending = {"messages": [{"role": "user", "content": f"I have just met {say('late')}."}]} | mine
        self.events.append((await self.call("POST", "/v3/memories/add/", pending))["event_id"])
        await self.call("POST", "/v1/exports/", {"schema": SCHEMA, "filters": mine})  # not made yet

    async def _sets_up(self, kind: str) -> None:
        body = {f"{kind}_id": self.name, "metadata": {self.canary("about"): self.canary("it")}}
        title = {} if kind == "user" else {"name": self.canary("title")}
        await self.call("POST", f"/v1/{kind}s/", body | title, **{"Idempotency-Key": self.canary("made")})
        entities = {"user": {"schema": SCHEMA}, "agent": {"schema": SCHEMA}}
        await self.call("POST", "/v2/profiles/settings/", {"enabled": True, "entities": entities})

    async def _changes(self, kind: str, mine: dict[str, str]) -> None:
        c = self.canary
        bob = await self.call(
            "POST", "/v3/memories/add/", {"messages": "Bob likes tea.", "user_id": "bob", "infer": False}
        )
        self.bob = bob["results"][0]["id"]
        first, second, third, *others = self.memories
        key = {"Idempotency-Key": c("put")}
        await self.call(
            "PUT", f"/v1/memories/{first}/", {"text": c("reworded"), "metadata": {c("new"): c("new")}}, **key
        )
        await self.call("PUT", f"/v1/memories/{first}/", {"expiration_date": "2099-01-01"})  # no row of the history
        both = [{"memory_id": second, "text": c("batch")}, {"memory_id": self.bob, "text": "Bob likes black tea."}]
        await self.call("PUT", "/v1/batch/", {"memories": both}, **{"Idempotency-Key": c("batch")})
        words = {"memory_id": first, "feedback": "NEGATIVE", "feedback_reason": c("reason")}
        await self.call("POST", "/v1/feedback/", words, **{"Idempotency-Key": c("feedback")})
        await self.call("DELETE", f"/v1/memories/{third}/", **{"Idempotency-Key": c("delete")})
        await self.call("DELETE", "/v1/batch/", {"memories": [{"memory_id": others[0]}]})
        imported = {"memory": c("imported"), "metadata": {"a": c("a")}, "categories": [c("filed")], "actor": c("actor")}
        await self.call("POST", "/v1/import/", {"memories": [imported | mine]}, **{"Idempotency-Key": c("import")})
        lost = f"/v1/memories/?{kind}_id={self.name}&metadata=%7B%22x%22%3A%22{c('filter')}%22%7D"
        await self.call("DELETE", lost)

    async def _asks(self, kind: str, mine: dict[str, str]) -> None:
        c = self.canary
        about = {"filters": {"OR": [{f"{kind}_id": self.name}]}}
        await self.call("POST", "/v3/memories/search/", {"query": c("question"), "threshold": 0} | about)
        export = {"schema": SCHEMA, "export_instructions": c("orders")} | about
        await self.call("POST", "/v1/exports/", export, **{"Idempotency-Key": c("export")})
        if kind in ("user", "agent"):
            job = {"operation": "trigger", "entity_type": kind, "entity_id": self.name}
            await self.call("POST", "/v2/profiles/jobs/", job, **{"Idempotency-Key": c("profile")})
            await self.call("POST", "/v2/profiles/jobs/", {"operation": "sample", "entity_type": kind, "limit": 5})

    async def _is_told(self, receiver: Receiver) -> None:
        """Attempt what is due for the endpoint, which refuses it and repeats what it was sent."""
        while True:
            async with self.rt.db.transaction(None) as conn:
                claimed = await deliveries.claim(conn, lease_s=60.0, per_endpoint=100)
            if claimed is None:
                return
            receiver.replies["hook"] = deque([Reply(500, deliver.body(claimed))])
            await deliver.once(self.rt, claimed)

    async def leaves_more(self, conn: Conn, kind: str) -> None:
        """Put into tables what no route of a small project puts there."""
        scope = await conn.fetchval(f"SELECT id FROM scopes WHERE project_id = $1 AND {kind}_id = $2 LIMIT 1",
                                    self.project.id, self.name)  # fmt: skip
        await vector_indexes.want(conn, self.project.id, [scope], model=fakes.MODEL)
        await conn.execute("INSERT INTO memory_access (project_id, memory_id, accessed_at) VALUES ($1, $2, ARRAY[now()])",
                           self.project.id, self.memories[0])  # fmt: skip
        answer = idempotency.Answer(b"x", 200, f'{{"id": "{self.memories[0]}", "memory": "{self.canary("kept")}"}}')
        await idempotency.keep(conn, self.project.id, self.canary("kept"), answer)


@pytest.fixture
async def inhabitant(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, project: Project
) -> Inhabitant:
    return Inhabitant(client, runtime, queue, project)


async def every_read(
    client: httpx.AsyncClient, described: dict[str, Any], ids: dict[str, str]
) -> list[tuple[str, str]]:
    """Return the answer of every GET route, with its path."""
    answers = []
    for template, operations in described["paths"].items():
        if "get" in operations:
            path = re.sub(r"\{(\w+)\}", lambda match: ids.get(match[1], "unknown"), template)
            answers.append((path, (await client.get(path)).text))
    return answers


@pytest.mark.parametrize("kind", ["user", "agent", "app", "run"])
async def test_nothing_is_left_of_an_owner_who_used_everything(
    inhabitant: Inhabitant,
    conn: Conn,
    described: dict[str, Any],
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    canary = inhabitant.canary
    with Receiver() as receiver:
        await inhabitant.lives(kind, receiver)
        await inhabitant.leaves_more(conn, kind)
        before = await found_in(conn, canary)
        kept = await rows(conn)
        without = {
            "vector_indexes",
            "memory_access",
            "memory_sources",
            "memory_entities",
            "memory_vectors",
            "profiles",
            "feedback",
        }
        assert set(traces.OF_OWNER) - without <= set(before), "the canary does not reach every table"
        assert all(kept[table] for table in traces.OF_OWNER if table != "profiles" or kind in ("user", "agent"))
        answer = await inhabitant.call("DELETE", f"/v2/entities/{kind}/{inhabitant.name}/")
        sent = len(receiver.requests)
        await inhabitant.queue.drain(inhabitant.rt)
        await inhabitant._is_told(receiver)
    after = await found_in(conn, canary)
    assert after == {}
    receipt = answer["receipt"]
    assert receipt["verified"], receipt
    assert receipt["erased"]["memories"] >= 4
    told = [request.body.decode() for request in receiver.requests[sent:]]
    assert told, "the receiver does not hear of the deletions"
    assert not any(canary.is_in(body) for body in told)
    ids = {
        "memory_id": inhabitant.memories[0],
        "event_id": inhabitant.events[-1],
        "entity_type": kind,
        "entity_id": "bob",
        "project_id": inhabitant.project.public_id,
        "org_id": inhabitant.project.organization_public_id,
    }
    for path, text in await every_read(inhabitant.client, described, ids):
        assert not canary.is_in(text), path
    output = capsys.readouterr()
    assert not canary.is_in(output.out + output.err), "a log line tells of it"
    for event_id in inhabitant.events:
        event = await inhabitant.call("GET", f"/v1/event/{event_id}/")
        assert (event["payload"], event["results"], event["error"]) == ({}, [], None)
    assert (await inhabitant.call("GET", f"/v1/memories/{inhabitant.bob}/"))["memory"] == "Bob likes black tea."


async def test_nothing_is_left_of_a_project(inhabitant: Inhabitant, conn: Conn) -> None:
    with Receiver() as receiver:
        await inhabitant.lives("user", receiver)
        await inhabitant.leaves_more(conn, "user")
        place = f"/api/v1/orgs/organizations/{inhabitant.project.organization_public_id}/projects/"
        await inhabitant.call("POST", place, {"name": "the last one stays"})
        answer = await inhabitant.call("DELETE", f"{place}{inhabitant.project.public_id}/")
    assert answer["receipt"]["verified"]
    assert await found_in(conn, inhabitant.canary) == {}
    tables = await conn.fetch("SELECT table_name AS name FROM information_schema.columns"
                              " WHERE column_name = 'project_id' AND table_schema = 'public'"
                              " AND table_name <> 'audit_log'")  # fmt: skip
    for table in tables:
        if table["name"] == "audit_log":
            continue  # that the project was deleted, and by whom, stays
        count = f"SELECT count(*) FROM {table['name']} WHERE project_id = $1"
        assert await conn.fetchval(count, inhabitant.project.id) == 0, table["name"]
    assert (await inhabitant.client.get("/v1/ping/")).status_code == 401


# What is whose


async def stored(client: httpx.AsyncClient, text: str, **owners: str) -> str:
    answer = await client.post("/v3/memories/add/", json={"messages": text, "infer": False, **owners})
    return answer.json()["results"][0]["id"]


async def texts(client: httpx.AsyncClient) -> list[str]:
    everybody = {"filters": {"OR": [{name: "*"} for name in OWNER_FIELDS]}}
    return sorted(item["memory"] for item in (await client.post("/v3/memories/", json=everybody)).json()["results"])


async def test_what_others_say_of_the_owner_stays(client: httpx.AsyncClient) -> None:
    await stored(client, "Alice's own", user_id="alice")
    await stored(client, "shared with the agent", user_id="alice", agent_id="bot")
    await stored(client, "Bob knows alice", user_id="bob", agent_id="bot")
    await stored(client, "the agent's own", agent_id="bot")
    await stored(client, "another kind of alice", agent_id="alice")
    await client.delete("/v2/entities/user/alice/")
    assert await texts(client) == ["Bob knows alice", "another kind of alice", "the agent's own"]


async def split(client: httpx.AsyncClient, rt: Runtime, queue: fakes.RecordingQueue) -> None:
    """Let a user and an agent tell something, each of which is stored under its own id."""
    said = [
        {"role": "user", "content": "I live in Lisbon and my sister is called Maria."},
        {"role": "assistant", "content": "I recommended the restaurant Gambrinus to you."},
    ]
    await client.post(
        "/v3/memories/add/", json={"messages": said, "user_id": "alice", "agent_id": "bot", "run_id": "s1"}
    )
    await queue.drain(rt)


async def test_what_an_agent_remembers_of_a_conversation_goes_with_the_user(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, conn: Conn
) -> None:
    await split(client, runtime, queue)
    assert any("Gambrinus" in text for text in await texts(client)), "the rules find nothing of the agent's"
    await client.delete("/v2/entities/user/alice/")
    assert await texts(client) == []
    assert (await client.get("/v1/entities/")).json()["results"] == []
    assert not any("Gambrinus" in row for kept in (await rows(conn)).values() for row in kept)


async def test_what_a_user_told_an_agent_stays_with_the_user(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, conn: Conn
) -> None:
    await split(client, runtime, queue)
    await client.delete("/v2/entities/agent/bot/")
    kept = await texts(client)
    assert any("Maria" in text for text in kept)
    assert not any("Gambrinus" in text for text in kept)
    assert not any("Gambrinus" in row for kept in (await rows(conn)).values() for row in kept)


async def test_an_owner_that_went_along_is_no_unknown_one(client: httpx.AsyncClient) -> None:
    """Clients that delete all entities read the list first, and end at the first 404."""
    await stored(client, "in a session", user_id="alice", run_id="s1", app_id="shop")
    found = (await client.get("/v1/entities/")).json()["results"]
    for item in found:
        answer = await client.delete(f"/v2/entities/{item['type']}/{item['name']}/")
        assert answer.status_code == 200, item
    assert (await client.get("/v1/entities/")).json()["results"] == []
    assert (await client.delete("/v2/entities/run/s1/")).status_code == 404
    await stored(client, "again", user_id="alice", run_id="s1")
    found = (await client.get("/v1/entities/")).json()["results"]
    for item in found:
        assert (await client.delete(f"/v1/entities/{item['type']}/{item['id']}/")).status_code == 200, item


async def test_the_answer_to_another_owners_request_stays(
    client: httpx.AsyncClient, conn: Conn, project: Project
) -> None:
    await stored(client, "hers", user_id="alice")
    await idempotency.keep(conn, project.id, "of bob", idempotency.Answer(b"x", 200, '{"user_id": "bob"}'))
    await client.delete("/v2/entities/user/alice/")
    assert (await idempotency.find(conn, project.id, "of bob")).answer is not None


async def test_erased_event_cannot_be_tried_again(
    client: httpx.AsyncClient, runtime: Runtime, queue: fakes.RecordingQueue, conn: Conn, project: Project
) -> None:
    from app import errors
    from app.store import events

    part = [{"type": "pdf_url", "pdf_url": {"url": "http://10.0.0.1/a.pdf"}}]
    body = {"messages": [{"role": "user", "content": part}], "user_id": "alice"}
    event_id = (await client.post("/v3/memories/add/", json=body)).json()["event_id"]
    await queue.drain(runtime)
    await client.delete("/v2/entities/user/alice/")
    event = (await client.get(f"/v1/event/{event_id}/")).json()
    assert (event["status"], event["error_code"], event["payload"]) == ("FAILED", "erased", {})
    with pytest.raises(errors.Conflict, match="erased"):
        await events.reopen(conn, project.id, event_id)
    assert await events.reopen_failed(conn, project.id) == 0
