"""`app.run()`: a worker and the server of an app in one process, until it is told to stop."""

import asyncio
from typing import TYPE_CHECKING

from forge.cli.log_output import set_up_logging
from forge.cli.offspring import obey
from forge.cli.project import run
from forge.cli.server import see_that_it_is_not_open
from forge.cli.serving import announce, listen, make_api_server, see_that_it_can_serve
from forge.cli.worker import greet
from forge.telemetry.logs import log_events

if TYPE_CHECKING:
    from forge.app import Forge


def run_app(app: "Forge") -> None:
    """Run a worker and the server; signals do what they do to `forge worker`."""
    see_that_it_can_serve()
    see_that_it_is_not_open(app.config)
    set_up_logging(None, "info")
    run(app, _run)


async def _run(app: "Forge") -> None:
    from forge.worker.worker import Worker

    settings = app.config.server
    listener = listen(settings.host, settings.port)
    api_app = app._twin()
    api_app.database_url = settings.database_url or app.database_url
    log_events(app.events)
    worker = Worker(app)
    server = await make_api_server(api_app, access_log=False)
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        server.force_exit = server.should_exit
        server.should_exit = True
        if asked == 1 and worker.started.is_set():
            worker.drain()
        else:
            worker.release()

    obey(stop)
    announce(listener)
    try:
        async with asyncio.TaskGroup() as parts:
            serving = parts.create_task(server.serve([listener]))
            greeting = parts.create_task(greet(worker))
            await worker.run()
            greeting.cancel()
            server.should_exit = True
            await serving
    finally:
        await api_app.close()
