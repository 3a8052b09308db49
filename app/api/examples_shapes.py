"""Examples of exports, imports, summaries and profiles."""

from __future__ import annotations

from typing import Any

_EVENT_ID = "0198f3a2-7c10-7a55-8f02-6f3b9d1a2c44"
_JOB_ID = "0198f3a3-1b60-7c31-9d0e-5f0a7e2b4c18"
_JOB_URL = f"/v2/profiles/jobs/{_JOB_ID}/"
_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "City where the person lives."},
        "hobbies": {"type": "array", "items": {"type": "string"}, "description": "What the person likes to do."},
    },
}
_OBJECT = {"city": "Lisbon", "hobbies": ["hiking", "chess"]}
_SETTINGS = {
    "enabled": True,
    "entities": {
        "user": {"schema": _SCHEMA, "custom_instructions": "Be brief."},
        "agent": {"schema": None, "custom_instructions": None},
    },
    "capabilities": {"full_rebuild": False},
}
_AT = "2026-03-14T09:26:53.589793Z"


def examples(memory: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the examples by operation, given that of a memory."""
    return {
        "create_export": {
            "request": {
                "schema": _SCHEMA,
                "filters": {"AND": [{"user_id": "alice"}]},
                "export_instructions": "Name cities in English.",
            },
            "response": {
                "message": "Memory export request received. The export will be ready in a few seconds.",
                "id": _EVENT_ID,
            },
        },
        "get_export": {"request": {"memory_export_id": _EVENT_ID}, "response": _OBJECT},
        "export_lines": {"request": {"filters": {"user_id": "alice"}}},
        "import_memories": {
            "request": {"memories": [{key: value for key, value in memory.items() if key != "structured_attributes"}]},
            "response": {
                "results": [
                    {
                        "index": 0,
                        "id": memory["id"],
                        "outcome": "imported",
                        "reason": None,
                        "digest": "5c8f5ac1bb4a1e4f8d1c3c5a2b8de7c0a94f1d4c6f5be0f6a5e3d1c9b7a80f42",
                    }
                ],
                "counts": {"imported": 1},
            },
        },
        "summarize": {
            "request": {"filters": {"user_id": "alice"}},
            "response": [{"summary": "Alice moved to Lisbon and works at a bakery.", "memories": 1}],
        },
        "get_profile_settings": {"response": _SETTINGS},
        "update_profile_settings": {
            "request": {"enabled": True, "entities": {"user": _SETTINGS["entities"]["user"]}},  # type: ignore[index]
            "response": _SETTINGS,
        },
        "create_profile_job": {
            "request": {"operation": "trigger", "entity_type": "user", "entity_id": "alice"},
            "response": {
                "job_id": _JOB_ID,
                "status": "QUEUED",
                "status_url": _JOB_URL,
                "operation": "trigger",
                "entity_type": "user",
                "entity_count_reserved": 1,
                "event_id": _JOB_ID,
                "replayed": False,
            },
        },
        "get_profile_job": {
            "response": {
                "job": {
                    "id": _JOB_ID,
                    "operation": "trigger",
                    "entity_type": "user",
                    "status": "SUCCEEDED",
                    "total": 1,
                    "enumeration_complete": True,
                    "completed": 1,
                    "succeeded": 1,
                    "failed": 0,
                    "skipped": 0,
                    "results": [{"entity_id": "alice", "status": "succeeded", "error": None}],
                    "error": None,
                }
            }
        },
        "get_profile": {
            "response": {
                "profile": _OBJECT,
                "status": "succeeded",
                "entity_type": "user",
                "entity_id": "alice",
                "updated_at": _AT,
                "generation_count": 1,
                "error": None,
            }
        },
    }
