"""Examples of organizations, projects, members and webhooks."""

from __future__ import annotations

from typing import Any

_ORG = "org_4tG7hYq2Lm9Xc1Rz8Kd5"
_PROJECT = "proj_b6Wn3Vx0Pq7Jf2Ts9Ha1"
_AT = "2026-03-14T09:26:53.589793Z"
_ADMIN = {"username": "admin", "role": "OWNER", "email": "admin@localhost"}
_BOB = {"email": "bob@example.com", "role": "READER"}

_ORGANIZATION = {
    "org_id": _ORG,
    "name": "default-org",
    "created_at": _AT,
    "updated_at": _AT,
    "members": [_ADMIN],
    "is_default": True,
    "byok_enabled": False,
    "invitations": [],
    "owner_pricing_plan": "self-hosted",
    "is_owner": True,
    "user_role": "OWNER",
}

_PROJECT_SHOWN = {
    "project_id": _PROJECT,
    "name": "default-project",
    "description": None,
    "created_at": _AT,
    "updated_at": _AT,
    "members": [_ADMIN],
    "is_default": True,
    "user_role": "OWNER",
    "custom_instructions": "Keep what helps to plan trips.",
    "agent_custom_instructions": None,
    "custom_categories": [{"travel": "Trips, and plans for trips"}],
    "multilingual": True,
    "decay": False,
    "expiration_date": None,
    "compatibility": "architecture",
    "implicit_null_scoping": True,
    "raw_roles": ["user"],
    "default_top_k": 20,
    "split_by_attribution": True,
    "adds_per_minute": None,
    "searches_per_minute": None,
    "max_memories": None,
    "usecase": None,
    "usecase_setting": None,
    "retrieval_criteria": None,
    "memory_depth": None,
    "inclusion_prompt": None,
    "exclusion_prompt": None,
    "update_custom_instructions": None,
    "summary_custom_instructions": None,
    "summary_batch_size": 10,
    "summary_max_tokens": None,
    "enable_graph": False,
    "version": "v3",
    "active_prompt_profile": None,
}

_WEBHOOK_REQUEST = {
    "name": "Backup",
    "url": "https://hooks.example.com/memories",
    "event_types": ["memory_add", "memory_delete"],
}
_WEBHOOK = {
    "webhook_id": "wh_x8Kq2Lm9Xc1Rz5Tb4Na7",
    **_WEBHOOK_REQUEST,
    "owner": "admin",
    "is_active": True,
    "disabled_reason": None,
    "project": "default-project",
    "created_at": _AT,
    "updated_at": _AT,
}


_DELIVERY = {
    "message_id": "7d8a2c44-51f7-4a0f-9c55-0f6f7e0f2a11",
    "sequence": 42,
    "event_type": "memory_add",
    "event_id": "0198c2a1-6b1e-7c3a-9b61-3f3e1a52c7d4",
    "memory_id": "0198c2a1-6f00-7d11-8e2a-5b1f0c9d4e77",
    "event_details": {
        "id": "0198c2a1-6f00-7d11-8e2a-5b1f0c9d4e77",
        "data": {"memory": "User is allergic to peanuts"},
        "event": "ADD",
    },
    "status": "SUCCEEDED",
    "attempt_count": 1,
    "next_attempt_at": None,
    "created_at": _AT,
    "completed_at": _AT,
    "attempts": [
        {
            "started_at": _AT,
            "status_code": 200,
            "latency_ms": 84,
            "error_code": None,
            "error": None,
            "response": "ok",
        }
    ],
}


def _done(message: str, **more: str) -> dict[str, str]:
    return {"message": message, **more}


_RECEIPT = {
    "id": "0198f3a2-7c41-7d3e-9b1f-2a6d1c0e5f77",
    "erased_at": "2026-07-01T09:30:00Z",
    "erased": {"memories": 120, "history": 140, "events": 80, "api_keys": 2, "projects": 1},
    "remaining": {},
    "verified": True,
    "not_covered": ["backups and archived write-ahead log, until they age out"],
}

#: By operation: the body of a request, and of its answer when all is well.
_KEY = {
    "id": "0198f3a2-7c1d-7e44-9b0a-5d2e8f6c1a37",
    "name": "assistant of Alice",
    "prefix": "m0-Kq83Zt",
    "role": "member",
    "scopes": ["memories:read", "memories:write"],
    "pins": {"user_id": ["alice*"]},
    "created_at": _AT,
    "expires_at": "2027-01-01T00:00:00Z",
    "last_used_at": None,
    "revoked_at": None,
}
_SECRET = "m0-" + "x" * 49

EXAMPLES: dict[str, dict[str, Any]] = {
    "list_keys": {"response": {"keys": [_KEY]}},
    "create_key": {
        "request": {name: _KEY[name] for name in ("name", "role", "scopes", "expires_at", "pins")},
        "response": {**_KEY, "key": _SECRET},
    },
    "rotate_key": {"request": {"overlap_s": 3600}, "response": {**_KEY, "key": _SECRET}},
    "revoke_key": {"response": _done("Key revoked.")},
    "list_organizations": {"response": [_ORGANIZATION]},
    "create_organization": {
        "request": {"name": "Acme"},
        "response": _done("Organization created successfully.", org_id=_ORG),
    },
    "get_organization": {"response": _ORGANIZATION},
    "delete_organization": {"response": {**_done("Organization deleted successfully!"), "receipt": _RECEIPT}},
    "list_organization_members": {"response": {"members": [{"user_id": _ADMIN["email"], **_ADMIN}]}},
    "add_organization_member": {"request": _BOB, "response": _done("User added to the organization.")},
    "update_organization_member": {"request": _BOB, "response": _done("User role updated successfully")},
    "remove_organization_member": {
        "request": {"email": _BOB["email"]},
        "response": _done("User removed from organization."),
    },
    "list_projects": {"response": [_PROJECT_SHOWN]},
    "create_project": {
        "request": {"name": "travel", "description": "What our travellers like"},
        "response": _done("Project created successfully.", project_id=_PROJECT),
    },
    "get_project": {"response": _PROJECT_SHOWN},
    "update_project": {
        "request": {
            "custom_instructions": "Keep what helps to plan trips.",
            "custom_categories": [{"travel": "Trips, and plans for trips"}],
        },
        "response": _done("Project updated successfully"),
    },
    "delete_project": {"response": {**_done("Project and related data deleted successfully."), "receipt": _RECEIPT}},
    "list_project_members": {"response": {"members": [_ADMIN]}},
    "add_project_member": {"request": _BOB, "response": _done("User added to the project successfully.")},
    "update_project_member": {"request": _BOB, "response": _done("User role updated successfully.")},
    "remove_project_member": {"response": _done("Member removed from the project")},
    "list_webhooks": {"response": [_WEBHOOK]},
    "create_webhook": {
        "request": _WEBHOOK_REQUEST,
        "response": {**_WEBHOOK, "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
    },
    "update_webhook": {"request": {"is_active": False}, "response": _done("Webhook updated successfully")},
    "rotate_webhook_secret": {
        "response": {
            "webhook_id": _WEBHOOK["webhook_id"],
            "secret": "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=",
            "former_secret_expires_at": _AT,
        }
    },
    "list_webhook_deliveries": {
        "response": {"count": 1, "next": None, "previous": None, "results": [_DELIVERY]},
    },
    "replay_webhook_delivery": {"response": _done("The delivery is due again")},
    "delete_webhook": {"response": _done("Webhook deleted successfully")},
}
