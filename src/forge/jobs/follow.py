"""Following one job: as it stands, at each change, until it is final."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from forge.core.duration import parse_duration
from forge.core.errors import ResultTimeout
from forge.core.job import JobRecord
from forge.jobs.hub import Hub
from forge.store import jobs
from forge.store.connection.database import Database

# Seconds, or a duration such as "30s"; None waits as long as it takes.
Timeout = float | timedelta | str | None


class Watcher(Hub[JobRecord]):
    """Watches jobs for the holders of their handles."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, jobs.changed, JobRecord.from_row)

    async def follow(self, job_id: UUID) -> AsyncIterator[JobRecord]:
        """Yield the job as it stands, then at each change, until it is final."""
        seen: JobRecord | None = None
        with self.watching(job_id) as newest:
            while seen is None or not seen.is_final:
                record = await newest.next()
                if record != seen:
                    seen = record
                    yield record

    async def final(self, job_id: UUID, timeout: Timeout) -> JobRecord:
        """Wait until the job is final."""
        seconds = _seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                with self.watching(job_id) as newest:
                    while not (record := await newest.next()).is_final:
                        continue
                    return record
        except TimeoutError:
            raise ResultTimeout(
                f"job {job_id} was not done within {seconds:g} s; it goes on: wait longer, or "
                "check that a worker runs its type (`forge doctor`)"
            ) from None


def _seconds(timeout: Timeout) -> float | None:
    if timeout is None or isinstance(timeout, int | float):
        return timeout
    return parse_duration(timeout, allow_zero=True).total_seconds()
