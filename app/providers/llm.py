"""A chat model behind any OpenAI-compatible endpoint, asked for JSON."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import httpx

from app import config, errors, log
from app.providers import answers, dialect

MAX_ANSWER_BYTES = 2**20  # of one HTTP answer; forty long facts are a tenth of it
_CONNECT_S = 10.0
_MAX_WAIT_S = 3600  # the longest Retry-After that is believed
_NOTE_CHARS = 200  # of an endpoint's own words that reach an error's text
_BUSY = {408, 425, 429}
_WHY = {
    "empty": "it is empty",
    "cut": "it is cut off before its end",
    "no_json": "it holds no JSON",
    "wrong_shape": "its JSON has another shape than asked for",
}

_log = log.get("memoryd.llm")

Talk: TypeAlias = list[dict[str, Any]]  #: turns, oldest first: role, and content as text or parts


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for a model that sees."""

    url: str  # a data: URL, so that the endpoint fetches nothing
    detail: str | None = None  # how closely to look: low, high, auto

    def part(self) -> dict[str, Any]:
        """Return the picture as a part of a turn."""
        shown = {"url": self.url} if self.detail is None else {"url": self.url, "detail": self.detail}
        return {"type": "image_url", "image_url": shown}


@dataclass(frozen=True, slots=True)
class _Answer:
    content: str
    cut: bool  # the model ran into a limit of length


def open_llm(settings: config.Settings) -> ChatModel | None:
    """Return the chat model of the settings, not contacted yet. None: none is configured.

    Raises: SetupError when only a part of it is set.
    """
    url, model = settings.llm_base_url, settings.llm_model
    if not url and not model:
        return None
    if not url or not model:
        missing = "MEMORYD_LLM_MODEL" if url else "MEMORYD_LLM_BASE_URL"
        raise errors.SetupError(f"{missing} is not set; a chat model needs a base URL and a model name.")
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    return ChatModel(url, model, api_key=key, timeout_s=settings.llm_timeout_s)


class ChatModel:
    """One model at one endpoint. Remembers in which form the endpoint takes its requests."""

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None, timeout_s: float = 120.0) -> None:
        """`base_url` ends before `/chat/completions`. `timeout_s` bounds one answer from start to end.

        Raises: SetupError for an address or a key that no request can carry.
        """
        self.model = model
        self._url = _endpoint(base_url)
        self._key = (api_key or "").strip()
        if not self._key.isascii() or not self._key.isprintable():
            raise errors.SetupError("MEMORYD_LLM_API_KEY: the key has characters that no HTTP header can carry.")
        self._timeout_s = timeout_s
        self._form = dialect.Form()
        headers = {"Accept-Encoding": "identity"}  # what is counted is what was sent
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
            trust_env=not _is_loopback(self._url.host),  # a proxy cannot reach what runs on this machine
        )

    def describe(self) -> str:
        """Return the model and where it is, for people; without user and password."""
        return f"{self.model} at {self._url.copy_with(userinfo=b'', path=_base_path(self._url), query=None)}"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def check(self) -> None:
        """Have the model say a word. Raises: ModelUnavailable, ModelRefused."""
        await self._ask([{"role": "user", "content": "Reply with the word: ready"}], None, "check", limited=True)

    async def complete_json(
        self,
        system: str,
        user: str,
        *,
        schema: dict[str, Any],
        name: str,
        images: Sequence[Image] = (),
        strict: bool = True,
    ) -> Any:
        """Return the model's answer as an object that has what `schema` requires at its top level.

        What is inside its lists is for the caller to check. An answer of no use is asked for once more, with the reason.
        `images` go with the user's turn, for models that see. `strict` false: the schema is a caller's, and what the
        endpoint thinks of it says nothing about other requests.
        Raises: ModelUnavailable; ModelRefused, whose `details["reason"]` is empty, cut, no_json, wrong_shape or refused;
        refused by the endpoint, also with its `details["status"]`.
        """
        asked = [{"type": "text", "text": user}, *map(Image.part, images)] if images else user
        talk: Talk = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
        first = await self._ask(talk, schema, name, limited=True, strict=strict)
        reading = await self._read(first, schema)
        if reading.whole:
            return reading.value
        _log.info("answer_of_no_use", model=self.model, purpose=name, reason=reading.reason)
        second = await self._ask([*talk, *_again(first, reading)], schema, name, limited=not first.cut, strict=strict)
        reread = await self._read(second, schema)
        if reread.whole:
            return reread.value
        # Broken off for no stated reason, twice: the complete items are worth more than another failure. A model that
        # says that it ran out of room is another matter: the caller can ask for less.
        if reread.value is not None and not second.cut:
            _log.warning("answer_cut", model=self.model, purpose=name)
            return reread.value
        reason = "cut" if second.cut else reread.reason
        raise errors.ModelRefused(f"The language model's answer is of no use: {_WHY[reason]}.", reason=reason)

    async def _read(self, answer: _Answer, schema: dict[str, Any]) -> answers.Reading:
        # In a thread: mending a long answer takes longer than the loop may stand still.
        return await asyncio.to_thread(answers.read, answer.content, schema, cut=answer.cut)

    async def _ask(
        self, talk: Talk, schema: dict[str, Any] | None, name: str, *, limited: bool, strict: bool = True
    ) -> _Answer:
        """Send one request, in simpler forms when the endpoint does not take the richer ones."""
        form = self._form
        started = time.monotonic()
        while True:
            response, payload = await self._post(
                form.body(self.model, talk, schema, name, limited=limited, strict=strict)
            )
            if response.status_code == httpx.codes.OK:
                break
            said = _message(payload)
            simpler = form.without(response.status_code, said)
            if simpler is None:
                raise self._refusal(response, said, talk)
            form = simpler
        if form != self._form and strict:
            _log.info("endpoint_form", model=self.model, format=form.format, limit=form.limit)
            self._form = form
        _log.debug("answered", model=self.model, purpose=name, ms=round((time.monotonic() - started) * 1000))
        return self._answer(response, payload, talk)

    async def _post(self, body: dict[str, Any]) -> tuple[httpx.Response, Any]:
        """Return the response and its JSON (None: it is not JSON). Bounded in time, also when it drips, and in size."""
        try:
            async with asyncio.timeout(self._timeout_s), self._http.stream("POST", self._url, json=body) as response:
                data = bytearray()
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > MAX_ANSWER_BYTES:
                        raise errors.ModelRefused(
                            f"The language model's answer is longer than {MAX_ANSWER_BYTES} bytes.",
                            reason="wrong_shape",
                        )
        except (TimeoutError, httpx.TimeoutException) as error:
            raise errors.ModelUnavailable(
                f"The language model did not answer within {self._timeout_s:g} s (MEMORYD_LLM_TIMEOUT_S)."
            ) from error
        except httpx.RequestError as error:
            raise errors.ModelUnavailable(f"The language model cannot be reached ({type(error).__name__}).") from error
        try:
            return response, json.loads(bytes(data))
        except (ValueError, RecursionError):
            return response, None

    def _answer(self, response: httpx.Response, payload: Any, talk: Talk) -> _Answer:
        match payload:
            case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
                raise errors.ModelRefused("The language model declined to answer.", reason="refused")
            case {"choices": [{"message": dict(message), **choice}, *_]}:
                # Thoughts in a field of their own are not the answer, even when the answer is empty.
                return _Answer(_content(message.get("content")), cut=choice.get("finish_reason") == "length")
            case {"error": _}:  # some gateways report a failure behind them as a success of theirs
                raise self._refusal(response, _message(payload), talk)
            case _:
                raise errors.ModelRefused(
                    "The endpoint's answer is not a chat completion; check MEMORYD_LLM_BASE_URL.", reason="wrong_shape"
                )

    def _refusal(self, response: httpx.Response, said: str, talk: Talk) -> errors.AppError:
        """Translate an answer that is no success; nothing of the prompt, and no key, gets into the text."""
        status = response.status_code
        if status in _BUSY or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            return errors.ModelUnavailable(
                f"The language model's endpoint answered HTTP {status}.", retry_after_s=_retry_after_s(response)
            )
        hint = {
            401: "it does not accept the key, check MEMORYD_LLM_API_KEY",
            403: "the key may not use this model, check MEMORYD_LLM_API_KEY and MEMORYD_LLM_MODEL",
            404: f"it does not know the model {self.model} or the address, check MEMORYD_LLM_MODEL and MEMORYD_LLM_BASE_URL",
        }.get(status)
        if status in range(300, 400):
            hint = "it redirects elsewhere, set MEMORYD_LLM_BASE_URL to the final address"
        note = self._harmless(said, talk)
        text = f"The language model's endpoint refused the request (HTTP {status})"
        said_so = ": ".join(part for part in (text, hint, note) if part)
        return errors.ModelRefused(f"{said_so}.", reason="refused", status=status)

    def _harmless(self, said: str, talk: Talk) -> str:
        """Return an endpoint's words without secrets; nothing if they repeat the prompt."""
        note = " ".join(said.split())[:_NOTE_CHARS].rstrip(".")
        if self._key:
            note = note.replace(self._key, "[redacted]")
        prompt = " ".join(" ".join(_content(turn["content"]).split()) for turn in talk)
        width = 20  # characters in common that no chance explains
        if any(note[at : at + width] in prompt for at in range(max(0, len(note) - width) + 1) if note):
            return ""
        return log.redact(note)


def _endpoint(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise errors.SetupError(f"MEMORYD_LLM_BASE_URL: not an address ({error}).") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise errors.SetupError("MEMORYD_LLM_BASE_URL: must be like http://127.0.0.1:11434/v1.")
    return url.copy_with(path=f"{_base_path(url)}/chat/completions")


def _base_path(url: httpx.URL) -> str:
    return url.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _again(answer: _Answer, reading: answers.Reading) -> list[dict[str, str]]:
    """Return the turns that ask for a better answer. An empty turn of the assistant would itself be refused by some."""
    bad = answers.without_thoughts(answer.content)[:4000]
    shorter = " Keep it shorter." if reading.reason == "cut" else ""
    ask = (
        f"Your last answer could not be used: {_WHY[reading.reason]}.{shorter}"
        " Answer the request above again, with nothing but the JSON object in the form described."
    )
    turns = [{"role": "assistant", "content": bad}] if bad else []
    return [*turns, {"role": "user", "content": ask}]


def _content(content: Any) -> str:
    """Return the text of a message, also of one that comes in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _message(payload: Any) -> str:
    """Return what an endpoint says is wrong, in the shapes that are about; empty when it says nothing."""
    match payload:
        case {"error": {"message": str(said), **rest}}:
            return f"{said} {rest['param']}" if isinstance(rest.get("param"), str) else said
        case {"error": str(said)} | {"message": str(said)} | {"detail": str(said)}:
            return said
        case {"detail": [*items]}:
            said_items = [item for item in items if isinstance(item, dict)]
            return "; ".join(f"{item.get('loc', '')} {item.get('msg', '')}" for item in said_items)
        case _:
            return ""


def _retry_after_s(response: httpx.Response) -> int | None:
    """Read Retry-After, seconds or a date (RFC 9110, 10.2.3). None: absent or nonsense."""
    value = response.headers.get("retry-after", "").strip()
    if value.isdecimal() and value.isascii():
        return min(int(value[:9]), _MAX_WAIT_S)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max(0, round((at - datetime.now(UTC)).total_seconds())), _MAX_WAIT_S)
