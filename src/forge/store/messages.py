"""What is asked about jobs that messages name."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.store.statement import Rows, Statement, load
from forge.store.workers import Registration


class Standing(NamedTuple):
    """Where a job stands, for whoever holds a message about it."""

    id: UUID
    status: str
    lease: int
    worker_id: UUID | None
    job_type: str
    queue: str
    worker_capability: str | None
    due_in: float
    owner_lives: bool


class Reclaimed(Job):
    """A job whose former owner died while it ran it."""

    # For how many seconds that one had run it when it was found dead.
    ran_for: float


def claim(
    job_ids: Sequence[UUID],
    worker: Registration,
    *,
    dead_after: float | None,
    locked_timeout: float,
) -> Statement[list[Job]]:
    """Claim jobs by id; `dead_after` is None for a worker that may not judge others."""
    who = (worker.id, worker.incarnation, worker.job_types, worker.queues, worker.capabilities)
    args = (list(job_ids), *who, dead_after, locked_timeout)
    return Statement(load("messages/claim"), args, _jobs)


def standing(job_ids: Sequence[UUID], dead_after: float) -> Statement[dict[UUID, Standing]]:
    return Statement(load("messages/standing"), (list(job_ids), dead_after), _standings)


def _jobs(found: Rows) -> list[Job]:
    return [_job(*row) for row in found]


def _job(*fields: Any) -> Job:
    *known, ran_for = fields
    if ran_for is None:
        return Job._make(known)
    job = Reclaimed._make(known)
    job.ran_for = ran_for
    return job


def _standings(found: Rows) -> dict[UUID, Standing]:
    return {row["id"]: Standing(**row) for row in found}
