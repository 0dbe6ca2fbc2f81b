"""The ASGI app: routes, refusals and limits, put together around one Forge app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI

from forge.http import (
    admin_audit,
    admin_dead_letters,
    admin_queue,
    calls,
    eta,
    health,
    job_types,
    jobs_dispatch,
    jobs_read,
    jobs_request,
    live_events,
    live_socket,
    metrics,
    openapi,
    schedules,
    watch,
    workers,
)
from forge.http.auth import Authenticator
from forge.http.json_route import ExpressLane
from forge.http.known_query import KnownQuery
from forge.http.limits import Limits
from forge.http.measured import Measured
from forge.http.pending_limit import PendingLimit
from forge.http.refusals import install_refusals
from forge.http.rules import following
from forge.http.slashes import LastSlash
from forge.http.watch_tokens import WatchTokens, new_secret

if TYPE_CHECKING:
    from forge.app import Forge

ROUTERS = (
    # The busiest first: routes are tried in this order.
    jobs_dispatch.router,
    jobs_read.router,
    jobs_request.router,
    job_types.router,
    workers.router,
    schedules.router,
    admin_queue.router,
    admin_dead_letters.router,
    admin_audit.router,
    calls.router,
    health.router,
    watch.router,
    openapi.router,
    eta.router,
    metrics.router,
    live_events.router,
    live_socket.router,
)


def create_app(
    app: "Forge", *, authenticator: Authenticator | None = None, is_development: bool = False
) -> FastAPI:
    """Return Forge's HTTP API as an ASGI app, to be served alone or mounted under any prefix.

    Served alone it closes the Forge app at its end; mounted, its host does with `app.close()`.
    In development programs on this machine may send JSON as a user without a token.
    """
    api = FastAPI(
        title="Forge",
        summary="Durable background jobs on PostgreSQL.",
        version=version("forge-jobs"),
        lifespan=_lifespan,
        # /openapi.json is a route of ours: it needs a role.
        openapi_url=None,
        redirect_slashes=False,
    )
    settings = app.config
    api.state.forge = app
    api.state.is_development = is_development
    api.state.rules = rules = following(settings)
    api.state.authenticator = authenticator = authenticator or Authenticator(rules)
    # Without a configured secret watch tokens hold for this process's life.
    own_secret = new_secret()
    api.state.watch_tokens = WatchTokens(
        lambda: (rules().auth.secret or own_secret).encode(),
        # An authenticator of another kind has no keys to bind them to.
        authenticator.keys if isinstance(authenticator, Authenticator) else None,
    )
    most = settings.server.max_pending_per_tenant
    api.state.pending_limit = None if most is None else PendingLimit(most)
    for router in ROUTERS:
        api.include_router(router)
    install_refusals(api)
    metrics.install_metrics(api)
    api.add_middleware(ExpressLane, routes=jobs_dispatch.router.routes)
    api.add_middleware(KnownQuery, routes=api.routes)
    api.add_middleware(LastSlash)
    api.add_middleware(Limits, max_body=settings.server.body_limit(settings.payload.max_input))
    api.add_middleware(Measured, metrics=app.metrics.api)
    return api


async def end_streams(api: FastAPI) -> None:
    """End what follows jobs, for a server that stops would wait for it; browsers come back."""
    _, hub = getattr(api.state, "live", (None, None))
    if hub is not None:
        await hub.close()


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    """Make the rows of cron schedules, and close at the end what was opened."""
    await api.state.forge.schedules.plant_at_start()
    yield
    await api.state.forge.close()
