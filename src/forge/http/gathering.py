"""Dispatches that come at the same time share one insert; each is answered after its commit."""

import asyncio
from typing import NamedTuple
from uuid import UUID

from forge.core.errors import StatementRefused
from forge.core.wish import Wish
from forge.http.access import Caller
from forge.store import jobs
from forge.store.ids import new_id
from forge.store.jobs import Dispatched
from forge.store.statement import Statement

# More rows in one statement gain little and keep the first of them waiting.
MOST = 500


class Entry(NamedTuple):
    """One job that is wanted, and whoever waits for it."""

    id: UUID
    input: str
    wish: Wish
    made: "asyncio.Future[None]"


class Gatherer:
    """Writes what came in while the previous insert was under way with the next one.

    Lines are apart by tenant, since each statement runs as one tenant sees the database.
    """

    def __init__(self) -> None:
        self._lines: dict[int | None, list[Entry]] = {}
        # The event loop itself holds tasks by weak references only.
        self._writers: set[asyncio.Task[None]] = set()

    async def dispatch(self, caller: Caller, wish: Wish, text: str) -> UUID:
        """Dispatch one job, and return its id once it is committed."""
        loop = asyncio.get_running_loop()
        entry = Entry(new_id(), text, wish, loop.create_future())
        line = self._lines.get(caller.tenant_id)
        if line is not None:
            line.append(entry)
        else:
            self._lines[caller.tenant_id] = [entry]
            writer = loop.create_task(self._write(caller))
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        await entry.made
        return entry.id

    async def _write(self, caller: Caller) -> None:
        """Write until nobody waits any more."""
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


async def _insert(caller: Caller, batch: list[Entry]) -> None:
    try:
        await caller.run(_statement(batch))
    except StatementRefused as error:
        if len(batch) == 1:
            _answer(batch, error)
            return
        # Somebody's job is refused: the others must not fail with it.
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


def _statement(batch: list[Entry]) -> Statement[list[Dispatched]]:
    if len(batch) == 1:
        (entry,) = batch
        return jobs.dispatch([entry.id], [entry.input], entry.wish)
    return jobs.dispatch_each([(entry.id, entry.input, entry.wish) for entry in batch])


def _answer(batch: list[Entry], error: Exception | None) -> None:
    for entry in batch:
        if entry.made.done():
            continue  # whoever waited has gone
        if error is None:
            entry.made.set_result(None)
        else:
            entry.made.set_exception(error)
