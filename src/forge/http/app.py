"""Builds the ASGI app: routes, error handlers and middleware around one Forge app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from inspect import signature
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from forge.http import calls
from forge.http.admin import audit, jobs
from forge.http.auth import me
from forge.http.auth.authenticator import Authenticator
from forge.http.auth.rules import watch_rules
from forge.http.auth.watch_tokens import WatchTokens, new_secret
from forge.http.dashboard import routes as dashboard
from forge.http.dead_letters import routes as dead_letters
from forge.http.jobs import (
    bulk,
    dispatch,
    eta,
    job_requests,
    job_types,
    read,
    rerun,
    timeline,
    watch,
    why,
)
from forge.http.jobs.pending_limit import PendingLimit
from forge.http.live import event_stream, poll, websocket
from forge.http.live.access import LiveHub
from forge.http.middleware.cors import Cors
from forge.http.middleware.json_route import JsonFastPath
from forge.http.middleware.limits import RequestLimits
from forge.http.middleware.request_metrics import RequestMetrics
from forge.http.middleware.url import KnownQuery, TrailingSlash
from forge.http.openapi import document
from forge.http.operations import health, job_statistics, metrics, overview, pauses, workers
from forge.http.problems.error_handlers import install_error_handlers
from forge.http.schedules import routes as schedules

if TYPE_CHECKING:
    from forge.app import Forge

ROUTERS = (
    # Most frequent first: routes are matched in this order.
    dispatch.router,
    read.router,
    job_requests.router,
    rerun.router,
    bulk.router,
    job_types.router,
    workers.router,
    pauses.router,
    job_statistics.router,
    overview.router,
    schedules.router,
    jobs.router,
    dead_letters.router,
    audit.router,
    calls.router,
    health.router,
    me.router,
    watch.router,
    document.router,
    eta.router,
    why.router,
    timeline.router,
    metrics.router,
    poll.router,
    event_stream.router,
    websocket.router,
)


# Newer versions of FastAPI trace requests themselves: with the query, and so with watch tokens.
_WITHOUT_TELEMETRY: dict[str, Any] = (
    {"telemetry": {"tracing": False, "metrics": False, "logs": False}}
    if "telemetry" in signature(FastAPI).parameters
    else {}
)


def create_app(
    app: "Forge", *, authenticator: Authenticator | None = None, is_development: bool = False
) -> FastAPI:
    """Return Forge's HTTP API as an ASGI app, to serve alone or to mount under any prefix.

    Served alone, it closes the Forge app at shutdown; mounted, the host calls `app.close()`.
    With `is_development`, programs on this machine may send JSON as a user without a token.
    """
    api = FastAPI(
        title="Forge",
        summary="Durable background jobs on PostgreSQL.",
        version=version("forge-jobs"),
        lifespan=_lifespan,
        # document.router serves /openapi.json, which requires a role.
        openapi_url=None,
        redirect_slashes=False,
        **_WITHOUT_TELEMETRY,
    )
    settings = app.config
    api.state.forge = app
    api.state.is_development = is_development
    api.state.rules = rules = watch_rules(settings)
    api.state.authenticator = authenticator = authenticator or Authenticator(rules)
    # Without a configured secret, watch tokens are valid until this process ends.
    own_secret = new_secret()
    api.state.watch_tokens = WatchTokens(
        lambda: (rules().auth.secret or own_secret).encode(),
        # A custom authenticator has no keys to bind watch tokens to.
        authenticator.keys if isinstance(authenticator, Authenticator) else None,
    )
    limit = settings.server.max_pending_per_tenant
    api.state.pending_limit = None if limit is None else PendingLimit(limit)
    api.state.live_hub = LiveHub(app)
    for router in ROUTERS:
        api.include_router(router)
    if settings.dashboard.enabled:
        api.include_router(dashboard.router)
    install_error_handlers(api)
    metrics.install_metrics(api)
    api.add_middleware(JsonFastPath, routes=dispatch.router.routes)
    api.add_middleware(KnownQuery, routes=api.routes)
    api.add_middleware(TrailingSlash)
    api.add_middleware(
        RequestLimits, max_body=settings.server.body_limit(settings.payload.max_input)
    )
    # Outside of the limits: their errors are for pages, too.
    api.add_middleware(
        Cors, allowed_origins=lambda: app.config.server.allowed_origins, routes=api.routes
    )
    api.add_middleware(RequestMetrics, metrics=app.metrics.api)
    return api


async def end_streams(api: FastAPI) -> None:
    """End all live streams, which would delay the shutdown; browsers reconnect."""
    live_hub: LiveHub = api.state.live_hub
    await live_hub.close()


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    """Create the rows of cron schedules at startup, and close the app at shutdown."""
    app: Forge = api.state.forge
    if not app.config.server.read_only:
        await app.schedules.plant_at_start()
    yield
    await app.close()
