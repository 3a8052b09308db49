"""Examples that `openapi.yaml` shows; a test sends the requests and checks the answers' shapes."""

from __future__ import annotations

from typing import Any

from app.api import examples_directory, examples_more, examples_shapes, examples_why

_MEMORY_ID = "0198f3a2-7c41-7d3e-9b1f-2a6d1c0e5f77"
_EVENT_ID = "0198f3a2-7c10-7a55-8f02-6f3b9d1a2c44"
_TEXT = "Alice moved to Lisbon and works at a bakery."

MEMORY: dict[str, Any] = {
    "id": _MEMORY_ID,
    "memory": _TEXT,
    "user_id": "alice",
    "agent_id": None,
    "app_id": None,
    "run_id": None,
    "session_id": None,
    "hash": "3a4c6d5bb95a1c9d5d5d9d0b1d5a7a5e",
    "metadata": {"source": "chat"},
    "categories": None,
    "structured_attributes": {
        "year": 2026, "month": 3, "day": 14, "hour": 9, "minute": 26, "day_of_week": "saturday", "week_of_year": 11,
        "day_of_year": 73, "quarter": 1, "is_weekend": True,
    },
    "immutable": False,
    "expiration_date": None,
    "lifecycle_state": "active",
    "replaced_by": None,
    "synthesized": False,
    "created_at": "2026-03-14T09:26:53.589793Z",
    "updated_at": "2026-03-14T09:26:53.589793Z",
}  # fmt: skip

_ADDED = {
    "id": _MEMORY_ID,
    "event": "ADD",
    "memory": _TEXT,
    "data": {"memory": _TEXT},
    "user_id": "alice",
}

_EVENT = {
    "id": _EVENT_ID,
    "event_type": "ADD",
    "status": "SUCCEEDED",
    "payload": {
        "messages": [{"role": "user", "content": "I moved to Lisbon and work at a bakery."}],
        "user_id": "alice",
        "infer": True,
    },
    "metadata": {"facts": 1, "duplicates": 0},
    "results": [_ADDED],
    "created_at": "2026-03-14T09:26:53.001Z",
    "updated_at": "2026-03-14T09:26:53.612Z",
    "started_at": "2026-03-14T09:26:53.040Z",
    "completed_at": "2026-03-14T09:26:53.612Z",
    "latency": 572.0,
    "graph_status": None,
    "error": None,
    "error_code": None,
}

_PAGE = {"count": 1, "next": None, "previous": None}

#: By operation: the body of a request, and of its answer when all is well.
EXAMPLES: dict[str, dict[str, Any]] = {
    **examples_directory.EXAMPLES,
    "ping": {
        "response": {
            "status": "ok",
            "org_id": "org_4tG7hYq2Lm9Xc1Rz8Kd5",
            "project_id": "proj_b6Wn3Vx0Pq7Jf2Ts9Ha1",
            "user_email": "admin@localhost",
        }
    },
    "healthz": {"response": {"status": "ok", "version": "0.1.0"}},
    "get_metrics": {
        "response": "# HELP memoryd_workers Workers that live.\n# TYPE memoryd_workers gauge\nmemoryd_workers 1\n"
    },
    "readyz": {
        "response": {
            "status": "ok",
            "database": "ok",
            "migrations": "ok",
            "redis": "ok",
            "workers": 1,
            "detail": None,
            "oldest_pending_s": None,
        }
    },
    "add_memories": {
        "request": {
            "messages": [
                {"role": "user", "content": "I moved to Lisbon and work at a bakery."},
                {"role": "assistant", "content": "Congratulations!"},
            ],
            "user_id": "alice",
            "metadata": {"source": "chat"},
        },
        "response": {
            "message": "Memory processing has been queued for background execution",
            "status": "PENDING",
            "event_id": _EVENT_ID,
        },
    },
    "search_memories": {
        "request": {"query": "Where does Alice live?", "filters": {"user_id": "alice"}, "top_k": 5},
        "response": {
            "results": [{**MEMORY, "score": 0.83, "score_breakdown": {"semantic": 0.71, "bm25": 2.4, "entity": 1.0}}],
            "answerable": 0.91,
        },
    },
    "list_memories": {
        "request": {"filters": {"AND": [{"user_id": "alice"}, {"metadata": {"source": "chat"}}]}},
        "response": {**_PAGE, "results": [MEMORY]},
    },
    "get_memory": {"response": MEMORY},
    "update_memory": {"request": {"text": _TEXT, "metadata": {"source": "chat"}}, "response": MEMORY},
    "delete_memory": {"response": {"message": "Memory deleted successfully!"}},
    "delete_all_memories": {
        "response": {"message": "Delete in progress. This may take some time.", "event_id": _EVENT_ID}
    },
    "get_history": {
        "response": [
            {
                "id": "0198f3a2-7c52-70b1-a6a4-0c7d2e9b1f33",
                "memory_id": _MEMORY_ID,
                "input": [{"role": "user", "content": "I moved to Lisbon and work at a bakery."}],
                "old_memory": None,
                "new_memory": _TEXT,
                "event": "ADD",
                "user_id": "alice",
                "agent_id": None,
                "app_id": None,
                "run_id": None,
                "session_id": None,
                "categories": None,
                "metadata": {"source": "chat"},
                "created_at": "2026-03-14T09:26:53.589793Z",
                "updated_at": "2026-03-14T09:26:53.589793Z",
            }
        ]
    },
    "get_event": {"response": _EVENT},
    "get_event_by_its_older_path": {"response": _EVENT},
    "list_audit": {
        "response": {
            **_PAGE,
            "results": [
                {
                    "at": "2026-03-14T09:26:53.612Z",
                    "action": "key.create",
                    "actor": "0198f3a2-7c10-7a55-8f02-6f3b9d1a2c99",
                    "org_id": "org_4f8Kd0sQpLx7TnBv2ZrY",
                    "project_id": "proj_9Ht3WmKx1QvBz6RcNd8P",
                    "objects": ["0198f3a2-7c10-7a55-8f02-6f3b9d1a2c98"],
                    "outcome": "ok",
                    "address": "192.0.2.7",
                    "request_id": "5f1d7a0f6d0f4c0e8a2b6b8f2f0e1c3d",
                }
            ],
        }
    },
    "list_events": {"response": {**_PAGE, "results": [_EVENT]}},
}
EXAMPLES |= examples_more.examples(MEMORY, EXAMPLES["get_history"]["response"][0])
EXAMPLES |= examples_shapes.examples(MEMORY)
EXAMPLES |= examples_why.examples(MEMORY)
