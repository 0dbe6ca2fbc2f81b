"""The server's metrics, for staff and for scrapers on the same machine."""

import asyncio

from fastapi import APIRouter, FastAPI, Request, Response

from forge.core.errors import ForgeError
from forge.http.access import LocalOrStaff
from forge.http.canaries import Canaries
from forge.telemetry.exposition import render
from forge.telemetry.queries import of_api
from forge.telemetry.queue import QueueWatch
from forge.telemetry.services import measure_services

router = APIRouter(tags=["about"])
# A scrape does not wait longer for figures of the database; it shows the last ones.
PATIENCE = 3.0


def install_metrics(api: FastAPI) -> None:
    """Have the server measure what it asks of the database, and look at the queue."""
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
    """Return the metrics in the format of Prometheus, to staff and to callers on this machine."""
    await _look_at_the_queue(request)
    app = request.app.state.forge
    body, content_type = render(app.metrics.api.registry, request.headers.get("accept"))
    return Response(body, media_type=content_type)


async def _look_at_the_queue(request: Request) -> None:
    state = request.app.state
    try:
        async with asyncio.timeout(PATIENCE):
            database = await (await state.forge.session()).database()
            if state.queue_watch.is_due:
                await state.queue_watch.refresh(database.run)
            await state.canaries.check_now_and_then()
    except (ForgeError, TimeoutError):
        return  # the figures of the server itself matter most while the database is away
