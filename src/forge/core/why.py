"""Why a job is not running: one reason, one sentence, and the facts behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.duration import approximate
from forge.core.eta import Eta, coarse, coarse_place, estimate
from forge.core.job import BUILTIN_QUEUE, JobRecord
from forge.core.lifecycle import Status
from forge.core.pause import Pause
from forge.core.workers.lanes import worker_group_name

# Jobs ahead of a job that are counted at most.
MAX_AHEAD = 10_000
NEVER = float("inf")


class Reason(StrEnum):
    """Why a job is not running; what stops it first counts."""

    FINAL = "final"
    HELD_BY_KEY = "held_by_key"
    OWNER_SILENT = "owner_silent"
    RUNNING = "running"
    CLAIMED = "claimed"
    PAUSED = "paused"
    RETRY_LATER = "retry_later"
    DUE_LATER = "due_later"
    NO_WORKER = "no_worker"
    NO_WORKER_FOR_TYPE = "no_worker_for_type"
    NO_WORKER_FOR_QUEUE = "no_worker_for_queue"
    NO_WORKER_FOR_CAPABILITY = "no_worker_for_capability"
    WORKERS_DRAINING = "workers_draining"
    JOBS_AHEAD = "jobs_ahead"
    NO_FREE_SLOT = "no_free_slot"
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a job is not running."""

    job_id: UUID
    status: Status
    reason: Reason
    message: str
    facts: dict[str, Any] = field(default_factory=dict)


class WorkerFacts(NamedTuple):
    """A worker as its row shows it."""

    id: UUID
    hostname: str
    pid: int
    job_types: Sequence[str]
    queues: Sequence[str] | None
    capabilities: Sequence[str]
    running: int
    max_concurrent: int
    draining: bool
    drained_at: datetime | None
    last_heartbeat: datetime
    silent_for: float

    @property
    def name(self) -> str:
        return f"{self.hostname} (pid {self.pid})"

    @property
    def claims(self) -> bool:
        return not self.draining and self.drained_at is None


class Deadlines(NamedTuple):
    """Settings that decide when an owner is given up, and how long a key is kept."""

    # Seconds without a heartbeat after which a worker is dead.
    dead_after: float
    # Seconds after which the jobs of a worker without a row are rescued.
    stale_after: float
    keys_kept: timedelta | None


class Situation(NamedTuple):
    """What is known of a job at one moment; the job is redacted."""

    job: JobRecord
    now: datetime
    # Seconds until it is due; infinite for a time that never comes.
    due_in: float
    ahead: int
    # Seconds since the latest starts in its lane.
    starts: Sequence[float]
    workers: Sequence[WorkerFacts]
    # The pauses in effect that cover it.
    pauses: Sequence[Pause]
    deadlines: Deadlines


class Detail(NamedTuple):
    """How much a caller may see of what is shared with others."""

    is_exact: bool = True
    has_workers: bool = True


EVERYTHING = Detail()


class _Found(NamedTuple):
    reason: Reason
    message: str
    facts: Mapping[str, Any]


def explain(seen: Situation, detail: Detail = EVERYTHING) -> Why:
    """Decide why a job is not running."""
    found = _of_status(seen, detail) or _of_pauses(seen, detail) or _of_time(seen)
    found = found or _of_workers(seen, detail) or _of_lane(seen, detail)
    job = seen.job
    facts = {name: value for name, value in found.facts.items() if value is not None}
    return Why(
        job_id=job.id,
        status=job.status,
        reason=found.reason,
        message=found.message,
        facts=facts,
    )


def _of_status(seen: Situation, detail: Detail) -> _Found | None:
    job = seen.job
    if job.is_final:
        return _ended(seen)
    return None if job.status in (Status.PENDING, Status.RETRY) else _owned(seen, detail)


def _ended(seen: Situation) -> _Found:
    job, kept = seen.job, seen.deadlines.keys_kept
    ended = job.completed_at or job.failed_at or job.cancelled_at
    facts = {"ended_at": ended, "last_error": job.last_error}
    what = f"The job is {job.status}" + (f" since {_moment(ended)}" if ended else "")
    if job.idempotency_key is None:
        advice = "a final job never runs again: rerun it, which creates a new job"
        return _Found(Reason.FINAL, f"{what}; {advice}.", facts)
    until = None if kept is None else job.created_at + kept
    facts |= {"idempotency_key": job.idempotency_key, "key_kept_until": until}
    message = (
        f"{what}, and holds the idempotency key {job.idempotency_key!r}: a dispatch with this key "
        "returns this job and runs nothing; use another key, or rerun the job."
    )
    return _Found(Reason.HELD_BY_KEY, message, facts)


def _owned(seen: Situation, detail: Detail) -> _Found:
    job = seen.job
    owner = next((one for one in seen.workers if one.id == job.worker_id), None)
    name = "Its worker" if owner is None or not detail.has_workers else f"Its worker {owner.name}"
    facts: dict[str, Any] = {
        "worker_id": job.worker_id,
        "claimed_at": job.claimed_at,
        "started_at": job.started_at,
        "attempt": job.attempts,
        "max_attempts": job.max_attempts,
    }
    if owner is None:
        return _owner_unknown(seen, facts)
    if owner.silent_for >= seen.deadlines.dead_after:
        facts |= {"silent_since": owner.last_heartbeat}
        message = (
            f"{name} is silent since {_moment(owner.last_heartbeat)} "
            f"({approximate(owner.silent_for)}); {_rescue(seen)}."
        )
        return _Found(Reason.OWNER_SILENT, message, facts)
    if job.status is Status.CLAIMED:
        message = f"{name} has claimed it and starts it as soon as one of its slots is free."
        return _Found(Reason.CLAIMED, message, facts)
    facts |= {"progress_percent": job.progress_percent, "progress_message": job.progress_message}
    since = "" if job.started_at is None else f" since {_moment(job.started_at)}"
    message = f"It is running{since}, attempt {job.attempts} of {job.max_attempts}."
    return _Found(Reason.RUNNING, message, facts)


def _owner_unknown(seen: Situation, facts: dict[str, Any]) -> _Found:
    job = seen.job
    heard = max((at for at in (job.last_heartbeat, job.claimed_at) if at), default=None)
    facts |= {"silent_since": heard}
    silent = "" if heard is None else f", and the job is silent since {_moment(heard)}"
    message = f"Its worker {job.worker_id} is not known any more{silent}; {_rescue(seen)}."
    return _Found(Reason.OWNER_SILENT, message, facts)


def _rescue(seen: Situation) -> str:
    if not _alive(seen):
        return "no other worker is alive to rescue the job: start one"
    if any(one.id == seen.job.worker_id for one in seen.workers):
        return "another worker rescues the job"
    after = approximate(seen.deadlines.stale_after)
    return f"another worker rescues the job {after} after its last sign of life"


def _of_pauses(seen: Situation, detail: Detail) -> _Found | None:
    """Return the pause that ends last, unless the job is due after it."""
    if not seen.pauses:
        return None
    pause = max(seen.pauses, key=lambda one: (one.until is None, one.until or one.created_at))
    lasts = NEVER if pause.until is None else (pause.until - seen.now).total_seconds()
    if lasts < NEVER and lasts <= seen.due_in:
        return None
    facts: dict[str, Any] = {
        "type": pause.type,
        "queue": pause.queue,
        "until": pause.until,
        "paused_at": pause.created_at,
    }
    end = "until it is resumed" if pause.until is None else f"until {_moment(pause.until)}"
    message = f"The {pause.target} is paused {end}"
    if not detail.is_exact:
        return _Found(Reason.PAUSED, f"{message}.", facts)
    facts |= {"pause_id": pause.pause_id, "pause_reason": pause.reason, "actor": pause.actor}
    by = "" if pause.actor is None else f" by {pause.actor}"
    message += f", since {_moment(pause.created_at)}{by}: {_sentence(pause.reason)}"
    return _Found(Reason.PAUSED, f"{message}; resume it with `forge resume`.", facts)


def _of_time(seen: Situation) -> _Found | None:
    job = seen.job
    if seen.due_in <= 0:
        return None
    facts: dict[str, Any] = {"due_at": job.scheduled_at}
    when = (
        f"{_moment(job.scheduled_at)} (in {approximate(seen.due_in)})"
        if seen.due_in < NEVER
        else "a time that never comes; reschedule it"
    )
    if job.status is Status.PENDING:
        return _Found(Reason.DUE_LATER, f"It is scheduled for {when}.", facts)
    attempt = job.attempts + 1
    facts |= {
        "attempt": attempt,
        "max_attempts": job.max_attempts,
        "last_error": job.last_error,
        "error_class": job.error_class,
        "crashes": job.crashes,
    }
    because = _sentence(job.last_error) if job.last_error else "an attempt failed"
    message = (
        f"It waits for attempt {attempt} of {job.max_attempts}, due at {when}, because of: "
        f"{because}."
    )
    return _Found(Reason.RETRY_LATER, message, facts)


def _of_workers(seen: Situation, detail: Detail) -> _Found | None:
    job, alive = seen.job, _alive(seen)
    facts: dict[str, Any] = {
        "job_type": job.job_type,
        "queue": job.queue,
        "worker_capability": job.worker_capability,
    }
    if not alive:
        return _Found(Reason.NO_WORKER, "No worker is alive; start one.", facts)
    nearest = min(alive, key=lambda one: _misses(one, job))
    if any(missing := _misses(nearest, job)):
        names = [name for name, misses in zip(_PARTS, missing, strict=True) if misses]
        if detail.has_workers:
            facts |= {"nearest_worker": _worker(nearest), "missing": names}
        return _Found(_UNSERVED[names[0]], _unserved(job, nearest, names, detail), facts)
    serving = _serving(seen)
    if serving:
        return None
    if detail.has_workers:
        facts |= {"workers": [one.id for one in alive if not any(_misses(one, job))]}
    able = [one for one in alive if not any(_misses(one, job))]
    if drained := [one for one in able if one.drained_at is not None]:
        message = "Every worker that could run it is drained; resume one with `forge workers resume"
        message += f" {drained[0].id}`." if detail.has_workers else "`."
        return _Found(Reason.WORKERS_DRAINING, message, facts)
    message = "Every worker that could run it is draining and claims nothing more; start another."
    return _Found(Reason.WORKERS_DRAINING, message, facts)


_PARTS = ("type", "queue", "capability")
_UNSERVED = {
    "type": Reason.NO_WORKER_FOR_TYPE,
    "queue": Reason.NO_WORKER_FOR_QUEUE,
    "capability": Reason.NO_WORKER_FOR_CAPABILITY,
}


def _unserved(job: JobRecord, nearest: WorkerFacts, missing: list[str], detail: Detail) -> str:
    match missing[0]:
        case "type":
            message = f"No live worker has the job type {job.job_type}"
            advice = "start a worker whose app registers it"
        case "queue":
            message = f"No live worker with the job type {job.job_type} serves queue {job.queue}"
            advice = f"start a worker with --queue {job.queue}"
        case _:
            message = (
                f"No live worker with the job type {job.job_type} in queue {job.queue} has the "
                f"capability {job.worker_capability}"
            )
            advice = f"start a worker with --capability {job.worker_capability}"
    if detail.has_workers:
        message += f"; the nearest, {nearest.name}, lacks its {' and its '.join(missing)}"
    return f"{message}; {advice}."


def _misses(worker: WorkerFacts, job: JobRecord) -> tuple[bool, bool, bool]:
    """Return whether a worker lacks the type, the queue and the capability of a job."""
    if job.queue == BUILTIN_QUEUE:
        group = worker_group_name(worker.capabilities, worker.queues)
        return False, False, job.worker_capability not in (None, group)
    return (
        job.job_type not in worker.job_types,
        worker.queues is not None and job.queue not in worker.queues,
        job.worker_capability is not None and job.worker_capability not in worker.capabilities,
    )


def _of_lane(seen: Situation, detail: Detail) -> _Found:
    serving = _serving(seen)
    running = sum(one.running for one in serving)
    slots = sum(one.max_concurrent for one in serving)
    facts: dict[str, Any] = {"due_at": seen.job.scheduled_at}
    if detail.has_workers:
        facts |= {"slots_in_use": running, "slots": slots, "workers": len(serving)}
    if seen.ahead:
        return _behind(seen, detail, facts)
    if running >= slots:
        in_use = f": all {slots} are in use" if detail.has_workers else ""
        message = f"It is the next of its lane and waits for a free slot{in_use}."
        return _Found(Reason.NO_FREE_SLOT, message, facts)
    message = "It is the next of its lane; a worker starts it when it looks for work again."
    return _Found(Reason.NEXT, message, facts)


def _behind(seen: Situation, detail: Detail, facts: dict[str, Any]) -> _Found:
    is_capped = seen.ahead >= MAX_AHEAD
    eta = estimate(seen.ahead, seen.due_in, seen.starts, is_capped=is_capped)
    place = seen.ahead + 1
    if not detail.is_exact:
        eta = eta and coarse(eta)
        place = MAX_AHEAD if is_capped else coarse_place(place)
    precision = "at_least" if is_capped else "exact" if detail.is_exact else "at_most"
    facts |= {"position": {"count": place, "precision": precision}}
    if eta is not None:
        high = None if eta.high is None else round(eta.high, 3)
        facts |= {"eta_seconds": {"low": round(eta.low, 3), "high": high}}
    count = {
        "exact": f"{seen.ahead:,} job{'s are' if seen.ahead > 1 else ' is'}",
        "at_least": f"At least {MAX_AHEAD:,} jobs are",
        "at_most": f"Fewer than {place:,} jobs are",
    }[precision]
    message = f"{count} ahead of it in its lane; {_start(eta)}."
    return _Found(Reason.JOBS_AHEAD, message, facts)


def _start(eta: Eta | None) -> str:
    if eta is None:
        return "no job of its lane started in the last ten minutes, so there is no estimate"
    if eta.high is None:
        return f"at the pace of the last minutes it starts in more than {approximate(eta.low)}"
    between = f"{approximate(eta.low)} and {approximate(eta.high)}"
    return f"at the pace of the last minutes it starts in between {between}"


def _alive(seen: Situation) -> list[WorkerFacts]:
    return [one for one in seen.workers if one.silent_for < seen.deadlines.dead_after]


def _serving(seen: Situation) -> list[WorkerFacts]:
    """Return the live workers that claim jobs of this lane."""
    alive = _alive(seen)
    return [one for one in alive if one.claims and not any(_misses(one, seen.job))]


def _worker(worker: WorkerFacts) -> dict[str, Any]:
    return {
        "id": worker.id,
        "hostname": worker.hostname,
        "pid": worker.pid,
        "queues": None if worker.queues is None else [*worker.queues],
        "capabilities": [*worker.capabilities],
    }


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
