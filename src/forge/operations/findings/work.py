"""Checks that every job, job type and schedule has a live worker."""

from collections.abc import Container, Sequence
from typing import Any

from forge.config.settings import Config
from forge.core.finding import Finding, ok, problem, warning
from forge.core.job import BUILTIN_QUEUE
from forge.core.worker_record import WorkerRecord
from forge.operations.serving import serves
from forge.store import doctor, job_types, jobs, schedules
from forge.store.connection.database import Database
from forge.store.jobs import Lane
from forge.store.statement import Rows
from forge.store.workers import Registration

LiveWorkers = Sequence[WorkerRecord]
# Schedules of a lane that are counted exactly.
MAX_COUNTED = 1000
# Seconds that jobs may be due without one of their type being processed, as in the alert rules.
STUCK_AFTER = 120.0
# Seconds: statistics are written every 10 s, and attempts may take a while.
LATELY = 300.0


async def check_work(
    database: Database, config: Config, live: LiveWorkers, requests: Container[str]
) -> list[Finding]:
    """Look for dead workers that own jobs, and for work that no live worker takes."""
    dead_after = config.worker.dead_after.total_seconds()
    lanes = [lane for lane in await database.run(jobs.survey_all()) if not lane.due_in]
    return [
        *await _workers(database, live, dead_after, _stale_setting(config)),
        *await _unserved(database, lanes, live, requests),
        *await _stuck(database, lanes, live, requests),
    ]


def has_worker(type: str, capability: str | None, live: LiveWorkers) -> bool:
    """Whether one of these workers runs schedules of this type and capability."""
    return any(
        type in worker.schedule_types and (capability is None or capability in worker.capabilities)
        for worker in live
    )


def _stale_setting(config: Config) -> str:
    by_message = config.transport.queues is not None
    return "[transport.sqs] locked_timeout" if by_message else "[worker] stale_threshold"


async def _workers(
    database: Database, live: LiveWorkers, dead_after: float, stale_setting: str
) -> list[Finding]:
    findings = (
        [ok("workers", f"{len(live)} alive", alive=len(live))]
        if live
        else [warning("no_worker", "no worker is alive", "start `forge worker MODULE:APP`")]
    )
    for owner in await database.run(doctor.owners_gone(dead_after)):
        message = (
            f"worker {owner['id']} ({owner['hostname']}, pid {owner['pid']}) sent its last "
            f"heartbeat {owner['silent_for']:.0f} s ago and owns {owner['jobs']} jobs"
        )
        facts = {"worker_id": str(owner["id"]), "jobs": owner["jobs"]}
        facts["silent_seconds"] = round(owner["silent_for"])
        if live:
            advice = "nothing to do: a live worker rescues them within seconds"
            findings.append(warning("silent_worker", message, advice, **facts))
        else:
            advice = "start a worker, which rescues them"
            findings.append(problem("silent_worker", message, advice, **facts))
    unknown = await database.run(jobs.unknown_owners())
    if unknown:
        message = f"jobs are owned by unknown workers: {', '.join(map(str, unknown))}"
        advice = f"nothing to do: a live worker rescues them after {stale_setting}"
        ids = [str(owner) for owner in unknown]
        findings.append(warning("unknown_worker", message, advice, worker_ids=ids))
    return findings


async def _unserved(
    database: Database, lanes: Sequence[Lane], live: LiveWorkers, requests: Container[str]
) -> list[Finding]:
    waiting = _unserved_lanes(lanes, live, requests)
    findings = [problem("unserved_jobs", what, advice, **facts) for what, advice, facts in waiting]
    if types := await _unserved_types(database, live):
        advice = (
            "start a worker that registers them; remove obsolete types with delete from "
            "forge_job_types where name = …"
        )
        what = f"no live worker runs {', '.join(types)}"
        findings.append(warning("unserved_types", what, advice, job_types=types))
    if unserved := _unserved_schedules(await database.run(schedules.types(MAX_COUNTED)), live):
        advice = "start a worker that registers the type, or `forge schedules disable` them"
        findings.append(warning("unserved_schedules", f"no live worker runs {unserved}", advice))
    return findings or [ok("work", "every type and every waiting job has a live worker")]


def _unserved_lanes(
    lanes: Sequence[Lane], live: LiveWorkers, requests: Container[str]
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the due work that no live worker takes, each with advice and facts."""
    workers = [_registration(worker) for worker in live]
    unserved = {
        (lane.job_type, lane.queue, lane.worker_capability): lane
        for lane in lanes
        if not any(serves(worker, lane, requests) for worker in workers)
    }
    return [(*_explain(lane, workers), _facts(lane)) for lane in unserved.values()]


def _facts(lane: Lane) -> dict[str, Any]:
    names = ("job_type", "queue", "worker_capability")
    return {name: getattr(lane, name) for name in names}


async def _stuck(
    database: Database, lanes: Sequence[Lane], live: LiveWorkers, requests: Container[str]
) -> list[Finding]:
    """Find types that have live workers, and yet are not processed although jobs are due."""
    workers = [_registration(worker) for worker in live]
    served = [lane for lane in lanes if any(serves(worker, lane, requests) for worker in workers)]
    found = await database.run(jobs.stuck(served, STUCK_AFTER, LATELY)) if served else []
    advice = (
        "see `forge workers`: their slots may be taken by other jobs, or they are drained; "
        "`forge jobs why` explains a single job"
    )
    return [
        problem(
            "nothing_consumed",
            f"jobs of type {row['job_type']} have been due for {row['seconds']:.0f} s, and no live "
            "worker has processed one lately",
            advice,
            job_type=row["job_type"],
            seconds=round(row["seconds"]),
        )
        for row in found
    ]


async def _unserved_types(database: Database, live: LiveWorkers) -> list[str]:
    """Return the registered job types that no live worker runs."""
    served = {name for worker in live for name in worker.job_types}
    return [name for name in await database.run(job_types.names()) if name not in served]


def _unserved_schedules(types: Rows, live: LiveWorkers) -> str:
    """Name the enabled schedules that no live worker runs, by type."""
    return ", ".join(
        f"{row['enabled']} of type {row['type']}{_for(row['worker_capability'])}"
        for row in types
        if row["enabled"] and not has_worker(row["type"], row["worker_capability"], live)
    )


def _registration(worker: WorkerRecord) -> Registration:
    return Registration(**{name: getattr(worker, name) for name in Registration._fields})


def _for(capability: str | None) -> str:
    return "" if capability is None else f" for capability {capability}"


def _explain(lane: Lane, workers: Sequence[Registration]) -> tuple[str, str]:
    what = f"jobs of type {lane.job_type} wait in queue {lane.queue}"
    if lane.queue == BUILTIN_QUEUE:
        return f"{what}, but no worker is alive", "start `forge worker MODULE:APP`"
    able = [worker for worker in workers if lane.job_type in worker.job_types]
    if not able:
        return f"{what}, but no live worker has that type", "start a worker whose app registers it"
    serving = [worker for worker in able if worker.queues is None or lane.queue in worker.queues]
    if not serving:
        advice = f"start a worker with --queue {lane.queue}"
        return f"{what}, but no live worker with that type serves the queue", advice
    advice = f"start a worker with --capability {lane.worker_capability}"
    return f"{what}, but no live worker has capability {lane.worker_capability}", advice
