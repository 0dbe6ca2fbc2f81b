"""The server's metrics, for staff and for scrapers on loopback."""

import asyncio

from fastapi import APIRouter, FastAPI, Request, Response

from forge.core.errors import ForgeError
from forge.http.auth.access import LocalOrStaff
from forge.http.operations.canaries import Canaries
from forge.telemetry.metrics.exposition import render
from forge.telemetry.metrics.external_calls import measure_services
from forge.telemetry.metrics.queries import of_api
from forge.telemetry.metrics.queue_figures import QueueWatch

router = APIRouter(tags=["about"])
# Seconds that a scrape waits for figures of the database before it shows the last ones.
REFRESH_TIMEOUT = 3.0


def install_metrics(api: FastAPI) -> None:
    """Measure the server's queries, and watch the queue."""
    app = api.state.forge
    metrics = app.metrics.api
    app.observers.append(of_api(metrics))
    measure_services(app.events, metrics)
    dead_after = app.config.worker.dead_after.total_seconds()
    api.state.queue_watch = QueueWatch(metrics.queue, dead_after)
    api.state.canaries = Canaries(app, metrics)


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, _: LocalOrStaff) -> Response:
    """Return the metrics in Prometheus format, to staff and to callers on loopback."""
    await _refresh_queue_figures(request)
    app = request.app.state.forge
    body, content_type = render(app.metrics.api.registry, request.headers.get("accept"))
    return Response(body, media_type=content_type)


async def _refresh_queue_figures(request: Request) -> None:
    state = request.app.state
    try:
        async with asyncio.timeout(REFRESH_TIMEOUT):
            database = await (await state.forge.session()).database()
            if state.queue_watch.is_due:
                await state.queue_watch.refresh(database.run)
            await state.canaries.check_in_background()
    except (ForgeError, TimeoutError):
        return  # show the server's own figures while the database is unavailable
