"""`memoryd webhooks`: what was delivered is shown, sent again when an operator says so, and signed with a new secret."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from app.domain import access
from app.model import Project, Status, WebhookEvent
from app.runtime import Runtime
from app.store import announcements, deliveries, webhooks
from tests.cli.conftest import Shell


async def project_with_endpoint(shell: Shell, fresh_db: Any) -> tuple[Project, str]:
    await shell.run("keys", "create")
    project = await access.default_project(Runtime(None, fresh_db.db, None, None, None))  # type: ignore[arg-type]
    async with fresh_db.db.transaction(project.id) as conn:
        made = await webhooks.insert(
            conn, project.id, name="Backup", url="https://x.invalid/in", event_types=[WebhookEvent.MEMORY_ADD],
            is_active=True, owner="a@b.c", secret="whsec_eA==",
        )  # fmt: skip
    return project, made.id


async def give_up(fresh_db: Any, project: Project, count: int) -> None:
    """Make deliveries, and have each fail for good."""
    notices = [
        announcements.Notice(WebhookEvent.MEMORY_ADD, {"event": "ADD"}, None, uuid4(), uuid4()) for _ in range(count)
    ]
    async with fresh_db.db.transaction(None) as conn:
        await announcements.insert(conn, project.id, notices)
        while claimed := await deliveries.claim(conn, lease_s=60, per_endpoint=9):
            made = deliveries.Attempt(claimed.now, 500, 12, response="broken")
            assert await deliveries.settle(conn, claimed.delivery, made, Status.FAILED)


async def test_deliveries_are_shown_and_sent_again(shell: Shell, fresh_db: Any) -> None:
    project, hook = await project_with_endpoint(shell, fresh_db)
    listed = await shell.run("webhooks", "list")
    assert hook in listed
    assert "https://x.invalid/in" in listed
    await give_up(fresh_db, project, 3)
    first, *others = (await shell.run("webhooks", "deliveries", hook, "--status", "FAILED")).splitlines()[1:]
    assert len(others) == 2
    assert "memory_add" in first
    assert "500" in first
    assert "broken" in first
    assert await shell.run("webhooks", "replay", hook, first.split()[0]) == "1 delivery is due again."
    assert await shell.run("webhooks", "replay", hook, "--failed") == "2 deliveries are due again."
    assert len((await shell.run("webhooks", "deliveries", hook, "--status", "PENDING")).splitlines()) == 4


async def test_rotation_prints_the_new_secret(shell: Shell, fresh_db: Any) -> None:
    project, hook = await project_with_endpoint(shell, fresh_db)
    printed = await shell.run("webhooks", "rotate", hook)
    async with fresh_db.db.acquire(project.id) as conn:
        assert await webhooks.secret_of(conn, project.id, hook) == printed


async def test_what_does_not_exist_is_one_clear_line(shell: Shell, fresh_db: Any) -> None:
    _, hook = await project_with_endpoint(shell, fresh_db)
    for arguments, text in (
        (("deliveries", "wh_x"), "Webhook not found"),
        (("rotate", "wh_x"), "Webhook not found"),
        (("replay", "wh_x", "--failed"), "Webhook not found"),
        (("replay", hook, str(uuid4())), "Delivery not found"),
        (("replay", hook, "x"), "not the id"),
        (("replay", hook), "--failed"),
    ):
        assert text in await shell.run("webhooks", *arguments, code=1)
