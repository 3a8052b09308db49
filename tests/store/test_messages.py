"""Messages: the last ones of a scope, in the order they were said."""

from __future__ import annotations

from datetime import UTC, datetime

from uuid_utils.compat import uuid7

from app.model import Message
from app.store import messages
from tests import factories


async def test_the_newest_messages_come_oldest_first(conn, project):
    scope = await factories.make_scope(conn, project)
    other = await factories.make_scope(conn, project, user_id="bob")
    first = [Message("user", f"a{n}", name="Al", index=n, said_at=datetime(2024, 1, 1, tzinfo=UTC)) for n in range(3)]
    stored = await messages.insert_many(conn, project.id, scope.id, uuid7(), first)
    stored += await messages.insert_many(conn, project.id, scope.id, uuid7(), [Message("assistant", "b0")])
    await messages.insert_many(conn, project.id, other.id, uuid7(), [Message("user", "elsewhere")])
    assert await messages.newest(conn, project.id, scope.id, 3) == stored[1:]
    assert await messages.newest(conn, project.id, scope.id, 10) == stored
    assert [(m.content, m.name, m.index) for m in stored] == [
        ("a0", "Al", 0),
        ("a1", "Al", 1),
        ("a2", "Al", 2),
        ("b0", None, 0),
    ]
    assert stored[3].said_at is not None


async def test_messages_are_stored_once(conn, project):
    scope = await factories.make_scope(conn, project)
    stored = await messages.insert_many(conn, project.id, scope.id, uuid7(), [Message("user", "hi")])
    assert await messages.insert_many(conn, project.id, scope.id, uuid7(), stored) == []
    assert await messages.insert_many(conn, project.id, scope.id, uuid7(), []) == []
    assert await messages.newest(conn, project.id, scope.id, 10) == stored


async def test_another_project_sees_no_message(conn, project):
    scope = await factories.make_scope(conn, project)
    stranger = await factories.make_project(conn)
    await messages.insert_many(conn, project.id, scope.id, uuid7(), [Message("user", "hi")])
    assert await messages.newest(conn, stranger.id, scope.id, 10) == []
