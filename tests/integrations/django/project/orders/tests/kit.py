"""A worker for the tests' database, and what is in its tables."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from forge import Worker
from forge.integrations.django import app


@contextmanager
def working() -> Iterator[None]:
    """Run a worker in a thread during the block."""
    thread = WorkerThread()
    thread.start()
    try:
        assert thread.started.wait(60)
        assert thread.error is None, repr(thread.error)
        yield
    finally:
        thread.drain()
        thread.join(60)
        assert not thread.is_alive()
        app.sync.close()


class WorkerThread(threading.Thread):
    """A worker with a loop of its own, as `forge worker` is in its process."""

    def __init__(self) -> None:
        super().__init__(name="worker")
        self.started = threading.Event()
        self.error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._worker: Worker | None = None

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._work())
            except BaseException as error:
                self.error = error
            finally:
                self.started.set()

    def drain(self) -> None:
        if self._worker is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._worker.drain)

    async def _work(self) -> None:
        own = app.clone()
        self._worker = Worker(own)
        running = asyncio.create_task(self._worker.run())
        starting = asyncio.create_task(self._worker.started.wait())
        await asyncio.wait([running, starting], return_when="FIRST_COMPLETED")
        self.started.set()
        try:
            await running
        finally:
            starting.cancel()
            await own.close()


def finished(result: Any) -> Any:
    """Wait until a task has ended, and return its result."""
    deadline = time.monotonic() + 30
    while not result.is_finished:
        assert time.monotonic() < deadline, result
        result.refresh()
    return result


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline


def job_rows(columns: str = "job_type, input") -> list[Any]:
    """Return columns of all jobs, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(f"select {columns} from forge_jobs order by id")
        return cursor.fetchall()
