"""What became of the attempts of a drain, with the errors that their handlers raised."""

from typing import NamedTuple
from uuid import UUID

from forge.app import Forge
from forge.core.errors import JobFailed
from forge.core.events import AttemptEnded, AttemptStopped, Event, WorkerNotice
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import Completion, Crashed, Failure, Raised, Settlement, Snoozed
from forge.core.schedules.run import NO_QUEUE
from forge.definitions.error_classification import Classifier
from forge.telemetry.logs.attempt_records import CURRENT_JOB


class EndedAttempt(NamedTuple):
    """One attempt at a job, or one run of a schedule, and how it ended.

    `outcome` is completed, retry, failed, dead_letter, snoozed, cancelled, released or lost.
    """

    job_id: UUID
    type: str
    attempt: int
    outcome: str
    error: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.type} {self.job_id}, attempt {self.attempt}: {self.outcome}"


class AttemptMemory:
    """Listens to an app while it is open."""

    def __init__(self, app: Forge) -> None:
        self._events = app.events
        self._errors = ErrorMemory(app.classifier)
        app.classifier = self._errors
        self.attempts: list[EndedAttempt] = []
        # What a worker would log as an error of its own.
        self.faults: list[str] = []

    def open(self) -> None:
        self._events.listeners.append(self._note)

    def close(self) -> None:
        self._events.listeners.remove(self._note)

    def _note(self, event: Event) -> None:
        if isinstance(event, WorkerNotice) and event.level == "error":
            self.faults.append(f"{event.message}: {event.detail}")
        elif isinstance(event, AttemptStopped):
            status = event.status or Status.CANCELLED
            self._add(event.job, status)
        elif isinstance(event, AttemptEnded):
            outcome = _outcome(event)
            self._add(event.job, outcome, self._error(event, outcome))

    def _add(self, job: Job, outcome: str, error: BaseException | None = None) -> None:
        self.attempts.append(EndedAttempt(job.id, job.type, job.attempt, str(outcome), error))

    def _error(self, event: AttemptEnded, outcome: str) -> BaseException | None:
        job = event.job
        match event.outcome:
            case Raised(failure):
                raised = self._errors.raised.pop((job.id, job.lease), None)
                return raised or _failed(job, outcome, failure)
            case Crashed(how):
                return JobFailed(f"the process of {job.type} {job.id} died: {how}")
        ended = event.ack
        if isinstance(ended, Settlement) and ended.status.is_final:
            return JobFailed(f"{job.type} {job.id} ended as {outcome}: {ended.message}")
        return None


class ErrorMemory(Classifier):
    """Keeps the errors of handlers by attempt: the worker goes on with their text alone."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self._classifier = classifier
        self.raised: dict[tuple[UUID, int], BaseException] = {}

    def failure(self, error: BaseException) -> Failure:
        if (job := CURRENT_JOB.get(None)) is not None:
            self.raised[job.id, job.lease] = error
        return self._classifier.failure(error)


def _outcome(event: AttemptEnded) -> str:
    if isinstance(event.ack, Completion):
        return "completed"
    if event.job.queue == NO_QUEUE and event.ack.outcome is not None:
        return event.ack.outcome  # of a run: its row goes on
    if isinstance(event.outcome, Snoozed):
        return "snoozed"
    return event.ack.outcome or event.ack.status


def _failed(job: Job, outcome: str, failure: Failure) -> JobFailed:
    """Return the error of a handler that ran in another process."""
    error = JobFailed(
        f"{job.type} {job.id} ended as {outcome}: {failure.exception}: {failure.message}"
    )
    if failure.trace:
        error.add_note(failure.trace)
    return error
