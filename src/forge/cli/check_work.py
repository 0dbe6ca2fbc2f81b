"""Whether all work has a worker that lives."""

from collections.abc import Sequence
from typing import Any

from forge.app import Forge
from forge.cli.finding import Finding, ok, problem, warning
from forge.cli.living import living_workers
from forge.cli.unserved import types_without_worker, unserved_lanes, unserved_schedules
from forge.store import doctor, jobs, schedules
from forge.store.database import Database

Living = Sequence[dict[str, Any]]


async def check_work(app: Forge, database: Database) -> list[Finding]:
    """Look for workers that died with jobs, and for jobs that nobody would take."""
    living = await living_workers(app)
    dead_after = app.config.worker.dead_after.total_seconds()
    return [
        *await _workers(database, living, dead_after, _stale_setting(app)),
        *await _work_without_workers(database, living),
    ]


def _stale_setting(app: Forge) -> str:
    by_message = app.config.transport.queues is not None
    return "[transport.sqs] locked_timeout" if by_message else "[worker] stale_threshold"


async def _workers(
    database: Database, living: Living, dead_after: float, stale_setting: str
) -> list[Finding]:
    findings = (
        [ok("workers", f"{len(living)} alive")]
        if living
        else [warning("workers", "none is alive", "start `forge worker MODULE:APP`")]
    )
    for owner in await database.run(doctor.owners_gone(dead_after)):
        message = (
            f"worker {owner['id']} ({owner['hostname']}, pid {owner['pid']}) was last heard of "
            f"{owner['silent_for']:.0f} s ago and owns {owner['jobs']} jobs"
        )
        if living:
            advice = "nothing: a living worker takes them back within seconds"
            findings.append(warning("workers", message, advice))
        else:
            findings.append(problem("workers", message, "start a worker, which takes them back"))
    unknown = await database.run(jobs.unknown_owners())
    if unknown:
        message = f"jobs are owned by workers that nobody knows: {', '.join(map(str, unknown))}"
        advice = f"a living worker takes them back after {stale_setting}"
        findings.append(warning("workers", message, advice))
    return findings


async def _work_without_workers(database: Database, living: Living) -> list[Finding]:
    waiting = unserved_lanes(await database.run(jobs.survey()), living)
    idle = await types_without_worker(database, living)
    findings = [problem("work", message, advice) for message, advice in waiting]
    if idle:
        advice = (
            "start a worker that has them; types that are no more: delete from forge_job_types "
            "where name = …"
        )
        findings.append(warning("types", f"no living worker runs {', '.join(idle)}", advice))
    if resting := unserved_schedules(await database.run(schedules.types()), living):
        advice = "start a worker that has the type, or `forge schedules disable` what is over"
        findings.append(warning("schedules", f"no living worker runs {resting}", advice))
    return findings or [ok("work", "every type and every waiting job has a living worker")]
