"""What each table keeps of an owner: the words by which its rows are deleted, and counted.

`OF_OWNER` says of every table which rows are an owner's; what they are found by is in `Reach`. A table of tenants that is
neither there nor among `NOT_OF_OWNERS` fails a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from app.model import OwnerKind

CHUNK = 2_000  #: memories, or adds, that one transaction erases of an owner that has many


@dataclass(frozen=True, slots=True)
class Reach:
    """What an owner's rows are found by."""

    kind: OwnerKind | None  # None, with `name`: a part of it, which no row is found in by the owner itself
    name: str | None
    fields: tuple[str, ...] = ()  # that name it in filters, in every spelling
    scopes: tuple[int, ...] = ()  # that name it
    shared: tuple[int, ...] = ()  # others that adds said in `scopes` may have written to
    adds: tuple[UUID, ...] = ()  # events of the adds that were said in `scopes`
    memories: tuple[UUID, ...] = ()  # to be erased; also those that were deleted before
    kept: tuple[UUID, ...] = ()  # of others, made from what was said in `scopes`

    def parts(self) -> Iterator[Reach]:
        """Yield it in parts that one transaction takes, memories before the adds by which some of them are found."""
        nobody = replace(self, kind=None, name=None, scopes=(), adds=(), memories=(), kept=())
        for start in range(0, len(self.memories), CHUNK):
            yield replace(nobody, memories=self.memories[start : start + CHUNK])
        for start in range(0, len(self.adds), CHUNK):
            yield replace(nobody, adds=self.adds[start : start + CHUNK], kept=self.kept)


_TYPES = {
    "kind": "text",
    "name": "text",
    "fields": "text[]",
    "scopes": "bigint[]",
    "shared": "bigint[]",
    "adds": "uuid[]",
    "memories": "uuid[]",
}
_PARAMETER = re.compile(rf":({'|'.join(_TYPES)})\b")

_NAMED = """((:kind = 'user' AND t.user_id = :name) OR (:kind = 'agent' AND t.agent_id = :name)
    OR (:kind = 'app' AND t.app_id = :name) OR (:kind = 'run' AND t.run_id = :name))"""  # the kind is known to the planner


def as_(alias: str, where: str) -> str:
    """Return a condition on rows `t` as one on rows of another alias."""
    return re.sub(r"\bt\.", f"{alias}.", where)


def _filtered(column: str) -> str:
    return f"""EXISTS (
        SELECT FROM unnest(:fields) AS f (field), jsonb_path_query({column}, ('$.**."' || f.field || '".**')::jsonpath) v
        WHERE btrim(v #>> '{{}}', E' \\t\\r\\n') = :name)"""


# Memories that an event of a change is about.
_ABOUT = """(
    SELECT t.payload ->> 'memory_id' AS id WHERE t.payload ? 'memory_id'
    UNION ALL SELECT v #>> '{}' FROM jsonb_path_query(t.payload, '$.memories[*].memory_id') v
    UNION ALL SELECT v #>> '{}' FROM jsonb_path_query(t.payload, '$.memory_ids[*]') v) AS about"""
#: Events `t` that change memories and are no adds; with some of the memories, and with others too.
OF_CHANGES = "t.kind <> 'ADD' AND t.kind IN ('UPDATE', 'DELETE', 'CATEGORIZE')"
SOME = f"EXISTS (SELECT FROM {_ABOUT} WHERE about.id = ANY (:memories::text[]))"
OTHERS = f"EXISTS (SELECT FROM {_ABOUT} WHERE about.id <> ALL (:memories::text[]))"
#: Jobs `t` that make the profile of the owner.
PROFILE_OF = "t.kind = 'PROFILE' AND t.payload ->> 'entity_type' = :kind AND t.payload -> 'entity_ids' ? :name"

_EXPORT = f"""t.scope_ids && :scopes OR {_filtered("t.filters")} OR t.scope_ids && ARRAY(
    SELECT m.scope_id FROM memories m WHERE m.project_id = $1 AND m.id = ANY (:memories))"""  # noqa: S608 - constants

# An event that was emptied is none of anybody any more.
_EVENT = f"""t.payload <> '{{}}' AND (t.scope_id = ANY (:scopes) OR t.id = ANY (:adds)
    OR ({OF_CHANGES} AND {SOME})
    OR (t.kind <> 'ADD' AND (
        {PROFILE_OF}
        OR (t.kind = 'DELETE_USER' AND t.payload ->> 'entity_type' = :kind AND t.payload ->> 'entity_id' = :name)
        OR (t.kind IN ('DELETE_ALL', 'EXPORT') AND {_filtered("t.payload")})
        OR (t.kind = 'EXPORT' AND t.id IN (
            SELECT x.id FROM exports x WHERE x.project_id = $1 AND ({as_("x", _EXPORT)}))))))"""  # noqa: S608

#: Deliveries `t` that tell of the owner.
DELIVERY = f"({_NAMED} OR t.memory_id = ANY (:memories))"

#: By table, which rows `t` of the project are the owner's. In the order in which they are deleted.
OF_OWNER = {
    "idempotency_answers": f"""strpos(t.answer, to_json(:name)::text) > 0 OR (length(:name) > 3 AND strpos(t.key, :name) > 0)
        OR EXISTS (SELECT FROM regexp_matches(t.answer, '[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}', 'g') AS m
                   WHERE m[1] = ANY (:memories::text[]))
        OR t.key IN (SELECT e.idempotency_key FROM events e WHERE e.project_id = $1 AND e.idempotency_key IS NOT NULL
                     AND ({as_("e", _EVENT)}))""",  # noqa: S608
    "events": _EVENT,
    "delivery_attempts": f"""t.delivery_id IN (
        SELECT d.id FROM deliveries d WHERE d.project_id = $1 AND {as_("d", DELIVERY)})""",  # noqa: S608
    "deliveries": DELIVERY,
    "exports": _EXPORT,
    "profiles": """(t.kind = :kind AND t.name = :name) OR EXISTS (
        SELECT FROM memories m WHERE m.project_id = $1 AND m.id = ANY (:memories)
        AND ((t.kind = 'user' AND m.user_id = t.name) OR (t.kind = 'agent' AND m.agent_id = t.name)))""",
    "memory_entities": "t.memory_id = ANY (:memories)",
    "memory_sources": """t.memory_id = ANY (:memories) OR t.message_id IN (
        SELECT m.id FROM messages m WHERE m.project_id = $1 AND m.scope_id = ANY (:scopes))""",
    "memory_vectors": "t.memory_id = ANY (:memories)",
    "memory_access": "t.memory_id = ANY (:memories)",
    "feedback": "t.memory_id = ANY (:memories)",
    "terms": "t.scope_id = ANY (:scopes) OR (t.scope_id = ANY (:shared) AND t.memory_id = ANY (:memories))",
    "memories": "t.id = ANY (:memories) OR t.scope_id = ANY (:scopes)",
    "entities": "t.scope_id = ANY (:scopes)",
    "history": "t.memory_id = ANY (:memories) OR t.scope_id = ANY (:scopes)",
    "messages": "t.scope_id = ANY (:scopes)",
    "vector_indexes": "t.scope_id = ANY (:scopes)",
    "scopes": "t.id = ANY (:scopes)",
    "owners": "t.kind = :kind AND t.name = :name",
}

#: Tables of tenants that keep nothing of an owner, each with the reason.
NOT_OF_OWNERS = {
    "api_keys": "a pin names an owner because an administrator said so; every receipt says that it stays",
    "project_members": "addresses of people who work on the project",
    "webhooks": "endpoints of the project",
    "profile_settings": "settings of the project",
    "retrievals": "numbers",
    "erased_owners": "digests, for an hour",
    "audit_log": "who did what; owners as digests",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement on the rows that a Reach finds, and the fields that it asks for."""

    sql: str
    names: tuple[str, ...]  # of the fields of a Reach, in the order of $2…

    def args(self, project_id: int, reach: Reach) -> list[Any]:
        """Return the arguments."""
        values = (getattr(reach, name) for name in self.names)
        return [project_id, *(list(value) if isinstance(value, tuple) else value for value in values)]


def statement(template: str) -> Statement:
    """Return a statement from SQL with the fields of a Reach as `:field`; $1 is the project."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(template)))
    places = {name: f"${number}::{_TYPES[name]}" for number, name in enumerate(names, 2)}
    return Statement(_PARAMETER.sub(lambda match: places[match[1]], template), names)
