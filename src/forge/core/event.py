"""Facts: each act emits one, and logging, metrics and the browser are listeners."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.core.outcome import Ack, Outcome


class AttemptEnded(NamedTuple):
    """An attempt came to an outcome, and this is what was decided about its job."""

    job: Job
    outcome: Outcome
    ack: Ack
    seconds: float


class AttemptStopped(NamedTuple):
    """An attempt was stopped since its job was cancelled, or is another's by now."""

    job: Job
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


Event = AttemptEnded | AttemptStopped | AttemptRefused | JobsRescued | WorkerNotice
Listener = Callable[[Event], None]


class Events:
    """Hands each event to every listener; costs nothing where there is none."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []

    def emit(self, event: Event) -> None:
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                # Who only looks on must not change what happens.
                logging.getLogger("forge").exception(
                    "a listener failed on %s", type(event).__name__
                )

    def notice(self, level: str, message: str, **detail: Any) -> None:
        self.emit(WorkerNotice(level, message, detail))
