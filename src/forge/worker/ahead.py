"""Jobs that were fetched ahead: they wait in the worker for a slot, though not for long."""

from collections import deque
from typing import NamedTuple
from uuid import UUID

from forge.core.job import Job

# Jobs are fetched ahead only as long as they would wait no longer than this for a slot.
LONGEST_WAIT = 0.1


class Waiting(NamedTuple):
    """A job, since when it waits, and whether the database has it as running already."""

    job: Job
    since: float
    is_started: bool


class Ahead(deque[Waiting]):
    """The first come is the first served."""

    @property
    def jobs(self) -> list[Job]:
        return [waiting.job for waiting in self]

    def forget(self, job_id: UUID, lease: int) -> None:
        """Drop a job whose lease is over; a later lease of the same job stays."""
        kept = [w for w in self if (w.job.id, w.job.lease) != (job_id, lease)]
        self.clear()
        self.extend(kept)

    def take_overdue(self, now: float) -> list[Job]:
        """Take out the jobs that have waited too long: somebody else may have room."""
        overdue = []
        while self and self[0].since <= now - 5 * LONGEST_WAIT:
            overdue.append(self.popleft().job)
        return overdue

    def take_all(self) -> list[Job]:
        jobs = self.jobs
        self.clear()
        return jobs
