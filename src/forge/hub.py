"""Watching jobs: one connection that listens and one read a round, however many are watched."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from uuid import UUID

from forge.core.errors import DatabaseUnavailable, ForgeError, UnknownJob
from forge.core.lifecycle import Status
from forge.store.database import Database
from forge.store.ear import Ear
from forge.store.notify import CHANGES, changed_ids
from forge.store.statement import Row, Rows, Statement
from forge.store.waiting import within

T = TypeVar("T")
# What is told about a job: how it stands, or why nothing more will come.
Tell = Callable[[UUID, T | ForgeError], None]
Read = Callable[[Sequence[UUID], Sequence[int | None]], Statement[Rows]]

# Changes that were not announced, made by hand in SQL for one, are found this often ...
POLL = 2.0
# ... and all changes while nothing can be heard: behind a pooler, or over a dead connection.
DEAF_POLL = 0.5
# Notifications of several workers that arrive together are answered by one read.
GAP = 0.01
MOST_AT_ONCE = 1000
# Characters of a row from which on it is redacted and written in a thread.
HEAVY = 16_384


class Closed(ForgeError):
    """Nobody watches any more."""


class Hub(Generic[T]):
    """Re-reads the jobs that may have changed, all in one statement, and tells who watches them."""

    def __init__(self, database: Database, read: Read, state_of: Callable[[Row], T]) -> None:
        self._database = database
        self._read = read
        self._state_of = state_of
        self._watched: dict[UUID, _Watched[T]] = {}
        self._dirty: set[UUID] = set()
        self._wanted = asyncio.Event()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._ear = Ear(database, CHANGES, self._heard)
        self._looked_at = 0.0

    def watch(self, job_id: UUID, tell: Tell[T]) -> None:
        """Tell how a job stands, and again at each change; who watches already is told anew."""
        if self._stop.is_set():
            tell(job_id, _closed())
            return
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())
        watched = self._watched.setdefault(job_id, _Watched())
        watched.tells.add(tell)
        watched.newcomers.add(tell)
        self._dirty.add(job_id)
        self._wanted.set()

    def unwatch(self, job_id: UUID, tell: Tell[T]) -> None:
        """Tell no more about a job."""
        watched = self._watched.get(job_id)
        if watched is not None:
            watched.tells.discard(tell)
            watched.newcomers.discard(tell)
            if not watched.tells:
                del self._watched[job_id]

    @contextmanager
    def watching(self, job_id: UUID) -> Iterator["Newest[T]"]:
        """Watch a job for the time of the block."""
        newest: Newest[T] = Newest()
        self.watch(job_id, newest.tell)
        try:
            yield newest
        finally:
            self.unwatch(job_id, newest.tell)

    async def close(self) -> None:
        """Tell everybody that nothing more comes, and let go of the connection."""
        self._stop.set()
        self._wanted.set()
        for job_id in list(self._watched):
            self._tell_all(job_id, _closed())
        if self._running is not None:
            _, late = await asyncio.wait([self._running], timeout=2)
            for task in late:  # it waits for a database that does not answer
                task.cancel()
                await asyncio.wait([task])

    async def _run(self) -> None:
        listening = asyncio.get_running_loop().create_task(self._ear.run(self._stop))
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
                for start in range(0, len(ids), MOST_AT_ONCE):
                    await self._look_at(ids[start : start + MOST_AT_ONCE])
                await self._ear.test(POLL)
                pause = GAP
            except ForgeError:
                # It is asked again: a restart of the database must not end a wait, and neither must
                # a notification that is refused.
                self._dirty.update(ids)
                self._wanted.set()
                pause = min(max(0.1, pause * 2), DEAF_POLL)
            await within(self._stop, pause)

    async def _wait_for_changes(self) -> None:
        """Wait until somebody may have changed something, or it is time to look at everything."""
        if not self._watched:
            await self._wanted.wait()
        # However much is announced: what is not announced must be found all the same.
        left = self._looked_at + (POLL if self._ear.hears() else DEAF_POLL) - _now()
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
        except Exception as error:  # whatever it is, nobody may wait for it in vain
            for job_id in asked:
                self._tell_all(job_id, _as_forge_error(error))
            return
        for row in found:
            job_id = row["watched_id"]
            state = await self._state(row)
            if (watched := self._watched.get(job_id)) is asked[job_id]:
                watched.newcomers -= newcomers[job_id]
                if row["awaits_output"]:
                    _tell_each(newcomers[job_id] & watched.tells, job_id, state)
                else:
                    self._tell(job_id, watched, newcomers[job_id], row["version"], state)

    async def _state(self, row: Row) -> T | ForgeError:
        """Return what watchers are sent; a large row is read in a thread, and the loop goes on."""
        if row["version"] is None:
            return UnknownJob.of(row["watched_id"])
        if row["awaits_output"]:
            row = _still_running(row)
        if sum(len(text) for text in row.values() if isinstance(text, str)) < HEAVY:
            return self._read_state(row)
        return await asyncio.to_thread(self._read_state, row)

    def _tell(
        self,
        job_id: UUID,
        watched: "_Watched[T]",
        newcomers: "set[Tell[T]]",
        version: Any,
        state: T | ForgeError,
    ) -> None:
        if version is None:
            assert isinstance(state, ForgeError)
            self._tell_all(job_id, state)
            return
        # Who came after the read began is told by the next one, which shows what is newest then.
        is_new = version != watched.version
        told = watched.tells - watched.newcomers if is_new else newcomers & watched.tells
        watched.version = version
        _tell_each(told, job_id, state)

    def _read_state(self, row: Row) -> T | ForgeError:
        try:
            return self._state_of(row)
        except Exception as error:  # one bad row must not keep the others from being told
            return _as_forge_error(error)

    def _tell_all(self, job_id: UUID, error: ForgeError) -> None:
        if (watched := self._watched.get(job_id)) is not None:
            _tell_each(list(watched.tells), job_id, error)

    def _heard(self, payload: str) -> None:
        ids = changed_ids(payload)
        changed: Iterable[UUID] = self._watched if ids is None else ids & self._watched.keys()
        before = len(self._dirty)
        self._dirty.update(changed)
        if len(self._dirty) > before:
            self._wanted.set()


class Newest(Generic[T]):
    """The newest news of one job, for a reader who may be slower than they come."""

    def __init__(self) -> None:
        self._news: T | ForgeError | None = None
        self._came = asyncio.Event()

    def tell(self, _job_id: UUID, news: T | ForgeError) -> None:
        self._news = news
        self._came.set()

    async def next(self) -> T:
        """Wait for news and return them, or raise why there will be none."""
        await self._came.wait()
        self._came.clear()
        news = self._news
        assert news is not None
        if isinstance(news, ForgeError):
            raise news
        return news


class _Watched(Generic[T]):
    """Who watches a job, who of them was not told yet, and which version of it was told."""

    __slots__ = ("newcomers", "tells", "version")

    def __init__(self) -> None:
        self.tells: set[Tell[T]] = set()
        self.newcomers: set[Tell[T]] = set()
        self.version: int | None = None


def _tell_each(tells: Iterable[Tell[T]], job_id: UUID, news: T | ForgeError) -> None:
    for tell in tells:
        tell(job_id, news)


def _still_running(row: Row) -> Row:
    """Show a job whose output is yet to come as running: its watchers stop at the final status."""
    return {**row, "status": Status.RUNNING, "completed_at": None, "output": None}


def _now() -> float:
    return asyncio.get_running_loop().time()


def _closed() -> Closed:
    return Closed("the app was closed while a job was watched; watch it again from an open one")


def _as_forge_error(error: Exception) -> ForgeError:
    if isinstance(error, ForgeError):
        return error
    return ForgeError(f"the job cannot be read ({error!r}); look at its row")
