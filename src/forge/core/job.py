"""A job: as the worker that claimed it has it, and as its row shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

from forge.core.job_columns import JOB_COLUMNS
from forge.core.lifecycle import State, Status
from forge.core.row import values_of

BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
EARLIEST = BEGINNING_OF_TIME.timestamp()
# The queue of the built-in jobs, which every worker serves whatever its `queues` setting says.
BUILTIN_QUEUE = "forge"
# What the names of their types begin with.
BUILTIN_TYPES = "forge."
# The built-in type whose jobs show that a worker group consumes.
CANARY = "forge.canary"
_JSON = tuple(column.name for column in JOB_COLUMNS if column.type == "jsonb")


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
    """One attempt at a job: `(id, lease)` is the fence around everything it writes.

    Its fields are the columns that claims return, by name.
    """

    id: UUID
    lease: int
    type: str
    input: str
    attempt: int
    max_attempts: int
    # When it was due, in seconds since the epoch: a float is read several times as quickly.
    due: float
    crashes: int
    lone_crashes: int
    # Whether a worker died while it ran this job, so that it must run alone.
    is_suspect: bool
    queue: str
    worker_capability: str | None
    priority: int
    timeout: timedelta | None = None
    expired: bool | None = None
    tenant_id: int | None = None
    correlation_id: UUID | None = None
    auth: str | None = None
    checkpoint: str | None = None
    traceparent: str | None = None
    category: str | None = None

    @property
    def scheduled_at(self) -> datetime:
        # SQL may schedule a job for a time that Python has no date for.
        return datetime.fromtimestamp(self.due, UTC) if self.due > EARLIEST else BEGINNING_OF_TIME

    @property
    def has_attempts(self) -> bool:
        return self.attempt < self.max_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One row of forge_jobs at one moment."""

    id: UUID
    job_type: str
    input: Any
    output: Any
    status: Status
    priority: int
    attempts: int
    max_attempts: int
    last_error: str | None
    progress_percent: int | None
    progress_message: str | None
    worker_capability: str | None
    worker_id: UUID | None
    idempotency_key: str | None
    scheduled_at: datetime
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    cancelled_at: datetime | None
    last_heartbeat: datetime | None
    lease: int
    version: int
    crashes: int
    lone_crashes: int
    suspect: bool
    queue: str
    tenant_id: int | None
    category: str | None
    correlation_id: UUID | None
    payload_version: str
    error_class: str | None
    auth: Any
    traceparent: str | None
    timeout: timedelta | None
    expires_at: datetime | None
    retry_of: UUID | None
    parent_id: UUID | None
    tags: list[str] | None
    meta: Any
    checkpoint: Any
    # when it was dispatched for, once scheduled_at says something else
    original_scheduled_at: datetime | None = None
    # columns that Python cannot read, or that hold what they must not; they are None here
    undecodable: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a row."""
        values = values_of(cls, row, _JSON)
        # text[] takes nulls and lists of lists
        if not all(isinstance(tag, str) for tag in values["tags"] or ()):
            values |= {"tags": None, "undecodable": (*values.get("undecodable", ()), "tags")}
        return cls(**values | {"status": Status(values["status"])})

    @property
    def state(self) -> State:
        return self.status.state

    @property
    def is_final(self) -> bool:
        return self.status.is_final
