"""Dispatches that come at the same time share one insert; each is answered after its commit."""

import asyncio
from typing import NamedTuple

from forge.core.errors import StatementRefused
from forge.http.auth.access import Caller
from forge.jobs.dispatch import PreparedJob
from forge.store import jobs
from forge.store.jobs import Dispatched
from forge.store.statement import Statement

# More rows in one statement gain little and keep the first of them waiting.
MOST = 500


class PendingDispatch(NamedTuple):
    """One job to insert, and the request that waits for it."""

    job: PreparedJob
    made: "asyncio.Future[None]"


class DispatchBatcher:
    """Inserts the jobs that arrived during an insert together with the next one.

    Each tenant has a queue of its own, since a statement runs as one tenant sees the database.
    """

    def __init__(self) -> None:
        self._lines: dict[int | None, list[PendingDispatch]] = {}
        # The event loop itself holds tasks by weak references only.
        self._writers: set[asyncio.Task[None]] = set()

    async def dispatch(self, caller: Caller, job: PreparedJob) -> None:
        """Insert one job that is batchable, and return once it is committed."""
        loop = asyncio.get_running_loop()
        entry = PendingDispatch(job, loop.create_future())
        line = self._lines.get(caller.tenant_id)
        if line is not None:
            line.append(entry)
        else:
            self._lines[caller.tenant_id] = [entry]
            writer = loop.create_task(self._write(caller))
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        await entry.made

    async def _write(self, caller: Caller) -> None:
        """Insert until no request waits."""
        line = self._lines[caller.tenant_id]
        try:
            while line:
                batch = line[:MOST]
                del line[:MOST]
                await _insert(caller, batch)
        finally:
            del self._lines[caller.tenant_id]
            for entry in line:
                entry.made.cancel()


async def _insert(caller: Caller, batch: list[PendingDispatch]) -> None:
    try:
        await caller.run(_statement(batch))
    except StatementRefused as error:
        if len(batch) == 1:
            _answer(batch, error)
            return
        # One job of the batch is refused: the others must not fail with it.
        for entry in batch:
            await _insert(caller, [entry])
    except Exception as error:
        _answer(batch, error)
    except BaseException:
        for entry in batch:
            entry.made.cancel()
        raise
    else:
        (await caller.app.session()).wake(len(batch))
        _answer(batch, None)


def _statement(batch: list[PendingDispatch]) -> Statement[list[Dispatched]]:
    if len(batch) == 1:
        return batch[0].job.statement()
    return jobs.dispatch_each([entry.job.for_batch() for entry in batch])


def _answer(batch: list[PendingDispatch], error: Exception | None) -> None:
    for entry in batch:
        if entry.made.done():
            continue  # the request was cancelled
        if error is None:
            entry.made.set_result(None)
        else:
            entry.made.set_exception(error)
