"""What the audit log says of requests: which routes leave a line, who asks, and who was refused."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from uuid import UUID

from fastapi import Request

from app import errors, log
from app.api import auth
from app.domain import audit
from app.model import Caller

REQUEST_ID = "memoryd.request_id"  #: key of the ASGI scope
REFUSED_EVERY_S = 60.0  #: a key that is refused again and again leaves a line of each action so often
REMEMBERED = 10_000  #: refusals, at most

#: By the name of the route, what its line says; the verb writes it. A test asks of every other write why it leaves none.
ACTIONS = {
    "create_organization": "organization.create",
    "delete_organization": "organization.delete",
    "add_organization_member": "member.add",
    "update_organization_member": "member.update",
    "remove_organization_member": "member.remove",
    "create_project": "project.create",
    "update_project": "project.update",  # project.limits, where it changes one
    "delete_project": "project.delete",
    "add_project_member": "member.add",
    "update_project_member": "member.update",
    "remove_project_member": "member.remove",
    "create_key": "key.create",
    "rotate_key": "key.rotate",
    "revoke_key": "key.revoke",
    "create_webhook": "webhook.create",
    "update_webhook": "webhook.update",
    "delete_webhook": "webhook.delete",
    "rotate_webhook_secret": "webhook.rotate",
    "replay_webhook_delivery": "webhook.replay",
    "delete_all_memories": "memories.delete_all",
    "delete_memories": "memories.delete_batch",
    "import_memories": "memories.import",
    "delete_entity": "entity.erase",
    "delete_entity_by_number": "entity.erase",
    "create_export": "export.create",
    "export_lines": "export.raw",
    "update_profile_settings": "profiles.settings",
}
_OWN_HISTORY = "the history of the memory has it"
_EVERYDAY = "everyday work, which its event or the thing itself shows"
#: The other routes that change something, and why they leave no line.
WITHOUT = {
    "add_memories": _EVERYDAY,
    "add_memories_v1": _EVERYDAY,
    "update_memory": _OWN_HISTORY,
    "update_memories": _OWN_HISTORY,
    "delete_memory": _OWN_HISTORY,
    "give_feedback": _EVERYDAY,
    "create_user": _EVERYDAY,
    "create_agent": _EVERYDAY,
    "create_app": _EVERYDAY,
    "create_run": _EVERYDAY,
    "create_profile_job": _EVERYDAY,
}

_log = log.get(__name__)
_refused: dict[tuple[UUID, str], float] = {}  # whom and what → when by the monotonic clock a line was written last


def acting(request: Request) -> AbstractContextManager[None]:
    """Write the lines of a request for whoever sent it."""
    caller: Caller = request.scope[auth.CALLER]
    address = request.client.host if request.client else None
    return audit.acting(audit.Actor(caller, address, request.scope.get(REQUEST_ID)))


async def note_refusal(request: Request, route: str) -> None:
    """Write that a key may not do what a route does, if that leaves a line at all; in a transaction of its own.

    Wrong keys leave none: whoever has no key could fill the log; the log of requests has them, with address and status.
    """
    caller: Caller = request.scope[auth.CALLER]
    action, now = ACTIONS.get(route), time.monotonic()
    if action is None or now - _refused.get((caller.key_id, action), -REFUSED_EVERY_S) < REFUSED_EVERY_S:
        return
    while len(_refused) >= REMEMBERED:
        _refused.pop(next(iter(_refused)))
    _refused[caller.key_id, action] = now
    try:
        async with request.app.state.runtime.db.transaction(caller.project.id) as conn:
            await audit.note(conn, action, project=caller.project, outcome="refused")
    except errors.DatabaseUnavailable as error:  # the refusal stands all the same
        _log.warning("audit.refusal_not_noted", code=error.code, action=action)
