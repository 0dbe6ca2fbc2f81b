"""A worker in a process of its own: `python -m tests.faults.worker_process`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

from forge import Config, Forge, JobDefinition, Worker
from forge.worker.attempt_counts import AttemptCounts
from tests.faults.apps import databases, handlers, hostile, mixed, recurring
from tests.faults.apps.broken import BROKEN
from tests.faults.apps.recording import record_answers, report_event
from tests.faults.apps.reporting import WORKER_PID, report

ORDER = "FAULTS_ORDER"


def main() -> None:
    os.environ[WORKER_PID] = str(os.getpid())
    order = json.loads(os.environ[ORDER])
    if order["broken"] is not None:
        BROKEN[order["broken"]]()
    record_answers()
    config = Config(
        worker=order["worker"], database=order["database"], transport=order["transport"]
    )
    app = Forge(config, database_url=order["database_url"])
    app.register(*_selected(order["jobs"]))
    app.events.listeners.append(report_event)
    if order["statistics_interval"] is not None:
        AttemptCounts.interval = order["statistics_interval"]
    asyncio.run(_work(app))
    report("ended")
    # Otherwise the interpreter would wait for threads that hang in C code.
    os._exit(0)


async def _work(app: Forge) -> None:
    worker = Worker(app)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, _stopping(worker))
    working = asyncio.create_task(worker.run())
    await asyncio.wait(
        [working, asyncio.create_task(worker.started.wait())],
        return_when=asyncio.FIRST_COMPLETED,
    )
    if worker.started.is_set():
        report("started", worker=worker.registration.id)
    await working
    await app.close()


def _stopping(worker: Worker) -> Any:
    """The first signal drains, the second releases."""
    signals = 0

    def stop() -> None:
        nonlocal signals
        signals += 1
        report("stopping", signals=signals)
        worker.drain() if signals == 1 else worker.release()

    return stop


def _selected(names: list[str] | None) -> list[JobDefinition[Any, Any]]:
    known = [
        found
        for module in (databases, handlers, hostile, mixed)
        for found in vars(module).values()
        if isinstance(found, JobDefinition)
    ]
    wanted = [definition for definition in known if names is None or definition.name in names]
    # Schedules only if requested by name: an app without schedules sends no statements for them.
    return wanted + [found for found in recurring.SCHEDULES if found.name in (names or ())]


if __name__ == "__main__":
    main()
