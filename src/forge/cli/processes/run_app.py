"""`app.run()`: a worker and the server of an app in one process."""

import asyncio
from typing import TYPE_CHECKING

from forge.cli.processes.child_process import on_stop_signal
from forge.cli.processes.server import require_authentication
from forge.cli.processes.service_manager import ServiceManager
from forge.cli.processes.serving import announce, listen, make_api_server, require_server_extra
from forge.cli.processes.worker import report_startup, set_up_logging
from forge.cli.project import run
from forge.telemetry.logs.listener import log_events

if TYPE_CHECKING:
    from forge.app import Forge


def run_app(app: "Forge") -> None:
    """Run a worker and the server; signals act as for `forge worker`."""
    require_server_extra()
    require_authentication(app.config)
    set_up_logging(None, "info")
    run(app, _run)


async def _run(app: "Forge") -> None:
    from forge.worker.worker import Worker

    settings = app.config.server
    listener = listen(settings.host, settings.port)
    api_app = app.clone()
    api_app.database_url = settings.database_url or app.database_url
    manager = ServiceManager.from_environment()
    app.events.other_listeners.append(manager.listen)
    log_events(app.events)
    worker = Worker(app)
    server = await make_api_server(api_app, access_log=False)
    signals = 0

    def stop() -> None:
        nonlocal signals
        signals += 1
        manager.stopping()
        server.force_exit = server.should_exit
        server.should_exit = True
        if signals == 1 and worker.started.is_set():
            worker.drain()
        else:
            worker.release()

    on_stop_signal(stop)
    announce(listener)
    try:
        async with asyncio.TaskGroup() as parts:
            serving = parts.create_task(server.serve([listener]))
            startup = parts.create_task(report_startup(worker, manager))
            await worker.run()
            startup.cancel()
            server.should_exit = True
            await serving
    finally:
        await api_app.close()
