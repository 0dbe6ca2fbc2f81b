"""Statements on jobs that messages name."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.store.jobs import read_jobs
from forge.store.statement import Rows, Statement, load
from forge.store.workers import Registration


class MessageJobStatus(NamedTuple):
    """The status of a job that a message names."""

    id: UUID
    status: str
    lease: int
    worker_id: UUID | None
    job_type: str
    queue: str
    worker_capability: str | None
    due_in: float
    owner_lives: bool
    is_paused: bool


class Reclaimed(Job):
    """A job whose former owner died while running it."""

    # How many seconds the former owner had run it when it was declared dead.
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


def standing(job_ids: Sequence[UUID], dead_after: float) -> Statement[dict[UUID, MessageJobStatus]]:
    return Statement(load("messages/standing"), (list(job_ids), dead_after), _standings)


def _jobs(found: Rows) -> list[Job]:
    return [
        _reclaimed(job, row["ran_for"]) for job, row in zip(read_jobs(found), found, strict=True)
    ]


def _reclaimed(job: Job, ran_for: float | None) -> Job:
    if ran_for is None:
        return job
    reclaimed = Reclaimed._make(job)
    reclaimed.ran_for = ran_for
    return reclaimed


def _standings(found: Rows) -> dict[UUID, MessageJobStatus]:
    return {row["id"]: MessageJobStatus(**row) for row in found}
