"""Events of jobs and workers; logging, metrics and the live feed listen to them."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import Ack, Completion, Outcome, Returned


class AttemptEnded(NamedTuple):
    """An attempt ended with an outcome; `ack` is what happens to its job."""

    job: Job
    outcome: Outcome
    ack: Ack
    seconds: float


class AttemptStopped(NamedTuple):
    """An attempt was stopped because its job was cancelled or another worker owns it.

    `status` is the job's status afterwards; None for a deleted job or a schedule run.
    """

    job: Job
    seconds: float
    status: Status | None


class AttemptLost(NamedTuple):
    """An attempt ended because its worker died; emitted by the worker that rescued the job.

    `seconds` are from its start until the rescue.
    """

    id: UUID
    type: str
    queue: str
    attempt: int
    crashes: int
    tenant_id: int | None
    correlation_id: UUID | None
    seconds: float


class AttemptRefused(NamedTuple):
    """The database rejected a write of an attempt that no longer owned its job."""

    job_id: UUID
    lease: int
    act: str


class JobsRescued(NamedTuple):
    """Jobs were rescued from workers that died."""

    job_ids: tuple[UUID, ...]
    workers: tuple[UUID, ...]


class WorkerNotice(NamedTuple):
    """Something happened to a worker that its operator should know."""

    level: str
    message: str
    detail: dict[str, Any]


class WorkerAlive(NamedTuple):
    """A worker's heartbeat thread runs; emitted by it at each interval, also in an outage."""


class PayloadDoubted(NamedTuple):
    """A payload has questionable content; it was dispatched anyway."""

    job_type: str
    path: str
    message: str


class ClientDropped(NamedTuple):
    """The server closed connections for a reason; `client` is the address of one of them."""

    reason: str
    client: str | None
    connections: int


class ExternalCall(NamedTuple):
    """A call to another service ended; `target` is its object, such as a bucket."""

    service: str
    operation: str
    target: str | None
    seconds: float
    error_code: str | None


Event = (
    AttemptEnded
    | AttemptLost
    | AttemptStopped
    | AttemptRefused
    | ClientDropped
    | ExternalCall
    | JobsRescued
    | PayloadDoubted
    | WorkerAlive
    | WorkerNotice
)
EventListener = Callable[[Event], None]
# Called with an attempt in progress, and its start by the worker's monotonic clock.
BeginListener = Callable[[Job, float], None]
# Called with a successful attempt, its duration, and its start unless a BeginListener was called
# with it. It is called for every job: it must be fast, and must not raise.
CompletionListener = Callable[[Job, float, float | None], None]


class Events:
    """Passes each event to every listener; costs nothing if there are none."""

    def __init__(self) -> None:
        self.listeners: list[EventListener] = []
        # Begins and completions are passed without an event object, whose creation would cost a
        # small job more than the listener itself.
        self.begin_listeners: list[BeginListener] = []
        self.completion_listeners: list[CompletionListener] = []
        # Called with every event except completions.
        self.other_listeners: list[EventListener] = []

    def emit(self, event: Event) -> None:
        self._call((*self.listeners, *self.other_listeners), event)

    def _call(self, listeners: Sequence[EventListener], event: Event) -> None:
        for listener in listeners:
            try:
                listener(event)
            except Exception:
                # A failing listener must not affect the job.
                logging.getLogger("forge").exception(
                    "a listener failed on event %s", type(event).__name__
                )

    def began(self, job: Job, when: float) -> None:
        """Report an attempt that is in progress, or ended other than successfully."""
        for listener in self.begin_listeners:
            listener(job, when)

    def completed(
        self, job: Job, outcome: Returned, ack: Completion, seconds: float, began: float | None
    ) -> None:
        """Report a successful attempt; the event is created only if there are listeners for it."""
        for listener in self.completion_listeners:
            listener(job, seconds, began)
        if self.listeners:
            self._call(self.listeners, AttemptEnded(job, outcome, ack, seconds))

    def notice(self, level: str, message: str, **detail: Any) -> None:
        self.emit(WorkerNotice(level, message, detail))
