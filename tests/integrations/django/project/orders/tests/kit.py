"""A worker for the tests' database, and what is in its tables."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from forge import Worker
from forge.integrations.django import app


@contextmanager
def working() -> Iterator[None]:
    """Run a worker in a thread during the block."""
    started = threading.Event()
    running: dict[str, Any] = {}

    async def run() -> None:
        own = app.clone()
        worker = Worker(own)
        running.update({"loop": asyncio.get_running_loop(), "worker": worker})
        task = asyncio.create_task(worker.run())
        await asyncio.wait(
            [task, asyncio.create_task(worker.started.wait())], return_when="FIRST_COMPLETED"
        )
        started.set()
        try:
            await task
        finally:
            await own.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert started.wait(30)
        yield
    finally:
        running["loop"].call_soon_threadsafe(running["worker"].drain)
        thread.join(30)
        assert not thread.is_alive()
        app.sync.close()


def finished(result: Any) -> Any:
    """Wait until a task has ended, and return its result."""
    deadline = time.monotonic() + 30
    while not result.is_finished:
        assert time.monotonic() < deadline, result
        result.refresh()
    return result


def job_rows(columns: str = "job_type, input") -> list[Any]:
    """Return columns of all jobs, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(f"select {columns} from forge_jobs order by id")
        return cursor.fetchall()
