"""Coming to work: what the database has to know of a worker before it runs anything."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from forge.app import Forge
from forge.core.errors import AccessRefused, DatabaseUnavailable
from forge.core.event import Events
from forge.store import job_types, schedule_types, workers
from forge.store.link import Link
from forge.store.waiting import within
from forge.store.workers import Registration
from forge.types import schedule_type_rows, type_rows
from forge.worker.heart import rescue, rescue_runs

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


async def when_it_answers(
    act: Callable[[], Awaitable[object]], stop: asyncio.Event, events: Events
) -> bool:
    """Do something as soon as the database is there; False when told to stop before.

    A database that is there and lets nobody in, or lacks its tables, is not waited for.
    """
    pause = FIRST_PAUSE
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
            await within(stop, pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, LONGEST_PAUSE)
    return False


async def arrive(app: Forge, worker: Registration, link: Link) -> None:
    """Say who came with which types, and take back what an earlier life of it owned."""
    config = app.config
    await link.run(workers.register(worker))
    await link.run(job_types.register(type_rows(app.definitions.values())))
    await rescue(link, [worker.id], 0, config.job_stale_threshold.total_seconds(), app.events)
    if app.schedule_definitions:
        known = schedule_type_rows(app.schedule_definitions.values())
        await link.run(schedule_types.register(known))
        stale_after = config.worker.stale_threshold.total_seconds()
        await rescue_runs(link, [worker.id], 0, stale_after, app.events)
        await app.schedules.plant(link.run)
