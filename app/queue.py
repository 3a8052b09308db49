"""The doorbell: tells a worker that an event is due. Postgres holds the event, so a lost ring costs only time."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import orjson
import redis.exceptions
from arq.connections import ArqRedis
from arq.constants import job_key_prefix
from arq.jobs import serialize_job

from app import errors, redis_away

RING = "ring"  #: name of the one function that the worker offers to ARQ
QUEUE_NAME = "memoryd:bell"  #: sorted set in Redis; one per Redis database
RING_LIMIT_S = 0.25  #: longest wait for Redis; a hung server must not slow a request down
HINTS = 8  #: in one ring, at most: each wakes one worker, and an awake worker finds all that is due
GAP_S = 0.02  #: between two rings: the second of a burst waits for the third
HINT_LIFE_MS = 86_400_000  #: a hint that nobody takes ends after a day, as ARQ's own do


@runtime_checkable
class Queue(Protocol):
    """Tells workers that rows are due."""

    async def ring(self, event_id: uuid.UUID) -> None:
        """Tell a worker that this event is due. Returns at once and never raises for a dead Redis."""
        ...

    async def close(self) -> None:
        """Finish the rings under way and close the connections. Safe to repeat."""
        ...


class SilentQueue:
    """Rings nothing: workers find the events by their sweep."""

    async def ring(self, event_id: uuid.UUID) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


class ArqQueue:
    """Rings through ARQ. The connection is made at the first ring, and again after a failure.

    A ring says only that there is work, not which: while one is under way, all that follow become the next one.
    """

    def __init__(self, redis_url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = redis_url
        self._redis: ArqRedis | None = None
        self._ringing: asyncio.Task[None] | None = None
        self._next: list[uuid.UUID] = []  # rung for while a ring was under way
        self._away = redis_away.Away("queue.unreachable", clock)  # the worker's sweep finds the events meanwhile
        self.failures = 0  #: rings that did not reach Redis since the start

    async def ring(self, event_id: uuid.UUID) -> None:
        """Put a hint for this event into Redis, in the background and for at most `RING_LIMIT_S`."""
        if self._away.lately:
            self.failures += 1
            return
        if len(self._next) < HINTS:
            self._next.append(event_id)
        if self._ringing is None:
            self._ringing = asyncio.create_task(self._ring())

    @property
    def under_way(self) -> bool:
        """Whether a ring has not ended yet."""
        return self._ringing is not None

    async def close(self) -> None:
        """Finish the ring under way, within its limit, and close the connection. Safe to repeat."""
        if self._ringing is not None:
            await asyncio.wait({self._ringing}, timeout=2 * RING_LIMIT_S)
        connection, self._redis = self._redis, None
        if connection is not None:
            await close(connection)

    async def _ring(self) -> None:
        try:
            while self._next:
                rung, self._next = self._next, []
                await self._once(rung)
                await asyncio.sleep(GAP_S)
        finally:
            self._ringing = None

    async def _once(self, rung: list[uuid.UUID]) -> None:
        try:
            await asyncio.wait_for(self._enqueue(rung), RING_LIMIT_S)
        except redis_away.ERRORS as error:
            self.failures += 1
            self._away.note(error, failures=self.failures)
            self._next.clear()  # nobody waits for Redis twice

    async def _enqueue(self, rung: list[uuid.UUID]) -> None:
        if self._redis is None:
            self._redis = connect(self._url, timeout_s=RING_LIMIT_S)
        now_ms = int(time.time() * 1000)
        # As ARQ's own enqueue_job does, without its look whether the id is taken: ours differ with every ring.
        hints = {f"{event_id}:{uuid.uuid4().hex[:8]}": str(event_id) for event_id in rung}
        async with self._redis.pipeline(transaction=True) as pipe:
            for hint, event_id in hints.items():
                job = serialize_job(RING, (event_id,), {}, None, now_ms, serializer=encode)
                pipe.psetex(job_key_prefix + hint, HINT_LIFE_MS, job)
            pipe.zadd(QUEUE_NAME, dict.fromkeys(hints, now_ms))
            await pipe.execute()


def open_queue(redis_url: str | None) -> Queue:
    """Return the doorbell for this address; None: one that rings nothing.

    Raises: SetupError when the address cannot be read.
    """
    if redis_url is None:
        return SilentQueue()
    check_url(redis_url)
    return ArqQueue(redis_url)


def check_url(redis_url: str) -> None:
    """Raise SetupError when `redis_url` is not the address of a Redis server. Connects to nothing."""
    try:
        ArqRedis.from_url(redis_url)
    except ValueError as error:
        raise errors.SetupError(f"REDIS_URL: {error}") from error


def connect(redis_url: str, *, timeout_s: float) -> ArqRedis:
    """Return a client that speaks JSON; every command fails after `timeout_s`. Connects at its first command."""
    connection: ArqRedis = ArqRedis.from_url(redis_url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s)
    # ARQ pickles by default, and then whoever can write to Redis runs code in the worker.
    connection.job_serializer = encode
    connection.job_deserializer = decode
    connection.default_queue_name = QUEUE_NAME
    return connection


async def close(connection: ArqRedis) -> None:
    """Close a client, whatever state its server is in."""
    await redis_away.close(connection, limit_s=2 * RING_LIMIT_S)


async def check(redis_url: str) -> str:
    """Return the server's name and version in a line.

    Raises: TryLater when it does not answer, SetupError when the address or the password is wrong.
    """
    check_url(redis_url)
    connection = connect(redis_url, timeout_s=1.5)
    try:
        info = await asyncio.wait_for(connection.info("server"), 2.0)
    except redis.exceptions.AuthenticationError as error:
        raise errors.SetupError("REDIS_URL: the server refuses the password.") from error
    except redis_away.ERRORS as error:
        raise errors.TryLater(
            "Redis does not answer; events are processed all the same, found by the sweep."
        ) from error
    finally:
        await close(connection)
    name = str(info.get("server_name", "redis"))
    return f"{name} {info.get(f'{name}_version', info.get('redis_version', '?'))}"


def encode(value: Any) -> bytes:
    """Serialise one ARQ job. An exception among the values becomes its name."""
    return orjson.dumps(value, default=lambda other: type(other).__name__)


def decode(data: bytes) -> dict[str, Any]:
    """Read one ARQ job."""
    job: dict[str, Any] = orjson.loads(data)
    return job
