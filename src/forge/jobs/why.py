"""Reads why a job is not running."""

from uuid import UUID

from forge.config.settings import Config
from forge.core.errors import UnknownJob
from forge.core.job import JobRecord
from forge.core.lifecycle import WAITING, Status
from forge.core.pause import Pause
from forge.core.sensitive.shown import shown_job
from forge.core.why import (
    EVERYTHING,
    MAX_AHEAD,
    Deadlines,
    Detail,
    Situation,
    Why,
    WorkerFacts,
    explain,
)
from forge.definitions.catalog import Catalog, RunStatement
from forge.store import jobs, pauses, queue_statistics, workers
from forge.store.statement import Row

# The statements see different moments; a job that moves between them is read again.
MAX_READS = 3


async def find_why(
    job_id: UUID, catalog: Catalog, config: Config, run: RunStatement, detail: Detail = EVERYTHING
) -> Why:
    """Explain why a job is not running; `run` reads the rows of all tenants."""
    for _ in range(MAX_READS):
        found = await run(jobs.get([job_id]))
        if not found:
            break
        job = JobRecord.from_row(found[0])
        place = await run(queue_statistics.ahead(job_id, MAX_AHEAD if _waits(job) else 0))
        if place is not None and place["status"] == job.status:
            allowed = await catalog.sensitive_allowed(job.job_type)
            return explain(await _situation(shown_job(job, allowed), place, config, run), detail)
    raise UnknownJob.of(job_id)


async def _situation(job: JobRecord, place: Row, config: Config, run: RunStatement) -> Situation:
    starts = await run(queue_statistics.started_lately(job.id)) if place["ahead"] else []
    known = [] if job.is_final else await run(workers.listed())
    return Situation(
        job,
        place["now"],
        place["due_in"],
        place["ahead"],
        starts,
        [WorkerFacts(**{name: row[name] for name in WorkerFacts._fields}) for row in known],
        await _pauses(job, run),
        _deadlines(config),
    )


async def _pauses(job: JobRecord, run: RunStatement) -> list[Pause]:
    if not _waits(job):
        return []
    return [one for one in await run(pauses.current()) if one.covers(job.job_type, job.queue)]


def _deadlines(config: Config) -> Deadlines:
    return Deadlines(
        config.worker.dead_after.total_seconds(),
        config.job_stale_threshold.total_seconds(),
        config.retention.idempotency_keys,
    )


def _waits(job: JobRecord) -> bool:
    return Status(job.status) in WAITING
