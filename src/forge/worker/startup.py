"""Startup: registers a worker and its types, and rescues what an earlier life of it owned."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from uuid import uuid4

from forge.app import Forge
from forge.core.errors import AccessRefused, DatabaseUnavailable
from forge.core.events import Events
from forge.store import job_types, migrate, schedule_types, workers
from forge.store.connection.link import Link
from forge.store.connection.waiting import Backoff, within
from forge.store.workers import Registration
from forge.worker.rescue import rescue, rescue_runs


async def when_it_answers(
    act: Callable[[], Awaitable[object]], stop: asyncio.Event, events: Events
) -> bool:
    """Do something as soon as the database answers; False when stopped before.

    A database that answers and refuses the login, or lacks its tables, raises.
    """
    backoff = Backoff()
    while not stop.is_set():
        try:
            await act()
            return True
        except AccessRefused:
            raise
        except DatabaseUnavailable as error:
            events.notice(
                "warning", "waiting for the database; work begins when it answers", error=str(error)
            )
            await within(stop, backoff.next())
    return False


async def register(app: Forge, worker: Registration, link: Link) -> None:
    """Register a worker and its types, and rescue what an earlier life of it owned."""
    config = app.config
    # A statement of this version may need the newest column, hours after the start.
    await link.run(migrate.check())
    await link.run(workers.register(worker))
    await link.run(job_types.register([own.job_type for own in app.definitions.values()]))
    await rescue(link, [worker.id], 0, config.job_stale_threshold.total_seconds(), app.events)
    if app.schedule_definitions:
        known = [own.job_type for own in app.schedule_definitions.values()]
        await link.run(schedule_types.register(known))
        stale_after = config.worker.stale_threshold.total_seconds()
        await rescue_runs(link, [worker.id], 0, stale_after, app.events)
        await app.schedules.plant(link.run)


def registration_of(app: Forge) -> Registration:
    """Return who this process is and what it claims; each life of it has an incarnation."""
    settings = app.config.worker
    return Registration(
        settings.id or uuid4(),
        uuid4(),
        socket.gethostname(),
        os.getpid(),
        version("forge-jobs"),
        list(settings.capabilities),
        None if settings.queues is None else list(settings.queues),
        sorted(app.definitions),
        settings.max_concurrent,
        sorted(app.schedule_definitions),
    )
