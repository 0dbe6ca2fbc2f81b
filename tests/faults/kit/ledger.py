"""The state of a test's jobs in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from tests.faults.kit.checker import FINAL, Row
from tests.faults.kit.history import Event, History, Kind
from tests.faults.kit.process import until


class Ledger:
    """The rows of a test's jobs."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def job(self, job_id: UUID) -> asyncpg.Record:
        row = await self.connection.fetchrow("select * from forge_jobs where id = $1", job_id)
        assert row is not None, f"job {job_id} is gone"
        return row

    async def rows(self) -> list[Row]:
        found = await self.connection.fetch("select id, status, lease from forge_jobs")
        return [Row(str(row["id"]), row["status"], row["lease"]) for row in found]

    async def until_status(
        self, job_id: UUID, *statuses: str, timeout: float = 30
    ) -> asyncpg.Record:
        """Wait until the job has one of these statuses, and return its row."""

        async def has_status() -> Any:
            row = await self.job(job_id)
            return row if row["status"] in statuses else None

        return await until(has_status, timeout, f"job {job_id} is {' or '.join(statuses)}")

    async def until_final(self, job_ids: Iterable[UUID], timeout: float = 30) -> list[Any]:
        """Wait until all these jobs are final, and return their rows in the same order."""
        return [await self.until_status(job_id, *FINAL, timeout=timeout) for job_id in job_ids]

    async def attempts(self, job_id: UUID) -> list[asyncpg.Record]:
        statement = "select * from forge_attempts where job_id = $1 order by lease"
        return await self.connection.fetch(statement, job_id)

    async def until_beating(self, worker_id: UUID, beats: int = 2) -> None:
        """Wait for this many heartbeats of a worker from now on."""
        seen: set[Any] = set()
        statement = "select last_heartbeat from forge_workers where id = $1"

        async def beat_enough() -> bool:
            seen.add(await self.connection.fetchval(statement, worker_id))
            return len(seen - {None}) > beats

        await until(beat_enough, 60, f"worker {worker_id} has sent {beats} heartbeats")

    async def has_lock_waiter(self) -> bool:
        """Whether a session is waiting for a lock."""
        waiting = (
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and wait_event_type = 'Lock'"
        )
        return bool(await self.connection.fetchval(waiting))


@asynccontextmanager
async def held_row(database_url: str, job_id: UUID) -> AsyncIterator[None]:
    """Lock a job's row, as a long transaction of another session does."""
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            await connection.execute("select from forge_jobs where id = $1 for update", job_id)
            yield
    finally:
        await connection.close()


class Gate:
    """A file at which handlers wait until the test opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def input(self) -> dict[str, str]:
        return {"gate": str(self.path)}

    def open(self, *, lease: int | None = None) -> None:
        """Let all attempts pass, or only the one with this lease."""
        suffix = "" if lease is None else f".{lease}"
        Path(f"{self.path}{suffix}").touch()


def events_of(history: History, job_id: UUID, kind: Kind) -> list[Event]:
    """The events of one job of one kind."""
    return [event for event in history.events() if event.job == str(job_id) and event.kind == kind]


async def until_started(history: History, job_id: UUID, *, lease: int = 1) -> Event:
    """Wait until the handler of this attempt runs."""

    def started() -> list[Event]:
        return [event for event in events_of(history, job_id, Kind.STARTED) if event.lease == lease]

    return (await until(started, 30, f"attempt {lease} of job {job_id} has started"))[0]
