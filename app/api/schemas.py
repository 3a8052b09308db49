"""Every JSON shape that comes in. What goes out is in `answers.py`; single values are read in `fields.py`."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from app.api import fields as read
from app.config import Settings
from app.domain import add, edit, limits, parts, procedure
from app.domain.filter_fields import CAMEL
from app.errors import InvalidRequest
from app.model import OWNER_FIELDS, Message, Owners

NOON = time(12)  #: of a day whose hour nobody gave: far from both neighbours, in every time zone
NO_OWNER = "At least one of user_id, agent_id, app_id, run_id is required."
NO_FILTERS = "Filters are required and cannot be empty. Name at least one of user_id, agent_id, app_id, run_id in them."


class Body(BaseModel):
    """A JSON object. Unknown fields are ignored: every client sends some of its own. Null means absent."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, frozen=True)
    cleaned: ClassVar[frozenset[str]] = frozenset()  # fields in whose texts U+0000 is removed; elsewhere it is refused
    nullable: ClassVar[frozenset[str]] = frozenset()  # fields in which null differs from absent

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return cls.prepare({name: value for name, value in data.items() if value is not None or name in cls.nullable})

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return `data` as the fields expect it. Raises: ValueError."""
        return data

    def check(self, settings: Settings) -> None:
        """Refuse what passes a limit of the settings. Raises: InvalidRequest."""


# Add


_PLACE = {"anyOf": [
    {"type": "string"},
    {"type": "object", "required": ["url"], "properties": {
        "url": {"type": "string"}, "detail": {"type": "string", "enum": list(parts.DETAILS)}}},
]}  # fmt: skip
_PART: dict[str, Any] = {"type": "object", "required": ["type"], "properties": {
    "type": {"type": "string"}, "text": {"type": "string"}, **dict.fromkeys(parts.KINDS, _PLACE)}}  # fmt: skip


class MessageIn(Body):
    """One turn of the conversation."""

    role: Annotated[
        str,
        PlainValidator(read.role),
        WithJsonSchema({"type": "string", "enum": list(read.ROLES)}),
        Field(description="Who speaks. `agent` means `assistant`; system messages are never stored."),
    ]
    content: Annotated[
        read.Content,
        PlainValidator(read.content),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string"},
                    _PART,
                    {"type": "array", "items": _PART, "maxItems": read.MAX_PARTS},
                ]
            }
        ),
        Field(
            default_factory=lambda: read.Content(""),
            description='A text, a part such as `{"type": "text", "text": …}`, or a list of parts. Images and documents '
            "are parts too, with `infer: true`: `image_url`, `pdf_url`, `mdx_url`, `txt_url`, each with a `url`: "
            "http(s), `data:`, or, of MDX and plain text, base64. They are fetched and read by the worker; one that "
            "cannot be read fails the event. Images need a model that sees.",
        ),
    ]
    name: Annotated[
        str | None,
        PlainValidator(read.speaker),
        WithJsonSchema({"type": "string"}),
        Field(description="The speaker's name, in a conversation of several people."),
    ] = None


class AddRequest(Body):
    """A conversation to remember, and whose it is."""

    cleaned = frozenset({"messages", "metadata"})

    messages: Annotated[
        list[MessageIn],
        BeforeValidator(read.messages),
        Field(description="The new turns, oldest first. A text or a single message is taken too."),
    ]
    user_id: read.Owner | None = Field(None, description="The user whom the memories are about.")
    agent_id: read.Owner | None = Field(None, description="The agent whom the memories are about.")
    app_id: read.Owner | None = Field(None, description="The application that they belong to.")
    run_id: read.Owner | None = Field(None, description="The session that they belong to.")
    filters: dict[str, Any] | None = Field(
        None, description="The owner ids once more, for clients that send them here; the top level wins."
    )
    metadata: read.Mapping | None = Field(
        None, description="Any JSON object; copied to every memory of this add. U+0000 in its texts is removed."
    )
    infer: read.Flag = Field(
        True,
        description="False: store the messages as they are, at once, instead of extracting what is worth remembering.",
    )
    memory_type: (
        Annotated[
            str,
            PlainValidator(read.memory_type),
            WithJsonSchema({"type": "string", "enum": [procedure.KIND]}),
        ]
        | None
    ) = Field(
        None,
        description="`procedural_memory` makes one structured record of an agent's run: goal, steps with their exact "
        "results, state, what comes next. Needs `agent_id`.",
    )
    immutable: read.Flag = Field(False, description="The memories can never be changed, only deleted.")
    expiration_date: read.Day | None = Field(None, description="Last day on which the memories are found, UTC.")
    timestamp: read.Instant | None = Field(
        None, description="When it was said, in Unix seconds or ISO 8601: becomes `created_at`, and dates the facts."
    )
    observation_date: read.Day | None = Field(
        None, description="Day of the conversation; relative dates count from it."
    )
    observation_datetime: read.LocalInstant | None = Field(
        None, description="Time of the conversation; wins over `observation_date`."
    )
    timezone: read.Zone | None = Field(None, description="IANA name of the time zone that the two above are in.")
    custom_instructions: read.Words = Field(None, description="What to extract and how; instead of the project's text.")
    agent_custom_instructions: read.Words = Field(None, description="The same for the agent's memories.")
    custom_categories: read.Categories | None = Field(
        None, description="Categories as `{name: description}`; instead of the project's list."
    )
    temporal_reasoning: read.Flag = Field(
        True, description="False: do not note when what the memories tell took place, which searches prefer them by."
    )
    includes: read.Words = Field(None, description="Topics to keep.")
    excludes: read.Words = Field(None, description="Topics to leave out.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Take the owners from the top level or from `filters`, in either spelling."""
        named = _owners_in(data)
        in_filters = data.get("filters") or {}
        if not isinstance(in_filters, dict):
            raise ValueError("filters must be an object.")
        also = _owners_in(in_filters)
        unknown = set(in_filters) - set(OWNER_FIELDS) - set(CAMEL)
        if unknown or any(isinstance(value, dict | list) for value in also.values()):
            raise ValueError("filters of an add may only hold plain owner ids: user_id, agent_id, app_id, run_id.")
        owners = {**{name: value for name, value in also.items() if value is not None}, **named}
        if not owners:
            raise ValueError(NO_OWNER)
        return {**data, **owners}

    def check(self, settings: Settings) -> None:
        """Refuse metadata and messages beyond their limits. Raises: InvalidRequest."""
        if self.metadata is not None:
            limits.check_metadata(settings, self.metadata)
        for index, message in enumerate(self.messages):
            limits.check_text(settings, f"messages[{index}].content", message.content.text)
        if self.memory_type and not self.agent_id:
            raise InvalidRequest(f"memory_type {procedure.KIND} needs agent_id: the record is of an agent's run.")
        if self.memory_type and not self.infer:
            raise InvalidRequest(f"memory_type {procedure.KIND} makes a record; it cannot go with infer: false.")

    def request(self) -> tuple[add.Request, list[dict[str, Any]]]:
        """Return the add, and what of its messages cannot be read: `index`, `role`, `reason` of each.

        Raises: InvalidRequest when nothing is left to remember.
        """
        turns: list[Message] = []
        unread: list[dict[str, Any]] = []
        for index, message in enumerate(self.messages):
            kinds = ", ".join(dict.fromkeys(message.content.unread))
            if kinds:
                reason = f"parts of type {kinds} are not known; there are text, {', '.join(parts.KINDS)}"
                if self.infer:
                    raise InvalidRequest(f"messages[{index}].content: {reason}.")
                unread.append({"index": index, "role": message.role, "reason": reason})
            if message.content.text.strip() or message.content.parts or not kinds:
                said = message.content
                turns.append(Message(message.role, said.text, message.name, index, parts=said.parts))
        if not any(turn.content.strip() or (turn.parts and self.infer) for turn in turns):
            raise InvalidRequest(_nothing(turns, unread))
        return add.Request(
            messages=tuple(turns),
            owners=Owners(self.user_id, self.agent_id, self.app_id, self.run_id),
            metadata=self.metadata,
            infer=self.infer,
            immutable=self.immutable,
            expiration_date=self.expiration_date,
            timestamp=self.timestamp,
            observation_at=self._observed_at(),
            timezone=self.timezone,
            custom_instructions=self.custom_instructions,
            agent_custom_instructions=self.agent_custom_instructions,
            includes=self.includes,
            excludes=self.excludes,
            custom_categories=self.custom_categories,
            temporal_reasoning=self.temporal_reasoning,
            memory_type=self.memory_type,
        ), unread

    def _observed_at(self) -> datetime | None:
        """Return when the conversation took place, aware, if the request says so beside `timestamp`."""
        moment = self.observation_datetime
        if moment is None and self.observation_date is not None:
            moment = datetime.combine(self.observation_date, NOON)
        if moment is None or moment.tzinfo is not None:
            return moment
        return moment.replace(tzinfo=ZoneInfo(self.timezone) if self.timezone else UTC)


def _nothing(turns: list[Message], unread: list[dict[str, Any]]) -> str:
    """Return why messages without a text to store are refused."""
    if any(turn.parts for turn in turns):
        return "messages hold no text; images and documents are read with infer: true only."
    return unread[0]["reason"] + "." if unread else "messages hold no text."


def _owners_in(data: dict[str, Any]) -> dict[str, Any]:
    """Return the owner ids in `data` under their snake-case names; that spelling wins."""
    camel = {name: data[key] for key, name in CAMEL.items() if key in data}
    return {**camel, **{name: data[name] for name in OWNER_FIELDS if name in data}}


# Search and list


class Selection(Body):
    """What search and list have in common."""

    filters: dict[str, Any] = Field(
        description="Which memories: owner ids, metadata, categories, dates, combined by AND, OR, NOT. "
        "At least one owner id must be named; `*` means any."
    )
    categories: Any = Field(None, description="Only memories with one of these categories.", json_schema_extra={
        "type": "array", "items": {"type": "string"}})  # fmt: skip
    show_expired: read.Flag = Field(False, description="Also memories whose expiration date has passed.")
    latest_only: read.Flag = Field(False, description="Only memories that no newer one has replaced.")
    include_merged: read.Flag = Field(False, description="Also memories that were merged into a fuller one.")
    fields: read.Names | None = Field(None, description="Only these fields of each memory; `id` is always there.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse owner ids beside the filters, where they would look as if they counted."""
        misplaced = [name for name in (*OWNER_FIELDS, *CAMEL) if name in data]
        if misplaced:
            name = misplaced[0]
            raise ValueError(f'{name} belongs into filters, as in {{"filters": {{"{CAMEL.get(name, name)}": …}}}}.')
        filters = data.get("filters")
        if filters is None or filters == {} or filters == []:
            raise ValueError(NO_FILTERS)
        if not isinstance(filters, dict):
            raise ValueError("filters must be an object.")
        return data


class SearchRequest(Selection):
    """A question, and where to look."""

    query: str = Field(description="What to look for, in any language.", min_length=1)
    top_k: Annotated[int, Field(ge=1, le=1000), BeforeValidator(read.whole)] | None = Field(
        None,
        description="Hits at most; default: the project's setting (20, or 10 as on the hosted platform).",
    )
    threshold: Annotated[float, BeforeValidator(read.whole)] = Field(
        0.1, ge=0, le=1, description="Least score of a hit; 0 keeps all."
    )
    rerank: read.Flag = Field(False, description="Order the hits once more, by a slower judge, if one is configured.")
    reference_date: read.Instant | None = Field(None, description='What "today" means in the query; default: now.')
    metadata: read.Mapping | None = Field(None, description="Only memories whose metadata has these values.")
    keywords: Any = Field(
        None, description="Only memories that contain this text.", json_schema_extra={"type": "string"}
    )

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Trim the query."""
        data = super().prepare(data)
        query = data.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ValueError("query must be a text that is not blank.")
        return {**data, "query": query.strip()}

    def check(self, settings: Settings) -> None:
        """Refuse a query beyond the limit of a message. Raises: InvalidRequest."""
        limits.check_text(settings, "query", self.query)


class ExplainedSearch(SearchRequest):
    """A question, where to look, and whether to say why."""

    explain: read.Flag = Field(False, description="Also say why: of each hit, and how the query was read.")
    min_confidence: read.Confidence = read.MIN_CONFIDENCE


class ContextRequest(Selection):
    """A question, where to look, and how much room there is."""

    query: str = Field(description="What the prompt is about, in any language.", min_length=1)
    max_tokens: Annotated[int, Field(ge=20, le=32_000), BeforeValidator(read.whole)] = Field(
        1000, description="Tokens of the block at most, counted with o200k_base."
    )
    format: Literal["markdown", "text"] = Field("markdown", description="`text`: headings without `##`.")
    include_dates: read.Flag = Field(True, description="Head the memories of each day with its date.")
    neighbours: read.Flag = Field(True, description="Also what was said beside a raw turn, where there is room.")
    superseded: Literal["omit", "mark"] = Field(
        "omit", description="What becomes of memories that a newer one contradicts: left out, or shown and marked."
    )
    threshold: Annotated[float, BeforeValidator(read.whole)] = Field(
        0.0, ge=0, le=1, description="Least score of a memory; by default the room decides."
    )
    reference_date: read.Instant | None = Field(None, description='What "today" means in the query; default: now.')
    metadata: read.Mapping | None = Field(None, description="Only memories whose metadata has these values.")
    keywords: Any = Field(
        None, description="Only memories that contain this text.", json_schema_extra={"type": "string"}
    )

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Trim the query, and hide what was superseded."""
        data = SearchRequest.prepare(data)
        return data if data.get("superseded") == "mark" else {**data, "latest_only": True}

    def check(self, settings: Settings) -> None:
        """Refuse a query beyond the limit of a message. Raises: InvalidRequest."""
        limits.check_text(settings, "query", self.query)


class ListRequest(Selection):
    """Which memories to list."""

    metadata: read.Mapping | None = Field(None, description="Only memories whose metadata has these values.")
    keywords: Any = Field(
        None, description="Only memories that contain this text.", json_schema_extra={"type": "string"}
    )
    start_date: Any = Field(None, description="Created on this day or later, YYYY-MM-DD.", json_schema_extra={
        "type": "string", "format": "date"})  # fmt: skip
    end_date: Any = Field(None, description="Created on this day or earlier, YYYY-MM-DD.", json_schema_extra={
        "type": "string", "format": "date"})  # fmt: skip
    page: Any = Field(None, description="As the query parameter, which wins.", json_schema_extra={"type": "integer"})
    page_size: Any = Field(
        None, description="As the query parameter, which wins.", json_schema_extra={"type": "integer"}
    )


# Update


class UpdateRequest(Body):
    """What changes of a memory; what is absent stays."""

    cleaned = frozenset({"text", "metadata"})
    nullable = frozenset({"expiration_date"})

    text: str | None = Field(None, description="The new text.")
    metadata: read.Mapping | None = Field(None, description="Replaces the metadata as a whole.")
    expiration_date: read.Day | None = Field(None, description="Last day on which it is found; null: for ever.")
    timestamp: read.Instant | None = Field(None, description="Becomes `created_at`; Unix seconds or ISO 8601.")

    @classmethod
    def prepare(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse a request that changes nothing: it is a misspelling."""
        if not set(data) & set(cls.model_fields):
            raise ValueError("Nothing to change: send text, metadata, expiration_date or timestamp.")
        text = data.get("text")
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise ValueError("text must be a text that is not blank.")
        return data

    def check(self, settings: Settings) -> None:
        """Refuse metadata beyond its limit. Raises: InvalidRequest."""
        if self.metadata is not None:
            limits.check_metadata(settings, self.metadata)

    def update(self) -> edit.Update:
        """Return what changes."""
        sent = {name: getattr(self, name) for name in self.model_fields_set & UpdateRequest.model_fields.keys()}
        if "timestamp" in sent:
            sent["created_at"] = sent.pop("timestamp")
        return edit.Update(**sent)
