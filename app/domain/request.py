"""An add as the service understands it, and the form in which its event keeps it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from app.domain import parts
from app.model import OWNER_FIELDS, Message, Owners

_TEXTS = ("memory_type", "timezone", "custom_instructions", "agent_custom_instructions", "includes", "excludes")


@dataclass(frozen=True, slots=True)
class Request:
    """A validated add."""

    messages: tuple[Message, ...]  # oldest first; `index` is the position in the request
    owners: Owners
    metadata: dict[str, Any] | None = None  # goes on every memory of the add
    infer: bool = True  # False: messages are stored as they are, at once
    immutable: bool = False
    expiration_date: date | None = None
    timestamp: datetime | None = None  # aware; becomes created_at, and outranks observation_at
    observation_at: datetime | None = None  # aware; when the conversation took place
    timezone: str | None = None  # IANA name, known to this machine; where the speakers are
    custom_instructions: str | None = None  # None: the project's
    agent_custom_instructions: str | None = None
    includes: str | None = None
    excludes: str | None = None
    custom_categories: list[Any] | None = None
    temporal_reasoning: bool = True  # False: memories keep no time at which what they tell took place
    memory_type: str | None = None  # procedure.KIND: one record of an agent's run; None: facts
    extra: dict[str, Any] = field(default_factory=dict)  # accepted, kept and shown with the event, without effect here

    @property
    def zone(self) -> ZoneInfo:
        """Time zone of the speakers."""
        return ZoneInfo(self.timezone or "UTC")


def to_payload(request: Request) -> dict[str, Any]:
    """Return the request in the words of the wire, without what was not given. `from_payload` reads it back."""
    payload: dict[str, Any] = {**request.extra, "messages": [_message(message) for message in request.messages]}
    payload |= request.owners.named()
    payload["infer"] = request.infer
    given = {
        "metadata": request.metadata,
        "immutable": request.immutable or None,
        "expiration_date": request.expiration_date and request.expiration_date.isoformat(),
        "timestamp": request.timestamp and request.timestamp.timestamp(),
        "observation_datetime": request.observation_at and request.observation_at.isoformat(),
        "custom_categories": request.custom_categories,
        "temporal_reasoning": None if request.temporal_reasoning else False,
        **{name: getattr(request, name) for name in _TEXTS},
    }
    return payload | {name: value for name, value in given.items() if value is not None}


def from_payload(payload: Mapping[str, Any]) -> Request:
    """Return the request of an event's payload.

    Raises: KeyError, TypeError or ValueError when it was written by a release whose form this one does not know.
    """
    texts: dict[str, Any] = {name: payload.get(name) for name in _TEXTS}
    expires, timestamp, observed = (payload.get(n) for n in ("expiration_date", "timestamp", "observation_datetime"))
    return Request(
        messages=tuple(_read(item, index) for index, item in enumerate(payload["messages"])),
        owners=Owners(**{name: payload.get(name) for name in OWNER_FIELDS}),
        metadata=payload.get("metadata"),
        infer=payload["infer"],
        immutable=bool(payload.get("immutable")),
        expiration_date=None if expires is None else date.fromisoformat(expires),
        timestamp=None if timestamp is None else datetime.fromtimestamp(timestamp, UTC),
        observation_at=None if observed is None else datetime.fromisoformat(observed),
        custom_categories=payload.get("custom_categories"),
        temporal_reasoning=payload.get("temporal_reasoning") is not False,
        **texts,
    )


def fingerprint(kind: str, payload: Mapping[str, Any]) -> bytes:
    """Return a digest of what was asked for: equal for equal bodies, whatever the order of their keys."""
    body = json.dumps([kind, payload], sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(body.encode()).digest()


def _read(item: Mapping[str, Any], index: int) -> Message:
    text, found = parts.stored(item["content"])
    return Message(role=item["role"], content=text, name=item.get("name"), index=index, parts=found)


def _message(message: Message) -> dict[str, Any]:
    content = [parts.to_wire(part) for part in message.parts] if message.parts else message.content
    plain = {"role": message.role, "content": content}
    return plain if message.name is None else plain | {"name": message.name}
