"""Examples of batches, feedback, entities, stats and the older routes."""

from __future__ import annotations

from typing import Any

_ID = "0198f3a2-7c41-7d3e-9b1f-2a6d1c0e5f77"
_EVENT_ID = "0198f3a2-7c10-7a55-8f02-6f3b9d1a2c44"
_TEXT = "Alice moved to Lisbon and works at a bakery."
_SAID = [{"role": "user", "content": "I moved to Lisbon and work at a bakery."}]
_AT = "2026-03-14T09:26:53.589793Z"
_PAGE = {"count": 1, "next": None, "previous": None}
_DELETING = {
    "response": {
        "message": "Delete in progress. This may take some time.",
        "event_id": _EVENT_ID,
        "receipt": {
            "id": _EVENT_ID,
            "erased_at": "2026-07-01T09:30:00Z",
            "erased": {"memories": 3, "history": 5, "messages": 6, "events": 4, "scopes": 1, "owners": 1},
            "remaining": {},
            "verified": True,
            "not_covered": ["backups and archived write-ahead log, until they age out"],
        },
    }
}
_SCORED = {"score": 0.83, "score_breakdown": {"semantic": 0.71, "bm25": 2.4, "entity": 1.0}}

_ENTITY = {
    "id": "17",
    "name": "alice",
    "type": "user",
    "total_memories": 12,
    "owner": "admin",
    "metadata": None,
    "created_at": _AT,
    "updated_at": _AT,
}
_MADE = {
    "id": 17,
    "metadata": {"plan": "free"},
    "created_at": _AT,
    "updated_at": _AT,
    "graph_entities": None,
    "is_deleted": False,
    "project": 1,
}


def _made(kind: str, name: str) -> dict[str, Any]:
    sent = {f"{kind}_id": name, "name": name.capitalize()}
    return {"request": {**sent, "metadata": _MADE["metadata"]}, "response": {**_MADE, **sent}}


def examples(memory: dict[str, Any], change: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the examples by operation, given those of a memory and of a change of its history."""
    return {
        "update_memories": {
            "request": {"memories": [{"memory_id": _ID, "text": _TEXT}]},
            "response": {"message": "Successfully updated 1 memories"},
        },
        "delete_memories": {
            "request": {"memories": [{"memory_id": _ID}]},
            "response": {"message": "Successfully deleted 1 memories"},
        },
        "give_feedback": {
            "request": {"memory_id": _ID, "feedback": "NEGATIVE", "feedback_reason": "She lives in Porto now."},
            "response": {"id": _ID, "feedback": "NEGATIVE", "feedback_reason": "She lives in Porto now."},
        },
        "list_entities": {
            "response": {
                **_PAGE,
                "results": [_ENTITY],
                "total_users": 1,
                "total_agents": 0,
                "total_apps": 0,
                "total_runs": 0,
            }
        },
        "list_entity_filters": {
            "response": {
                "event_type": ["ADD", "UPDATE", "DELETE", "SEARCH", "GET_ALL", "GET", "DELETE_ALL", "DELETE_USER"],
                "categories": ["travel", "food"],
                "users": ["alice"],
                "parameters": [
                    {"name": "user_id", "label": "User ID", "type": "text", "placeholder": "alice", "options": []}
                ],
            }
        },
        "get_entity": {"response": [_ENTITY]},
        "delete_entity": _DELETING,
        "delete_entity_by_number": _DELETING,
        "create_user": {
            "request": {"user_id": "alice", "metadata": {"plan": "free"}},
            "response": {**_MADE, "user_id": "alice"},
        },
        "create_agent": _made("agent", "support-bot"),
        "create_app": _made("app", "shop"),
        "create_run": _made("run", "session-1"),
        "list_memories_of_entity": {
            "response": {**_PAGE, "results": [{**memory, "input": _SAID, "is_updated": False}]}
        },
        "list_changes": {"response": {**_PAGE, "results": [change]}},
        "get_stats": {
            "response": {
                "total_memories": 120,
                "total_add_events": 40,
                "total_retrieval_events": 310,
                "total_api_retrieval_events": 310,
                "total_retrieval_events_limit": 2147483647,
                "total_users_with_memories": 10,
                "total_agents_with_memories": 1,
                "total_runs_with_memories": 0,
                "memories_per_user": 11,
                "memories_per_agent": 10,
                "memories_per_run": 0,
            }
        },
        "add_memories_v1": {
            "request": {"messages": _SAID, "user_id": "alice"},
            "response": [
                {
                    "message": "Memory processing has been queued for background execution",
                    "status": "PENDING",
                    "event_id": _EVENT_ID,
                }
            ],
        },
        "list_memories_v1": {"response": [memory]},
        "list_memories_v2": {"request": {"filters": {"user_id": "alice"}}, "response": [memory]},
        "search_memories_v1": {
            "request": {"query": "Where does Alice live?", "user_id": "alice"},
            "response": [{**memory, **_SCORED}],
        },
        "search_memories_v2": {
            "request": {"query": "Where does Alice live?", "filters": {"user_id": "alice"}},
            "response": [{**memory, **_SCORED}],
        },
    }
