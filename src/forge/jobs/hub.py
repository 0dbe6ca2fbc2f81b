"""Watching jobs: one listening connection and one read per round for any number of jobs."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from uuid import UUID

from forge.core.errors import DatabaseUnavailable, ForgeError, UnknownJob
from forge.core.lifecycle import Status
from forge.store.connection.database import Database
from forge.store.connection.listener import CheckedListener
from forge.store.connection.waiting import within
from forge.store.notify import CHANGES, changed_ids
from forge.store.statement import Row, Rows, Statement

T = TypeVar("T")
# Receives the state of a job, or the error that ends the watch.
Callback = Callable[[UUID, T | ForgeError], None]
Read = Callable[[Sequence[UUID], Sequence[int | None]], Statement[Rows]]

# Changes without a notification, such as those made by hand in SQL, are found this often ...
POLL = 2.0
# ... and all changes while notifications do not arrive: behind a pooler, or on a dead connection.
POLL_WITHOUT_LISTENER = 0.5
# Notifications of several workers that arrive together are answered by one read.
GAP = 0.01
MAX_AT_ONCE = 1000
# A row with more characters is redacted and encoded in a thread.
HEAVY = 16_384


class HubClosed(ForgeError):
    """The hub was closed: no more changes will come."""


class Hub(Generic[T]):
    """Re-reads the jobs that may have changed, in one statement, and calls back their watchers."""

    def __init__(self, database: Database, read: Read, state_of: Callable[[Row], T]) -> None:
        self._database = database
        self._read = read
        self._state_of = state_of
        self._watched: dict[UUID, _Watched[T]] = {}
        self._dirty: set[UUID] = set()
        self._wanted = asyncio.Event()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._listener = CheckedListener(database, CHANGES, self._heard)
        self._looked_at = 0.0

    def watch(self, job_id: UUID, callback: Callback[T]) -> None:
        """Call back with the state of a job, now and at each change."""
        if self._stop.is_set():
            callback(job_id, _closed())
            return
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())
        watched = self._watched.setdefault(job_id, _Watched())
        watched.callbacks.add(callback)
        watched.newcomers.add(callback)
        self._dirty.add(job_id)
        self._wanted.set()

    def unwatch(self, job_id: UUID, callback: Callback[T]) -> None:
        """End the calls about a job."""
        watched = self._watched.get(job_id)
        if watched is not None:
            watched.callbacks.discard(callback)
            watched.newcomers.discard(callback)
            if not watched.callbacks:
                del self._watched[job_id]

    @contextmanager
    def watching(self, job_id: UUID) -> Iterator["LatestState[T]"]:
        """Watch a job for the time of the block."""
        newest: LatestState[T] = LatestState()
        self.watch(job_id, newest.put)
        try:
            yield newest
        finally:
            self.unwatch(job_id, newest.put)

    async def close(self) -> None:
        """End every watch with an error, and close the connection."""
        self._stop.set()
        self._wanted.set()
        for job_id in list(self._watched):
            self._notify_all(job_id, _closed())
        if self._running is not None:
            _, late = await asyncio.wait([self._running], timeout=2)
            for task in late:  # it waits for a database that does not answer
                task.cancel()
                await asyncio.wait([task])

    async def _run(self) -> None:
        listening = asyncio.get_running_loop().create_task(self._listener.run(self._stop))
        try:
            await self._go_round()
        finally:
            await listening

    async def _go_round(self) -> None:
        pause = GAP
        while not self._stop.is_set():
            await self._wait_for_changes()
            ids = [job_id for job_id in self._dirty if job_id in self._watched]
            self._dirty.clear()
            try:
                for start in range(0, len(ids), MAX_AT_ONCE):
                    await self._look_at(ids[start : start + MAX_AT_ONCE])
                await self._listener.test(POLL)
                pause = GAP
            except ForgeError:
                # Retry: neither a restart of the database nor a refused notification may end a
                # watch.
                self._dirty.update(ids)
                self._wanted.set()
                pause = min(max(0.1, pause * 2), POLL_WITHOUT_LISTENER)
            await within(self._stop, pause)

    async def _wait_for_changes(self) -> None:
        """Wait for a notification, or until it is time to read every watched job."""
        if not self._watched:
            await self._wanted.wait()
        # Notifications must not postpone the poll: changes without one have to be found, too.
        left = (
            self._looked_at + (POLL if self._listener.hears() else POLL_WITHOUT_LISTENER) - _now()
        )
        if left <= 0 or not await within(self._wanted, left):
            self._looked_at = _now()
            self._dirty.update(self._watched)
        self._wanted.clear()

    async def _look_at(self, ids: Sequence[UUID]) -> None:
        asked = {job_id: watched for job_id in ids if (watched := self._watched.get(job_id))}
        if not asked:
            return
        newcomers = {job_id: watched.newcomers.copy() for job_id, watched in asked.items()}
        versions = [None if newcomers[job_id] else asked[job_id].version for job_id in asked]
        try:
            found = await self._database.run(self._read(list(asked), versions))
        except DatabaseUnavailable:
            raise
        except Exception as error:  # whatever it is, no watcher may wait forever
            for job_id in asked:
                self._notify_all(job_id, _as_forge_error(error))
            return
        for row in found:
            job_id = row["watched_id"]
            state = await self._state(row)
            if (watched := self._watched.get(job_id)) is asked[job_id]:
                watched.newcomers -= newcomers[job_id]
                if row["awaits_output"]:
                    _notify(newcomers[job_id] & watched.callbacks, job_id, state)
                else:
                    self._notify_changed(job_id, watched, newcomers[job_id], row["version"], state)

    async def _state(self, row: Row) -> T | ForgeError:
        """Return what callbacks receive; a large row is read in a thread to keep the loop free."""
        if row["version"] is None:
            return UnknownJob.of(row["watched_id"])
        if row["awaits_output"]:
            row = _still_running(row)
        if sum(len(text) for text in row.values() if isinstance(text, str)) < HEAVY:
            return self._read_state(row)
        return await asyncio.to_thread(self._read_state, row)

    def _notify_changed(
        self,
        job_id: UUID,
        watched: "_Watched[T]",
        newcomers: "set[Callback[T]]",
        version: Any,
        state: T | ForgeError,
    ) -> None:
        if version is None:
            assert isinstance(state, ForgeError)
            self._notify_all(job_id, state)
            return
        # A watcher that came after the read began gets the next one, which is newer.
        is_new = version != watched.version
        notified = (
            watched.callbacks - watched.newcomers if is_new else newcomers & watched.callbacks
        )
        watched.version = version
        _notify(notified, job_id, state)

    def _read_state(self, row: Row) -> T | ForgeError:
        try:
            return self._state_of(row)
        except Exception as error:  # one bad row must not block the others
            return _as_forge_error(error)

    def _notify_all(self, job_id: UUID, error: ForgeError) -> None:
        if (watched := self._watched.get(job_id)) is not None:
            _notify(list(watched.callbacks), job_id, error)

    def _heard(self, payload: str) -> None:
        ids = changed_ids(payload)
        changed: Iterable[UUID] = self._watched if ids is None else ids & self._watched.keys()
        before = len(self._dirty)
        self._dirty.update(changed)
        if len(self._dirty) > before:
            self._wanted.set()


class LatestState(Generic[T]):
    """The latest state of one job, for a reader that may skip states in between."""

    def __init__(self) -> None:
        self._news: T | ForgeError | None = None
        self._came = asyncio.Event()

    def put(self, _job_id: UUID, news: T | ForgeError) -> None:
        self._news = news
        self._came.set()

    async def next(self) -> T:
        """Wait for a new state and return it, or raise the error that ended the watch."""
        await self._came.wait()
        self._came.clear()
        news = self._news
        assert news is not None
        if isinstance(news, ForgeError):
            raise news
        return news


class _Watched(Generic[T]):
    """The callbacks of a job, those not called yet, and the version that they received."""

    __slots__ = ("callbacks", "newcomers", "version")

    def __init__(self) -> None:
        self.callbacks: set[Callback[T]] = set()
        self.newcomers: set[Callback[T]] = set()
        self.version: int | None = None


def _notify(callbacks: Iterable[Callback[T]], job_id: UUID, news: T | ForgeError) -> None:
    for callback in callbacks:
        callback(job_id, news)


def _still_running(row: Row) -> Row:
    """Show a job whose output is not written yet as running: a final status ends the watch."""
    # With the version before: the same row may soon be shown as completed without an output.
    return {
        **row,
        "status": Status.RUNNING,
        "version": row["version"] - 1,
        "completed_at": None,
        "output": None,
    }


def _now() -> float:
    return asyncio.get_running_loop().time()


def _closed() -> HubClosed:
    return HubClosed("the app was closed while a job was watched; watch it again from an open one")


def _as_forge_error(error: Exception) -> ForgeError:
    if isinstance(error, ForgeError):
        return error
    return ForgeError(f"the job cannot be read ({error!r}); look at its row")
