"""The HTTP door: the only folder that knows FastAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from app import __version__
from app.api import (
    accounts,
    audits,
    batch,
    context,
    deliveries,
    dream,
    entities,
    errors,
    events,
    exports,
    feedback,
    imports,
    keys,
    layers,
    legacy,
    memories,
    metrics,
    new_entities,
    openapi,
    orgs,
    profiles,
    projects,
    search,
    service,
    sources,
    stats,
    summary,
    webhooks,
    why,
)
from app.runtime import Runtime

ROUTERS = (
    memories.adds,  # the first are matched first: those that are called most
    search.routes,
    service.public,
    service.keyed,
    metrics.routes,
    why.routes,
    context.routes,
    entities.first,  # before the routes of one memory, whose paths have a place for any word
    memories.routes,
    events.routes,
    orgs.routes,
    projects.routes,
    keys.routes,
    audits.routes,
    webhooks.routes,
    deliveries.routes,
    accounts.routes,
    dream.routes,
    exports.routes,
    imports.routes,
    summary.routes,
    batch.routes,
    feedback.routes,
    stats.routes,
    sources.routes,
    legacy.adds,
    legacy.first_lists,
    legacy.second_lists,
    legacy.searches,
    new_entities.routes,
    profiles.routes,  # before the routes of one entity, whose paths take everything
    entities.routes,
    entities.by_name,  # the last: their paths take everything that follows
)
DESCRIPTION = (
    "Long-term memory for AI applications. Add conversations, search what is worth remembering. "
    "Every path is served with and without the slash at its end."
)


Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create_app(source: Runtime | Callable[[], AbstractAsyncContextManager[Runtime]]) -> FastAPI:
    """Return the ASGI application.

    `source` is an open runtime, which stays its owner's to close, or a function that opens one for the life of the
    application.
    """
    if isinstance(source, Runtime):
        app = _assembled(None)
        app.state.runtime = source
        return app

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with source() as app.state.runtime:
            yield

    return _assembled(lifespan)


def openapi_yaml() -> str:
    """Return the interface as OpenAPI 3.1: the text of `openapi.yaml`."""
    return openapi.text(_assembled(None))


def _assembled(lifespan: Lifespan | None) -> FastAPI:
    app = FastAPI(
        title="memoryd",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # looked for with every request otherwise
    )
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # not nested: FastAPI would match each of them twice
    errors.install(app)
    app.add_middleware(layers.Requests)
    app.add_middleware(layers.Paths)  # the outermost: everything inside sees one form of the path
    openapi.install(app)
    return app
