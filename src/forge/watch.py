"""Following jobs: one listening connection for all that are watched, and a poll behind it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from forge.core.errors import DatabaseUnavailable, ForgeError, ResultTimeout
from forge.core.record import JobRecord
from forge.store import jobs
from forge.store.database import Database
from forge.store.listener import Listener
from forge.store.notify import CHANGES, changed_ids
from forge.store.waiting import within

POLL = 1.0


class Watcher:
    """Re-reads watched jobs when they may have changed, and tells whoever follows them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = asyncio.Event()
        self._watched: dict[UUID, set[asyncio.Event]] = {}
        self._listener = Listener(database, {CHANGES: self._heard})
        self._listening: asyncio.Task[None] | None = None

    async def follow(self, job_id: UUID) -> AsyncIterator[JobRecord]:
        """Yield the job as it stands, then at each change, until it is final."""
        changed = self._watch(job_id)
        seen: JobRecord | None = None
        try:
            while True:
                changed.clear()
                record = await self._read(job_id)
                if record is not None and record != seen:
                    seen = record
                    yield record
                    if record.is_final:
                        return
                await within(changed, POLL)
        finally:
            self._unwatch(job_id, changed)

    async def final(self, job_id: UUID, timeout: float | timedelta | None) -> JobRecord:
        """Wait until the job is final."""
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        try:
            async with asyncio.timeout(seconds):
                async for record in self.follow(job_id):
                    if record.is_final:
                        return record
        except TimeoutError:
            raise ResultTimeout(
                f"job {job_id} was not done within {seconds:g} s; it goes on: wait longer, or "
                "check that a worker runs its type (`forge doctor`)"
            ) from None
        raise AssertionError("a job is followed until it is final")

    async def close(self) -> None:
        self._stop.set()
        if self._listening is not None:
            await self._listening

    def _watch(self, job_id: UUID) -> asyncio.Event:
        if self._listening is None and not self._database.pooler:
            self._listening = asyncio.get_running_loop().create_task(self._listener.run(self._stop))
        changed = asyncio.Event()
        self._watched.setdefault(job_id, set()).add(changed)
        return changed

    def _unwatch(self, job_id: UUID, changed: asyncio.Event) -> None:
        self._watched[job_id].discard(changed)
        if not self._watched[job_id]:
            del self._watched[job_id]

    def _heard(self, payload: str) -> None:
        ids = changed_ids(payload)
        for job_id in self._watched if ids is None else ids & self._watched.keys():
            for changed in self._watched[job_id]:
                changed.set()

    async def _read(self, job_id: UUID) -> JobRecord | None:
        try:
            found = await self._database.run(jobs.get([job_id]))
        except DatabaseUnavailable:
            return None  # it is asked again: a restart must not end a wait
        if not found:
            raise ForgeError(f"there is no job {job_id}; it may have been deleted or pruned")
        return JobRecord.from_row(found[0])
