"""A job as the worker that claimed it knows it, in the order in which jobs/claim returns it."""

from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Literal, NamedTuple
from uuid import UUID

BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
EARLIEST = BEGINNING_OF_TIME.timestamp()


class Priority(IntEnum):
    """How urgent a job is; the highest goes first."""

    CRITICAL = 100
    HIGH = 75
    NORMAL = 50
    LOW = 25
    BACKGROUND = 0


PriorityName = Literal["critical", "high", "normal", "low", "background"]
PriorityLike = PriorityName | Literal[100, 75, 50, 25, 0] | Priority


class Job(NamedTuple):
    """One attempt at a job: `(id, lease)` is the fence around everything it writes."""

    id: UUID
    lease: int
    input: str
    attempt: int
    max_attempts: int
    # When it was due, in seconds since the epoch: a float is read several times as quickly.
    due: float
    crashes: int
    lone_crashes: int
    # Whether a worker died while it ran this job, so that it must run alone.
    is_suspect: bool
    timeout: timedelta | None
    expired: bool | None
    tenant_id: int | None
    correlation_id: UUID | None
    auth: str | None
    checkpoint: str | None
    traceparent: str | None
    category: str | None
    type: str
    queue: str
    worker_capability: str | None
    priority: int

    @property
    def scheduled_at(self) -> datetime:
        # SQL may schedule a job for a time that Python has no date for.
        return datetime.fromtimestamp(self.due, UTC) if self.due > EARLIEST else BEGINNING_OF_TIME

    @property
    def has_attempts(self) -> bool:
        return self.attempt < self.max_attempts
