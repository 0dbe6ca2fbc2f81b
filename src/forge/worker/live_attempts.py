"""The attempts of a worker: at most one of each job or schedule runs, the next one waits."""

from collections.abc import Callable
from uuid import UUID

from forge.worker.attempt import Attempt, Stop


class LiveAttempts(dict[tuple[UUID, int], Attempt]):
    """Every attempt that has not ended, by `(id, lease)`.

    A worker may claim a job again whose former attempt still runs in it: after a rescue by another
    worker, or after the handler completed a schedule's run in its own transaction and goes on.
    """

    def __init__(self, run: Callable[[Attempt], None]) -> None:
        super().__init__()
        self._run = run
        # By job: the attempt whose handler runs, and the newest one that waits for its end.
        self._current: dict[UUID, Attempt] = {}
        self._next: dict[UUID, Attempt] = {}

    def has_job(self, job_id: UUID) -> bool:
        return job_id in self._current

    def add(self, attempt: Attempt) -> None:
        """Run an attempt, after the former one of its job if that has not ended."""
        job = attempt.job
        self[job.id, job.lease] = attempt
        if (former := self._current.setdefault(job.id, attempt)) is attempt:
            self._run(attempt)
        else:
            self._wait(attempt, former)

    def remove(self, attempt: Attempt) -> None:
        """Forget an attempt that has ended; the next one of its job has its turn."""
        job = attempt.job
        del self[job.id, job.lease]
        if self._current.get(job.id) is not attempt:
            return
        if (following := self._next.pop(job.id, None)) is None:
            del self._current[job.id]
            return
        self._current[job.id] = following
        following.interrupt = None
        self._run(following)

    def let_go(self, job_id: UUID, lease: int) -> None:
        """Stop an attempt whose lease is over."""
        attempt = self.get((job_id, lease))
        # A handler that has completed its job itself may finish its own work.
        if attempt is not None and not attempt.context.completed:
            attempt.context.cancelled = True
            attempt.ask_to_stop(Stop.CANCELLED)

    def _wait(self, attempt: Attempt, former: Attempt) -> None:
        superseded = self._next.get(attempt.job.id)
        for old in (former, superseded):
            if old is not None:
                self.let_go(old.job.id, old.job.lease)
        self._next[attempt.job.id] = attempt
        # Asked to stop before its turn, it ends at once, and its handler never runs.
        attempt.interrupt = lambda why: self._give_up(attempt)

    def _give_up(self, attempt: Attempt) -> None:
        if self._next.get(attempt.job.id) is attempt:
            del self._next[attempt.job.id]
            attempt.interrupt = None
            self._run(attempt)
