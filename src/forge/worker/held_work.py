"""What a worker holds: attempts that run, and jobs that wait here for a slot."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.store.workers import Drain
from forge.worker.attempts import Attempt, LiveAttempts
from forge.worker.work_source import WorkSource

# Jobs are fetched ahead only if they are expected to get a slot within this many seconds.
LONGEST_WAIT = 0.1
# How many seconds an attempt is expected to take before any has ended.
SLOW = 1.0


class FetchedJob(NamedTuple):
    """A job, since when it waits, and whether the database has it as running already."""

    job: Job
    source: WorkSource[Any]
    since: float
    is_started: bool


class HeldJob(NamedTuple):
    """One claim of this worker."""

    source: WorkSource[Any]
    job_id: UUID
    lease: int


class HeldWork:
    """All that this worker has claimed and not ended."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.running = LiveAttempts()
        # In the order in which they get slots.
        self.ahead: deque[FetchedJob] = deque()
        # How many attempts run beside the slots: short built-in jobs.
        self.beside_slots = 0
        # How many seconds the last attempts took.
        self.mean_seconds = SLOW
        # Whether the jobs that wait here get no more slots.
        self.is_closed = False
        # Whether an operator has this worker claim nothing.
        self.drain = Drain()

    def change_drain(self, drain: Drain) -> None:
        """Note what an operator asks of this worker: to claim nothing, or to claim again."""
        self.drain = drain

    @property
    def is_drained(self) -> bool:
        return bool(self.drain)

    @property
    def slots_taken(self) -> int:
        return len(self.running) - self.beside_slots

    def attempts(self) -> list[Attempt]:
        """Return a copy, for other threads, too."""
        return list(self.running.values())

    def running_types(self) -> list[str]:
        return sorted(attempt.job.type for attempt in self.attempts())

    def all(self) -> list[HeldJob]:
        """Return every claim that this worker holds."""
        running = [HeldJob(attempt.source, *key) for key, attempt in self.running.items()]
        return running + [HeldJob(w.source, w.job.id, w.job.lease) for w in self.ahead]

    def holds(self, source: WorkSource[Any], job_id: UUID, lease: int) -> bool:
        """Whether this worker holds a claim of this source."""
        if (attempt := self.running.get((job_id, lease))) is not None:
            return attempt.source is source
        ahead = (waiting.job for waiting in self.ahead if waiting.source is source)
        return any((job.id, job.lease) == (job_id, lease) for job in ahead)

    def let_go(self, job_id: UUID, lease: int) -> None:
        """Stop or drop a job whose lease has ended; a later lease of the same job stays."""
        self.running.let_go(job_id, lease)
        if self.ahead:
            kept = [w for w in self.ahead if (w.job.id, w.job.lease) != (job_id, lease)]
            self.ahead.clear()
            self.ahead.extend(kept)

    def release_overdue(self, now: float) -> bool:
        """Release the jobs that have waited too long: another worker may have a slot."""
        is_any = False
        while self.ahead and self.ahead[0].since <= now - 5 * LONGEST_WAIT:
            self._release_first()
            is_any = True
        if is_any:  # the quick attempts before say nothing about these
            self.mean_seconds = max(self.mean_seconds, SLOW)
        return is_any

    def release_ahead(self) -> None:
        """Release every job that waits for a slot."""
        while self.ahead:
            self._release_first()

    def release_covered(self, is_paused: Callable[[Job], bool]) -> None:
        """Release the jobs that wait for a slot and are paused."""
        for _ in range(len(self.ahead)):
            if is_paused(self.ahead[0].job):
                self._release_first()
            else:
                self.ahead.rotate(-1)

    def _release_first(self) -> None:
        job, source, *_ = self.ahead.popleft()
        source.release(job)
