"""What a transport reaches of a worker."""

from collections.abc import Sequence
from time import monotonic
from uuid import UUID

from forge.core.job import Job
from forge.core.workers.lanes import Claims
from forge.store.connection.waiting import Signal
from forge.store.workers import Registration
from forge.worker.claimer import Claimer
from forge.worker.job_source import JobSource
from forge.worker.loops import WorkSignals
from forge.worker.reconcile import Recheck
from forge.worker.runner import Runner


class TransportPort:
    """Takes wake-ups, and jobs that arrived by message."""

    def __init__(
        self,
        jobs: JobSource,
        runner: Runner,
        claimer: Claimer,
        recheck: Recheck,
        signals: WorkSignals,
    ) -> None:
        self._jobs = jobs
        self._runner = runner
        self._held = runner.held
        self._claimer = claimer
        self._limits = claimer.limits
        self._recheck = recheck
        self._signals = signals

    @property
    def registration(self) -> Registration:
        return self._jobs.worker

    @property
    def claims(self) -> Claims:
        return self._limits.claims

    @property
    def room_changed(self) -> Signal:
        return self._signals.room_changed

    def wake(self, *, for_builtin_jobs: bool) -> None:
        self._claimer.wake(for_builtin_jobs=for_builtin_jobs)

    def recheck(self, job_id: UUID, lease: int) -> None:
        self._recheck.add(job_id, lease)

    def room(self) -> int:
        return self._held.slots - self._held.slots_taken - len(self._held.ahead)

    def is_full(self) -> bool:
        return self._held.slots_taken >= self._held.slots

    def is_drained(self) -> bool:
        return self._held.is_drained

    def may_claim(self) -> bool:
        return self._limits.may_claim()

    def may_judge(self) -> bool:
        return self._limits.liveness.may_judge()

    def database_time(self) -> float:
        return monotonic() + self._limits.liveness.clock.ahead

    def start(self, job: Job) -> None:
        self._runner.start(job, self._jobs)

    def release(self, job: Job) -> None:
        self._jobs.release(job)

    def claimed(self, jobs: Sequence[Job]) -> None:
        self._jobs.claimed(jobs)
