"""Facts: each act emits one, and logging, metrics and the browser are listeners."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import Ack, Completion, Outcome, Returned


class AttemptEnded(NamedTuple):
    """An attempt came to an outcome, and this is what was decided about its job."""

    job: Job
    outcome: Outcome
    ack: Ack
    seconds: float


class AttemptStopped(NamedTuple):
    """An attempt was stopped because its job was cancelled or another worker has it.

    `status` is the job's status after that; None for a deleted job or the run of a schedule.
    """

    job: Job
    seconds: float
    status: Status | None


class AttemptLost(NamedTuple):
    """An attempt ended with its worker, which cannot tell; whoever took its job back does.

    `seconds` are from its start until it was missed.
    """

    id: UUID
    type: str
    attempt: int
    crashes: int
    tenant_id: int | None
    correlation_id: UUID | None
    seconds: float


class AttemptRefused(NamedTuple):
    """The database refused a write of an attempt that had lost its job."""

    job_id: UUID
    lease: int
    act: str


class JobsRescued(NamedTuple):
    """Jobs were taken back from workers that died."""

    job_ids: tuple[UUID, ...]
    workers: tuple[UUID, ...]


class WorkerNotice(NamedTuple):
    """Something happened to a worker that its operator may want to know."""

    level: str
    message: str
    detail: dict[str, Any]


class PayloadDoubted(NamedTuple):
    """A payload holds what had better not be there; it was dispatched all the same."""

    job_type: str
    path: str
    message: str


class ClientDropped(NamedTuple):
    """The server closed connections for this reason; `client` is the address of one of them."""

    reason: str
    client: str | None
    connections: int


class ExternalCall(NamedTuple):
    """A call to another service has ended; `target` is what it was about, such as a bucket."""

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
    | WorkerNotice
)
Listener = Callable[[Event], None]
# Told of an attempt that goes on, and when it began by the worker's monotonic clock.
BeginListener = Callable[[Job, float], None]
# Told of an attempt that succeeded, how long it took, and when it began unless that was told
# before. It is called for every job: it must be quick, and must not raise.
CompletionListener = Callable[[Job, float, float | None], None]


class Events:
    """Hands each event to every listener; costs nothing where there is none."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        # Beginnings are no events, and completions are not for those who count them: to make one
        # costs a small job more than what is then done with it.
        self.begin_listeners: list[BeginListener] = []
        self.completion_listeners: list[CompletionListener] = []
        # Told of every event but completions.
        self.other_listeners: list[Listener] = []

    def emit(self, event: Event) -> None:
        self._tell((*self.listeners, *self.other_listeners), event)

    def _tell(self, listeners: Sequence[Listener], event: Event) -> None:
        for listener in listeners:
            try:
                listener(event)
            except Exception:
                # Who only looks on must not change what happens.
                logging.getLogger("forge").exception(
                    "a listener failed on %s", type(event).__name__
                )

    def began(self, job: Job, when: float) -> None:
        """Tell that an attempt goes on, or has ended otherwise than well."""
        for listener in self.begin_listeners:
            listener(job, when)

    def completed(
        self, job: Job, outcome: Returned, ack: Completion, seconds: float, began: float | None
    ) -> None:
        """Tell that an attempt succeeded: nearly all do, so that whoever counts them is told first,
        and an event is made only for those who want to see it."""
        for listener in self.completion_listeners:
            listener(job, seconds, began)
        if self.listeners:
            self._tell(self.listeners, AttemptEnded(job, outcome, ack, seconds))

    def notice(self, level: str, message: str, **detail: Any) -> None:
        self.emit(WorkerNotice(level, message, detail))
