"""What becomes of a message whose job this worker could not claim; the table is in the docs."""

from dataclasses import dataclass
from uuid import UUID

from forge.core.lifecycle import FINAL, OWNED
from forge.store.messages import Standing
from forge.store.workers import Registration
from forge.transports.sqs.queues import LONGEST_DELAY

# For whoever else can run the job; not at once, or the same worker receives it again and again.
FOR_ANOTHER = 5.0
# A row that somebody holds at this moment is free in the next.
IN_A_MOMENT = 1.0


@dataclass(frozen=True, slots=True)
class Delete:
    """The message has nothing to say any more."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The message is shown again after so many seconds; None: when its time is over."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Hold:
    """The job is due in these seconds, fewer than SQS can delay for: claim it then."""

    seconds: float


def judge(job: Standing | None, worker: Registration) -> Delete | Leave | Hold:
    """Decide about a message by where its job stands."""
    if job is None or job.status in FINAL:
        return Delete()
    if job.status in OWNED:
        # Should its owner die, the rescue makes the job wait again, and that sends a new message.
        return Delete() if job.owner_lives else Leave(None)
    if job.due_in > LONGEST_DELAY:
        return Delete()  # the outbox has its time
    if job.due_in > 0:
        return Hold(job.due_in) if job.due_in < 1 else Leave(job.due_in)
    return Leave(IN_A_MOMENT if can_run(worker, job) else FOR_ANOTHER)


def can_run(worker: Registration, job: Standing) -> bool:
    """Whether a worker has what a job needs."""
    return (
        job.job_type in worker.job_types
        and (worker.queues is None or job.queue in worker.queues)
        and (job.worker_capability is None or job.worker_capability in worker.capabilities)
    )


def is_over(job: Standing | None, worker_id: UUID, lease: int) -> bool:
    """Whether an attempt's end is in the database, or the job is another's by now."""
    return job is None or not (
        job.status in OWNED and job.worker_id == worker_id and job.lease == lease
    )
