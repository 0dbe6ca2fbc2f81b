"""Jobs that were fetched ahead: they wait in the worker for a slot, though not for long."""

from collections import deque
from collections.abc import Iterable
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


class Ahead:
    """The first come is the first served."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def jobs(self) -> list[Job]:
        return [waiting.job for waiting in self._waiting]

    def add(self, waiting: Iterable[Waiting]) -> None:
        self._waiting.extend(waiting)

    def next(self) -> Waiting:
        return self._waiting.popleft()

    def forget(self, job_id: UUID) -> None:
        """A job is no longer this worker's."""
        self._waiting = deque(waiting for waiting in self._waiting if waiting.job.id != job_id)

    def take_overdue(self, now: float) -> list[Job]:
        """Take out the jobs that have waited too long: somebody else may have room."""
        overdue = []
        while self._waiting and self._waiting[0].since <= now - 5 * LONGEST_WAIT:
            overdue.append(self._waiting.popleft().job)
        return overdue

    def take_all(self) -> list[Job]:
        jobs, self._waiting = self.jobs, deque()
        return jobs
