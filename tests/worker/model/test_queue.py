"""The queue against a model of it: any order of verbs, on the real database."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from forge.core.job import Job
from forge.core.job_type import JobType
from forge.core.lifecycle import OWNED, WAITING, Status
from forge.core.new_job import make_new_job
from forge.core.outcome import (
    Completion,
    Crashed,
    Failure,
    Policy,
    Raised,
    Released,
    Snoozed,
    settle,
)
from forge.store import jobs, pauses
from forge.store.ids import new_id
from forge.store.pauses import NewPause
from forge.store.workers import Registration
from tests.store.placing import claim, registered
from tests.worker.model.machine import DatabaseMachine, run_machine

PRIORITIES = (0, 25, 50, 75, 100)
POLICY = Policy(None, True, 3)
# Time is counted in hours and moved in the rows, so that the seconds a test takes do not matter.
POSTPONE = "update forge_jobs set scheduled_at = now() + interval '1 hour' where id = $1"
SHIFT = "update forge_jobs set scheduled_at = scheduled_at - make_interval(hours => $1)"
SHIFT_PAUSES = "update forge_pauses set until = until - make_interval(hours => $1)"
# What a pause names, and whether it covers the jobs of this model.
TARGETS = {("work", None): True, (None, "default"): True, ("work", "other"): False}


@dataclass
class Modelled:
    """What the model knows of one job."""

    priority: int
    due_in: int
    status: Status = Status.PENDING
    lease: int = 0
    attempts: int = 0
    crashes: int = 0
    suspect: bool = False
    owner: UUID | None = None


class QueueMachine(DatabaseMachine):
    """Drives the database and the model together, and compares them after every step."""

    attempts = Bundle("attempts")

    @initialize()
    def begin(self) -> None:
        self.model: dict[UUID, Modelled] = {}
        self._fetch("truncate forge_jobs, forge_attempts, forge_dead_letters, forge_workers")
        self._fetch("truncate forge_pauses")
        self.pauses: dict[tuple[str | None, str | None], int | None] = {}
        self.workers = [self._await(registered(self.database)) for _ in range(2)]

    @rule(priority=st.sampled_from(PRIORITIES), due_in=st.sampled_from([0, 0, 2, 5]))
    def dispatch(self, priority: int, due_in: int) -> None:
        new_job = make_new_job(JobType("work"), {"priority": priority, "delay": f"{due_in}h"})
        (made,) = self._run(jobs.dispatch([new_id()], ["{}"], new_job))
        self.model[made.id] = Modelled(priority, due_in)

    @rule(target=attempts, who=st.integers(0, 1), limit=st.integers(1, 4), start=st.booleans())
    def claim(self, who: int, limit: int, start: bool) -> Any:
        worker: Registration = self.workers[who]
        taken: list[Job] = self._await(claim(self.database, worker, limit, start=start))

        due = [m for m in self.model.values() if m.status in WAITING and m.due_in <= 0]
        assert len(taken) == (0 if self._is_paused() else min(limit, len(due)))
        for job in taken:
            known = self.model[job.id]
            assert known.status in WAITING
            assert known.due_in <= 0
            known.status = Status.RUNNING if start else Status.CLAIMED
            known.lease, known.attempts, known.owner = (
                known.lease + 1,
                known.attempts + 1,
                worker.id,
            )
            assert (job.lease, job.attempt, job.crashes, job.is_suspect) == (
                known.lease,
                known.attempts,
                known.crashes,
                known.suspect,
            )
        return multiple(*taken)

    @rule(what=st.sampled_from(sorted(TARGETS, key=str)), hours=st.sampled_from([None, 1, 3]))
    def pause(self, what: tuple[str | None, str | None], hours: int | None) -> None:
        lasts = None if hours is None else timedelta(hours=hours)
        new = NewPause(new_id(), *what, None, lasts, "a reason", None)
        assert self._run(pauses.add(new)) is not None
        self.pauses[what] = hours

    @rule(what=st.sampled_from(sorted(TARGETS, key=str)))
    def resume(self, what: tuple[str | None, str | None]) -> None:
        removed = self._run(pauses.remove(None, *what, None, None))
        assert (removed is not None) == (what in self.pauses)
        self.pauses.pop(what, None)

    @rule(job=attempts)
    def start(self, job: Job) -> None:
        done = self._run(jobs.start([job]))
        self._moved(job, done, {Status.CLAIMED}, Status.RUNNING)

    @rule(job=consumes(attempts))
    def complete(self, job: Job) -> None:
        done = self._run(jobs.complete([Completion(job.id, job.lease, '{"ok": true}')]))
        self._moved(job, done, {Status.RUNNING}, Status.COMPLETED)

    @rule(job=consumes(attempts), is_final=st.booleans())
    def fail(self, job: Job, is_final: bool) -> None:
        failure = Failure("ValueError", "no", "", "non_retryable" if is_final else None)
        ack = settle(job, Raised(failure), POLICY, 0.0)
        assert not isinstance(ack, Completion)
        known = self._moved(job, self._settle(ack), {Status.RUNNING}, ack.status)
        if known is not None and ack.status is Status.RETRY:
            self._fetch(POSTPONE, job.id)
            known.due_in = 1

    @rule(job=consumes(attempts), hours=st.integers(1, 3))
    def snooze(self, job: Job, hours: int) -> None:
        ack = settle(job, Snoozed(timedelta(hours=hours)), POLICY, 0.0)
        known = self._moved(job, self._settle(ack), {Status.RUNNING}, Status.PENDING)
        if known is not None:
            known.attempts, known.due_in = known.attempts - 1, hours

    @rule(job=consumes(attempts))
    def lose(self, job: Job) -> None:
        """The database goes away under the handler."""
        gone = Failure("asyncpg.ConnectionDoesNotExistError", "gone", "", is_loss=True)
        ack = settle(job._replace(crashes=0), Raised(gone), POLICY, 0.0)
        known = self._moved(job, self._settle(ack), {Status.RUNNING}, Status.RETRY)
        if known is not None:
            self._fetch(POSTPONE, job.id)
            known.attempts, known.crashes, known.due_in = known.attempts - 1, known.crashes + 1, 1

    @rule(job=consumes(attempts))
    def die_alone(self, job: Job) -> None:
        ack = settle(job._replace(lone_crashes=0), Crashed("exit code 7"), POLICY, 0.0)
        known = self._moved(job, self._settle(ack), {Status.RUNNING}, Status.RETRY)
        if known is not None:
            self._fetch(POSTPONE, job.id)
            known.attempts, known.crashes, known.due_in = known.attempts - 1, known.crashes + 1, 1
            known.suspect = True

    @rule(job=consumes(attempts), has_begun=st.booleans())
    def release(self, job: Job, has_begun: bool) -> None:
        ack = settle(job, Released(has_begun), POLICY, 0.0)
        known = self._moved(job, self._settle(ack), set(OWNED), Status.PENDING)
        if known is not None:
            known.attempts, known.crashes = known.attempts - 1, known.crashes + has_begun

    @rule(who=st.integers(0, 1))
    def rescue(self, who: int) -> None:
        owner = self.workers[who].id
        found = self._run(jobs.rescue([owner], None, dead_after=0, stale_after=0, limit=100))
        lost = {id for id, m in self.model.items() if m.status in OWNED and m.owner == owner}
        assert {row["id"] for row in found} == lost
        for known in map(self.model.__getitem__, lost):
            known.crashes += 1
            known.suspect |= known.status is Status.RUNNING
            known.status, known.due_in = Status.RETRY, 0
            known.attempts -= 1

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if not self.model:
            return
        job_id = list(self.model)[data.draw(st.integers(0, len(self.model) - 1))]
        known = self.model[job_id]
        found = self._run(jobs.cancel([job_id], None, None))
        assert [row["id"] for row in found] == ([] if known.status.is_final else [job_id])
        if not known.status.is_final:
            known.status = Status.CANCELLED

    @rule(hours=st.integers(1, 3))
    def time_passes(self, hours: int) -> None:
        self._fetch(SHIFT, hours)
        self._fetch(SHIFT_PAUSES, hours)
        left = {t: None if h is None else h - hours for t, h in self.pauses.items()}
        self.pauses = {t: h for t, h in left.items() if h is None or h > 0}
        for known in self.model.values():
            known.due_in -= hours

    @invariant()
    def the_database_and_the_model_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        found = self._fetch(
            "select id, status, lease, attempts, crashes, suspect, priority from forge_jobs"
        )
        assert {row["id"]: tuple(row)[1:] for row in found} == {
            id: (m.status, m.lease, m.attempts, m.crashes, m.suspect, m.priority)
            for id, m in self.model.items()
        }
        assert {(p.type, p.queue) for p in self._run(pauses.current())} == set(self.pauses)
        letters = self._fetch("select job_id from forge_dead_letters")
        assert {row["job_id"] for row in letters} == {
            id for id, m in self.model.items() if m.status is Status.DEAD_LETTER
        }

    def _moved(
        self, job: Job, done: list[UUID], sources: set[Status], end: Status
    ) -> Modelled | None:
        """Move the job in the model too, if this attempt still has the right to."""
        known = self.model[job.id]
        if known.lease != job.lease or known.status not in sources:
            assert done == []
            return None
        assert done == [job.id]
        known.status = end
        return known

    def _is_paused(self) -> bool:
        return any(TARGETS[target] for target in self.pauses)

    def _settle(self, ack: Any) -> list[UUID]:
        return self._run(jobs.settle([ack]))


def test_any_order_of_verbs_leaves_the_database_as_the_model_says(database_url: str) -> None:
    run_machine(QueueMachine, database_url, examples=150)
