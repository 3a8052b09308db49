"""Examples of what says where memories come from and why they were found, and of a context."""

from __future__ import annotations

from typing import Any

_EVENT_ID = "0198f3a2-7c10-7a55-8f02-6f3b9d1a2c44"
_MESSAGE_ID = "0198f3a2-7c3f-7b02-8d11-4e5a6b7c8d90"
_SAID = "I moved to Lisbon and work at a bakery."
_AT = "2026-03-14T09:26:53Z"


def examples(memory: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the examples by operation, given that of a memory."""
    return {
        "get_sources": {
            "response": {
                "memory_id": memory["id"],
                "event_id": _EVENT_ID,
                "origin": "extracted",
                "edited_at": None,
                "first_memory": None,
                "note": None,
                "hidden": 0,
                "sources": [
                    {
                        "message_id": _MESSAGE_ID,
                        "event_id": _EVENT_ID,
                        "index": 0,
                        "role": "user",
                        "name": None,
                        "said_at": _AT,
                        "start": 0,
                        "end": len(_SAID),
                        "length": len(_SAID),
                        "text": _SAID,
                    }
                ],
            }
        },
        "explain_search": {
            "request": {
                "query": "What does Alice do on Sundays?",
                "filters": {"user_id": "alice"},
                "memory_id": memory["id"],
            },
            "response": {
                "memory_id": memory["id"],
                "found": False,
                "stage": "threshold",
                "reason": "Its score 0.0712 is below the threshold 0.1.",
                "failed": [],
                "rank": 3,
                "score": 0.0712,
                "arms": {
                    "semantic": {"score": 0.79, "rank": 4},
                    "keyword": {"score": 1.2, "rank": 3},
                    "entity": {"score": 0.5, "rank": 2},
                },
                "changes": {"threshold": 0.0712},
                "advice": ["threshold ≤ 0.0712"],
                "explain": None,
            },
        },
        "make_context": {
            "request": {"query": "Where does Alice live?", "filters": {"user_id": "alice"}, "max_tokens": 500},
            "response": {
                "context": "## Profile\n- Alice moved to Lisbon and works at a bakery.",
                "tokens": 15,
                "max_tokens": 500,
                "memory_ids": [memory["id"]],
                "neighbour_ids": [],
                "folded_ids": [],
                "left_out_ids": [],
            },
        },
    }
