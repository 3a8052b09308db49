"""Sign-up routes of the hosted platform: nobody signs up here, and the answer says where keys come from."""

from __future__ import annotations

from typing import NoReturn

from app import errors
from app.api import docs
from app.api.wire import Shape, router

_TEXT = (
    "Nobody signs up here: whoever runs this memoryd makes keys with `memoryd keys create`. Give the key to your client, "
    "for example with `mem0 init --api-key`."
)

routes = router(Shape.ERROR, tag="accounts", guarded=False)


async def _refuse() -> NoReturn:
    """Refuse to make an account or a key for a stranger; the answer says where keys come from."""
    raise errors.NotAllowed(_TEXT)


for _name, _method, _path in (
    ("send_email_code", "POST", "/api/v1/auth/email_code/"),
    ("verify_email_code", "POST", "/api/v1/auth/email_code/verify/"),
    ("start_agent_mode", "POST", "/api/v1/auth/agent_mode/"),
    ("name_agent_caller", "PATCH", "/api/v1/auth/agent_mode/caller/"),
    ("name_agent_caller_anew", "POST", "/api/v1/auth/agent_mode/caller/"),
    ("add_agent_rush_memories", "POST", "/v1/agent-rush/memories/"),
    ("search_agent_rush_memories", "POST", "/v1/agent-rush/memories/search/"),
):
    routes.add_api_route(
        _path,
        _refuse,
        methods=[_method],
        name=_name,
        status_code=403,
        response_model=None,
        responses=docs.statuses(400, 403, shape=Shape.ERROR, guarded=False),
    )
