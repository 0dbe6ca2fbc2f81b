"""Watching lists of jobs: one probe per distinct filter, for any number of watchers."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from forge.core.errors import DatabaseUnavailable, ForgeError
from forge.core.job_filter import JobFilter
from forge.jobs.hub import HubClosed
from forge.jobs.search import LIVE
from forge.store import listing
from forge.store.connection.database import Database
from forge.store.connection.waiting import within
from forge.store.listing import Fingerprint

# Seconds between two probes of a list; more if they would take more than a twentieth of the time.
INTERVAL = 1.0
COST_SHARE = 20
# The newest jobs of a list that are watched.
MAX_WATCHED = 200
# Probes that may run at the same time: requests need connections, too.
MAX_AT_ONCE = 2


class ListKey(NamedTuple):
    """A list as one tenant reads it; None is an operator."""

    tenant_id: int | None
    filter: JobFilter


# Receives the list that may have changed, or the error that ends the watch.
Callback = Callable[[ListKey, ForgeError | None], None]


class ListWatcher:
    """Calls back the watchers of a list soon after they came, and after each change."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._watched: dict[ListKey, _WatchedList] = {}
        self._probing = asyncio.Semaphore(MAX_AT_ONCE)
        self._is_closed = False

    @property
    def lists(self) -> int:
        """How many different lists are watched."""
        return len(self._watched)

    def is_watched(self, key: ListKey) -> bool:
        return key in self._watched

    def watch(self, key: ListKey, callback: Callback) -> None:
        """Call back once the list has been probed, and after each change."""
        if self._is_closed:
            callback(key, _closed())
            return
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _WatchedList()
            watched.task = asyncio.get_running_loop().create_task(self._run(key, watched))
        watched.callbacks.add(callback)
        watched.newcomers.add(callback)

    def unwatch(self, key: ListKey, callback: Callback) -> None:
        """End the calls about a list; without watchers it is not probed any more."""
        watched = self._watched.get(key)
        if watched is not None:
            watched.callbacks.discard(callback)
            watched.newcomers.discard(callback)
            if not watched.callbacks:
                watched.stop.set()
                del self._watched[key]

    async def close(self) -> None:
        """End every watch with an error."""
        self._is_closed = True
        tasks = [watched.task for watched in self._watched.values() if watched.task is not None]
        for key, watched in list(self._watched.items()):
            self._end(key, watched, _closed())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=2)
            for task in late:  # it waits for a database that does not answer
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, key: ListKey, watched: "_WatchedList") -> None:
        while not watched.stop.is_set():
            pause = INTERVAL
            try:
                async with self._probing:
                    if watched.stop.is_set():
                        return
                    began = _now()
                    # A watcher that came after the probe began waits for the next one.
                    newcomers = watched.newcomers.copy()
                    found = await self._probe(key)
                    pause = max(INTERVAL, COST_SHARE * (_now() - began))
            except DatabaseUnavailable:
                pass  # neither a restart nor a lost connection may end a watch
            except Exception as error:  # whatever it is, no watcher may wait forever
                self._end(key, watched, _as_forge_error(error))
                return
            else:
                _notify(key, watched, newcomers, found)
            await within(watched.stop, pause)

    async def _probe(self, key: ListKey) -> tuple[Fingerprint, ...]:
        tenant, wanted = key
        newest = await self.database.run(listing.fingerprint(wanted, MAX_WATCHED), tenant)
        is_of_live = wanted.statuses is not None and LIVE.issuperset(wanted.statuses)
        if not newest.stopped_early or not is_of_live:
            return (newest,)
        live = await self.database.run(listing.fingerprint_live(wanted, MAX_WATCHED), tenant)
        return (newest, live)

    def _end(self, key: ListKey, watched: "_WatchedList", error: ForgeError) -> None:
        watched.stop.set()
        if self._watched.get(key) is watched:
            del self._watched[key]
            for callback in list(watched.callbacks):
                callback(key, error)


class _WatchedList:
    """The callbacks of a list, those not called yet, and what the last probe returned."""

    __slots__ = ("callbacks", "found", "newcomers", "stop", "task")

    def __init__(self) -> None:
        self.callbacks: set[Callback] = set()
        self.newcomers: set[Callback] = set()
        self.found: tuple[Fingerprint, ...] | None = None
        self.stop = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


def _notify(
    key: ListKey,
    watched: _WatchedList,
    newcomers: set[Callback],
    found: tuple[Fingerprint, ...],
) -> None:
    has_changed = found != watched.found
    watched.found = found
    watched.newcomers -= newcomers
    for callback in watched.callbacks & (watched.callbacks if has_changed else newcomers):
        watched.newcomers.discard(callback)
        callback(key, None)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _as_forge_error(error: Exception) -> ForgeError:
    if isinstance(error, ForgeError):
        return error
    return ForgeError(f"the list cannot be read ({error!r}); look at its rows")


def _closed() -> HubClosed:
    return HubClosed("the app was closed while a list was watched; watch it again from an open one")
