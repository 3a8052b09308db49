"""The form of a chat request: endpoints call themselves compatible and differ in what they take."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

MAX_TOKENS = 8192  # of one answer: forty facts with room for thoughts; a small model that rambles is stopped here

Format = Literal["json_schema", "json_object", "text"]
Limit = Literal["max_tokens", "max_completion_tokens"]

_NEXT_FORMAT: dict[Format, Format | None] = {"json_schema": "json_object", "json_object": "text", "text": None}
_NEXT_LIMIT: dict[Limit, Limit | None] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": None}

_ABOUT_FORMAT = re.compile(
    r"response.?format|json.?schema|json.?object|structured.?output|grammar|guided", re.IGNORECASE
)
_ABOUT_LIMIT = re.compile(r"max_(completion_)?tokens", re.IGNORECASE)
_ABOUT_TEMPERATURE = re.compile(r"temperature", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """What a request says beside its messages; starts with everything that helps."""

    format: Format = "json_schema"
    limit: Limit | None = "max_tokens"
    temperature: bool = True  # false: the endpoint's own; reasoning models take no other

    def body(
        self,
        model: str,
        talk: list[dict[str, Any]],
        schema: dict[str, Any] | None,
        name: str,
        *,
        limited: bool,
        strict: bool = True,
    ) -> dict[str, Any]:
        """Return the request. `schema` None: any text will do. `limited` false: as long an answer as the endpoint gives.

        `strict` false: the schema is a caller's, and may hold what strict endpoints do not take.
        """
        body: dict[str, Any] = {"model": model, "messages": talk, "stream": False}
        if self.temperature:
            body["temperature"] = 0
        if limited and self.limit:
            body[self.limit] = MAX_TOKENS
        if schema is None:
            return body
        if self.format == "json_schema":
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": name, "strict": strict, "schema": schema},
            }
            return body
        shape = "\n\nAnswer with one JSON object that is valid under this JSON schema, and nothing else:\n"
        first, *rest = talk
        body["messages"] = [{**first, "content": first["content"] + shape + json.dumps(schema)}, *rest]
        if self.format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def without(self, status: int, said: str) -> Form | None:
        """Return the form to try after a refusal that said `said`. None: the refusal is not about the form."""
        about_format = bool(_ABOUT_FORMAT.search(said))
        if status not in (400, 422, 501) and not (about_format and status in (404, 500)):
            return None
        if self.temperature and _ABOUT_TEMPERATURE.search(said):
            return replace(self, temperature=False)
        if self.limit and _ABOUT_LIMIT.search(said):
            return replace(self, limit=_NEXT_LIMIT[self.limit])
        # Some endpoints refuse what they do not know without a word about it.
        simpler = _NEXT_FORMAT[self.format]
        return replace(self, format=simpler) if simpler else None
