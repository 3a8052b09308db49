"""What a key needs for each route, in one place. A route that is not here needs `admin`, and a test fails for it."""

from __future__ import annotations

from dataclasses import dataclass

from app import errors
from app.model import Caller, KeyScope


@dataclass(frozen=True, slots=True)
class Right:
    """What one route asks of a key."""

    scope: KeyScope | None  # None: any valid key
    pinned: bool = False  # whether keys that are pinned to owners may call it: it shows and changes only theirs


_ANY = Right(None)
_READ, _OWN_READ = Right("memories:read"), Right("memories:read", pinned=True)
_WRITE, _OWN_WRITE = Right("memories:write"), Right("memories:write", pinned=True)
_OWN_DELETE = Right("memories:delete", pinned=True)
_WEBHOOKS = Right("webhooks")
_EXPORTS = Right("exports")
_ADMIN = Right("admin")

#: By the name of the route, which is its operation id in `openapi.yaml` too.
RIGHTS = {
    "ping": Right(None, pinned=True),
    # Memories
    "add_memories": _OWN_WRITE,
    "add_memories_v1": _OWN_WRITE,
    "import_memories": _WRITE,
    "search_memories": _OWN_READ,
    "explain_search": _OWN_READ,
    "make_context": _OWN_READ,
    "search_memories_v1": _OWN_READ,
    "search_memories_v2": _OWN_READ,
    "list_memories": _OWN_READ,
    "list_memories_v1": _OWN_READ,
    "list_memories_v2": _OWN_READ,
    "list_memories_of_entity": _OWN_READ,
    "get_memory": _OWN_READ,
    "get_history": _OWN_READ,
    "get_sources": _OWN_READ,
    "list_changes": _READ,
    "update_memory": _OWN_WRITE,
    "update_memories": _OWN_WRITE,
    "give_feedback": _OWN_WRITE,
    "delete_memory": _OWN_DELETE,
    "delete_memories": _OWN_DELETE,
    "delete_all_memories": _OWN_DELETE,
    "summarize": _READ,
    "get_stats": _READ,
    # Events
    "get_event": _OWN_READ,
    "list_events": _READ,
    # Owners
    "list_entities": _READ,
    "list_entity_filters": _READ,
    "get_entity": _OWN_READ,
    "create_user": _OWN_WRITE,
    "create_agent": _OWN_WRITE,
    "create_app": _OWN_WRITE,
    "create_run": _OWN_WRITE,
    "delete_entity": _OWN_DELETE,
    "delete_entity_by_number": _OWN_DELETE,
    # Profiles
    "get_profile": _READ,
    "get_profile_job": _READ,
    "create_profile_job": _WRITE,
    "get_profile_settings": _READ,
    "update_profile_settings": _ADMIN,
    # Exports and webhooks tell about all memories
    "create_export": _EXPORTS,
    "get_export": _EXPORTS,
    "export_lines": _EXPORTS,
    "list_webhooks": _WEBHOOKS,
    "create_webhook": _WEBHOOKS,
    "update_webhook": _WEBHOOKS,
    "delete_webhook": _WEBHOOKS,
    "rotate_webhook_secret": _WEBHOOKS,
    "list_webhook_deliveries": _WEBHOOKS,
    "replay_webhook_delivery": _WEBHOOKS,
    # Keys, and who used them for what
    "list_audit": _ADMIN,
    "list_keys": _ADMIN,
    "create_key": _ADMIN,
    "rotate_key": _ADMIN,
    "revoke_key": _ADMIN,
    "get_metrics": _ADMIN,
    # Organizations and projects; what an owner's key may do beyond its project, domain.tenancy decides
    "list_organizations": _ANY,
    "get_organization": _ANY,
    "create_organization": _ADMIN,
    "delete_organization": _ADMIN,
    "list_organization_members": _ANY,
    "add_organization_member": _ADMIN,
    "update_organization_member": _ADMIN,
    "remove_organization_member": _ADMIN,
    "list_projects": _ANY,
    "get_project": _ANY,
    "create_project": _ADMIN,
    "update_project": _ADMIN,
    "delete_project": _ADMIN,
    "list_project_members": _ANY,
    "add_project_member": _ADMIN,
    "update_project_member": _ADMIN,
    "remove_project_member": _ADMIN,
    # Routes that only say that memoryd does not have them
    "get_dream_config": _ANY,
    "update_dream_config": _ANY,
    "preview_dream": _ANY,
    "list_dream_activity": _ANY,
    "list_dream_runs": _ANY,
    "list_dream_run_memories": _ANY,
    "list_dream_memory_sources": _ANY,
    "get_dream_stats": _ANY,
}


def require(caller: Caller, route: str) -> None:
    """Refuse a key that may not call a route. Raises: NotAllowed, which says what is missing."""
    right = RIGHTS.get(route, _ADMIN)
    if right.scope is not None and right.scope not in caller.scopes:
        raise errors.NotAllowed(f"This key may not do that: it has no scope {right.scope}.")
    if caller.pins and not right.pinned:
        raise errors.NotAllowed("This key is pinned to some owners, and this route tells about others too.")
