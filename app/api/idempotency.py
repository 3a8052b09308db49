"""`Idempotency-Key`: a request that changes something may be repeated, and is carried out once.

A key belongs to the project of the API key that sends it, and is kept for `store.idempotency.KEPT_HOURS` at least. A repeat of the request
(method, address and body, by an API key of the same rights) gets the answer of the first time; another request under
the same key is refused. Only answers that are a success are kept: what was refused or has failed changed nothing, and its
key is free again. An answer that held a secret is kept without it.

How a repeat is known, `RULES` says for each route. Where only PostgreSQL is asked, the answer is written in the
transaction of the change: after a crash there are both or neither. What asks a model or takes several transactions is safe
to repeat: such a request is reserved first, and its answer is written afterwards. After a crash in between, a repeat is put
off for `LEASE_S` at most; then it changes nothing and is answered anew, as 404 where what it names was deleted. Where the change is an event, the event has the key, and the answer is made from the event.
"""

from __future__ import annotations

import asyncio
import hashlib
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
from fastapi import Request, Response

from app import errors, log
from app.api import auth
from app.domain import access
from app.model import Caller
from app.queue import Queue
from app.runtime import Runtime
from app.store import idempotency, joined
from app.store.db import Conn

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"  #: header of the answer to a repeat
KEY_CHARS = 255
WAIT_S = 5.0  #: for the first of two equal requests that run at the same time; then the second one is put off
LOOK_S = 0.05  #: between two looks whether it has ended
RETRY_AFTER_S = 2
LEASE_S = 120.0  #: for which nobody else carries out a request whose process may have died
ONCE = "This repeats an earlier request, whose answer alone shows the secret; rotate it if that answer was lost."


class Kept(Enum):
    """Where the memory of a request is."""

    WITH_THE_CHANGE = "its answer is written in the transaction of the change"
    AFTERWARDS = "it is reserved, and its answer written afterwards; the verb is safe to repeat"
    BY_THE_EVENT = "the event has the key, and the answer is made from it"


@dataclass(frozen=True, slots=True)
class Rule:
    """How the repeats of a route are known."""

    kept: Kept
    is_event: bool = False  # the verb gives the key to an event, and knows such events again
    secret: str | None = None  # field of the answer that is shown once
    of_callers: bool = False  # it changes what processes remember of keys and their projects


_CHANGE = Rule(Kept.WITH_THE_CHANGE)
_DELETE = Rule(Kept.WITH_THE_CHANGE, is_event=True)
_ERASE = Rule(Kept.AFTERWARDS, is_event=True)  # takes several transactions, and waits for what is being sent
_EVENT = Rule(Kept.BY_THE_EVENT, is_event=True)
_SECRET = Rule(Kept.WITH_THE_CHANGE, secret="secret")
_KEY = Rule(Kept.WITH_THE_CHANGE, secret="key", of_callers=True)
_OF_CALLERS = Rule(Kept.WITH_THE_CHANGE, of_callers=True)

#: By the name of the route. A route that changes something and is not here fails a test.
RULES = {
    "add_memories": _EVENT,
    "add_memories_v1": _EVENT,
    "create_export": _EVENT,
    "create_profile_job": _EVENT,  # its answer says itself that it is a repeat
    "update_memories": _EVENT,
    "update_memory": Rule(Kept.AFTERWARDS, is_event=True),
    "import_memories": Rule(Kept.AFTERWARDS),
    "delete_memory": _DELETE,
    "delete_memories": _DELETE,
    "delete_all_memories": _DELETE,
    "delete_entity": _ERASE,
    "delete_entity_by_number": _ERASE,
    "give_feedback": _CHANGE,
    "create_user": _CHANGE,
    "create_agent": _CHANGE,
    "create_app": _CHANGE,
    "create_run": _CHANGE,
    "update_profile_settings": _CHANGE,
    "create_webhook": _SECRET,
    "update_webhook": _CHANGE,
    "delete_webhook": _CHANGE,
    "rotate_webhook_secret": _SECRET,
    "replay_webhook_delivery": _CHANGE,
    "create_key": _KEY,
    "rotate_key": _KEY,
    "revoke_key": _OF_CALLERS,
    "create_organization": _CHANGE,
    "delete_organization": Rule(Kept.AFTERWARDS),
    "add_organization_member": _CHANGE,
    "update_organization_member": _CHANGE,
    "remove_organization_member": _CHANGE,
    "create_project": _CHANGE,
    "update_project": _OF_CALLERS,
    "delete_project": Rule(Kept.AFTERWARDS),
    "add_project_member": _CHANGE,
    "update_project_member": _CHANGE,
    "remove_project_member": _CHANGE,
}

Handle = Callable[[Request], Awaitable[Response]]

_log = log.get(__name__)


def key_of(request: Request) -> str | None:
    """Return the key that the request carries, trimmed; None: it carries none. Raises: InvalidRequest."""
    key = request.headers.get(HEADER, "").strip()
    if len(key) > KEY_CHARS:
        raise errors.InvalidRequest(f"{HEADER} is longer than {KEY_CHARS} characters.")
    if any(unicodedata.category(character) == "Cc" for character in key):
        raise errors.InvalidRequest(f"{HEADER} holds a control character.")
    return key or None


async def once(request: Request, handle: Handle, rule: Rule, key: str, body: bytes) -> Response:
    """Answer the request with `handle`, or as it was answered before under the same key.

    Raises: KeyReused, StillRunning; what `handle` raises.
    """
    turn = _Turn(request, rule, key, await _print(request, body))
    deadline = asyncio.get_running_loop().time() + WAIT_S
    while True:
        try:
            return await turn.answer(handle)
        except _Taken:
            if asyncio.get_running_loop().time() >= deadline:
                raise errors.StillRunning(retry_after_s=RETRY_AFTER_S) from None
        except _Answered as known:
            return _again(known.answer)
        await asyncio.sleep(LOOK_S)


class _Taken(Exception):
    """Another request has this key just now; nothing was done."""


class _Answered(Exception):
    """The request was answered before; nothing was done."""

    def __init__(self, answer: idempotency.Answer) -> None:
        self.answer = answer


class _Refused(Exception):
    """The handler's answer is no success."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One try to answer a request."""

    request: Request
    rule: Rule
    key: str
    print: bytes

    @property
    def _rt(self) -> Runtime:
        runtime: Runtime = self.request.app.state.runtime
        return runtime

    @property
    def _project_id(self) -> int:
        caller: Caller = self.request.scope[auth.CALLER]
        return caller.project.id

    async def answer(self, handle: Handle) -> Response:
        """Return the answer. Raises: _Taken, _Answered; KeyReused; what `handle` raises."""
        async with self._rt.db.acquire(self._project_id) as conn:
            known = await self._look(conn)
        if self.rule.kept is Kept.WITH_THE_CHANGE:
            return await self._with_the_change(handle)
        if self.rule.kept is Kept.AFTERWARDS:
            return await self._afterwards(handle)
        response = await handle(self.request)
        if known.of_event and response.status_code < 300:
            response.headers[REPLAYED] = "true"
        return response

    async def _afterwards(self, handle: Handle) -> Response:
        async with self._rt.db.transaction(self._project_id) as conn:
            if not await idempotency.reserve(conn, self._project_id, self.key, self.print, lease_s=LEASE_S):
                raise _Taken  # the next look says by whom
        response: Response | None = None
        try:
            response = await handle(self.request)
        finally:
            await self._settle(response)
        return response

    async def _settle(self, response: Response | None) -> None:
        """Keep the answer, or free the key when the request came to nothing."""
        place = self._project_id, self.key
        try:
            async with self._rt.db.transaction(self._project_id) as conn:
                if response is None or response.status_code >= 300:
                    await idempotency.release(conn, *place, self.print)
                else:
                    await idempotency.answer(conn, *place, self._kept(response), is_event=self.rule.is_event)
        except errors.DatabaseUnavailable as error:  # what was done is done; repeats wait until the lease has run out
            _log.warning("idempotency.not_settled", code=error.code)

    async def _with_the_change(self, handle: Handle) -> Response:
        bell = _Later(self._rt.queue)
        response: Response | None = None
        try:
            async with joined.join(self._rt.db, self._project_id, self._begin) as db:
                self.request.scope[auth.RUNTIME] = replace(self._rt, db=db, queue=bell)
                response = await handle(self.request)
                if response.status_code >= 300:
                    raise _Refused
                async with db.transaction(self._project_id) as conn:
                    if not await idempotency.keep(conn, self._project_id, self.key, self._kept(response)):
                        await self._look(conn)
        except _Refused:
            assert response is not None
            return response
        finally:
            self.request.scope.pop(auth.RUNTIME, None)
        if self.rule.of_callers:
            access.forget()  # what the verb has forgotten may have been read again before the commit
        await bell.ring_all()
        return response

    async def _begin(self, conn: Conn) -> None:
        if not await idempotency.lock(conn, self._project_id, self.key):
            raise _Taken
        await self._look(conn)

    async def _look(self, conn: Conn) -> idempotency.Known:
        """Return what is known of a key that is free for this request. Raises: _Answered, _Taken, KeyReused."""
        known = await idempotency.find(conn, self._project_id, self.key)
        if known.print is not None and (known.answer is not None or known.runs):
            if known.print != self.print:
                raise errors.KeyReused
            if known.answer is None:
                raise _Taken
            raise _Answered(known.answer)
        if known.of_event and not self.rule.is_event:
            raise errors.KeyReused
        return known

    def _kept(self, response: Response) -> idempotency.Answer:
        body = bytes(response.body)
        if self.rule.secret is not None:
            shown: dict[str, Any] = orjson.loads(body)
            body = orjson.dumps({**shown, self.rule.secret: None, "detail": ONCE})
        return idempotency.Answer(self.print, response.status_code, body.decode())


class _Later:
    """A doorbell that rings once the transaction is committed."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._waiting: list[UUID] = []

    async def ring(self, event_id: UUID) -> None:
        """Remember to ring."""
        self._waiting.append(event_id)

    async def ring_all(self) -> None:
        """Ring for everything that waits."""
        for event_id in self._waiting:
            await self._queue.ring(event_id)

    async def close(self) -> None:
        """Leave the doorbell to whoever opened it."""


def _again(answer: idempotency.Answer) -> Response:
    return Response(answer.body, answer.status, {REPLAYED: "true"}, media_type="application/json")


async def _print(request: Request, body: bytes) -> bytes:
    """Return a digest of the request: equal for equal requests, whatever the order of parameters and of keys in the body."""
    caller: Caller = request.scope[auth.CALLER]
    asked = [
        request.method,
        request.url.path,
        sorted(parse_qsl(request.scope["query_string"].decode(), keep_blank_values=True)),
        caller.role,  # an answer is not for keys that may not ask for it
        {name: list(patterns) for name, patterns in caller.pins.items()},
    ]
    return await asyncio.to_thread(_digest, asked, body)


def _digest(asked: list[Any], body: bytes) -> bytes:
    content = orjson.loads(body) if body else None
    return hashlib.sha256(orjson.dumps([asked, content], option=orjson.OPT_SORT_KEYS)).digest()
