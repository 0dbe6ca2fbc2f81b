"""Request and response bodies of the job routes."""

from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    computed_field,
)
from pydantic.dataclasses import dataclass

from forge.core.job import JobRecord
from forge.core.job_counts import Precision
from forge.core.lifecycle import State, Status
from forge.core.new_job import LONGEST_REASON
from forge.http.fields import (
    NEXT_CURSOR,
    UNDECODABLE,
    AnyPriority,
    BigInteger,
    Delay,
    Duration,
    Id,
    Moment,
    Name,
    PriorityValue,
    Version,
)

MAX_INPUTS = 10_000


class DispatchBody(BaseModel):
    """The options of a dispatch."""

    model_config = ConfigDict(extra="forbid")

    priority: AnyPriority | None = None
    scheduled_at: Moment | None = Field(None, description="Earliest start.")
    delay: Delay | None = Field(
        None, description="Time until the earliest start; instead of `scheduled_at`."
    )
    tenant_id: BigInteger | None = Field(
        None, description="Must equal the token's tenant; operators may name any."
    )
    correlation_id: Id | None = None
    payload_version: Version | None = Field(
        None, description="Version of the input format; default: the one in the input, or `1.0`."
    )
    queue: Name | None = None
    tags: list[Name] | None = Field(None, max_length=100)
    expires_at: Moment | None = Field(
        None, description="The job fails if it has not started by then."
    )


class DispatchIn(DispatchBody):
    """Dispatches one job."""

    args: Any = Field(
        default_factory=dict,
        description="The input; `GET /_api/job_types` has its schema.",
        examples=[{"format": "csv"}],
    )
    idempotency_key: Name | None = Field(
        None, description="A second dispatch with the same key returns the first job."
    )


class DispatchManyIn(DispatchBody):
    """Dispatches many jobs of one type with the same options, all or none."""

    inputs: list[Any] = Field(max_length=MAX_INPUTS, description="One input per job.")


class DispatchOut(BaseModel):
    """The dispatched job."""

    job_id: UUID
    status: Status | None = Field(description="Null if the deduplicated job has been pruned.")
    deduplicated: bool = Field(description="Whether an earlier dispatch had the same key.")
    watch_token: str = Field(description="Token to follow this job for an hour at most.")


class DispatchManyOut(BaseModel):
    """The number of dispatched jobs."""

    count: int = Field(description="Number of new jobs; inputs with a known key add none.")


class RequestIn(BaseModel):
    """A request, with an optional reason."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(None, max_length=LONGEST_REASON)


class RequestOut(BaseModel):
    """The built-in job that carries out a request."""

    job_id: UUID = Field(description="Id of the built-in job; follow it like any other.")
    job_type: str = Field(examples=["forge.cancel"])
    target_id: UUID = Field(description="The job that the request is about.")


@dataclass(frozen=True, kw_only=True)
class JobOut(JobRecord):
    """A row of forge_jobs, and its state."""

    priority: PriorityValue
    timeout: Duration | None
    undecodable: tuple[str, ...] = Field((), description=UNDECODABLE)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def state(self) -> State:
        return self.status.state

    @classmethod
    def of(cls, job: JobRecord) -> "JobOut":
        """Convert a redacted record."""
        return cls(**{field.name: getattr(job, field.name) for field in fields(job)})


class JobPage(BaseModel):
    """A page of jobs, newest first."""

    items: list[JobOut]
    next_cursor: str | None = Field(description=NEXT_CURSOR)
    stopped_early: bool = Field(
        description="Whether the search stopped at its limit of rows; `next_cursor` continues it."
    )


class JobSummary(BaseModel):
    """A row of forge_jobs without `input`, `output`, `checkpoint` and `meta`, and its state."""

    id: UUID
    job_type: str
    status: Status
    state: State
    priority: PriorityValue
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
    timeout: Duration | None
    expires_at: datetime | None
    retry_of: UUID | None
    parent_id: UUID | None
    tags: list[str] | None
    original_scheduled_at: datetime | None
    undecodable: tuple[str, ...] = Field((), description=UNDECODABLE)

    @classmethod
    def of(cls, job: JobRecord) -> "JobSummary":
        """Convert a redacted record."""
        return cls(**{name: getattr(job, name) for name in cls.model_fields})


class SummaryPage(BaseModel):
    """A page of summaries, newest first."""

    items: list[JobSummary]
    next_cursor: str | None = Field(description=NEXT_CURSOR)
    stopped_early: bool = Field(
        description="Whether the search stopped at its limit of rows; `next_cursor` continues it."
    )


class AttemptOut(BaseModel):
    """A failed attempt."""

    job_id: UUID
    lease: int
    attempt: int
    tenant_id: int | None
    worker_id: UUID | None
    outcome: str
    error_class: str | None
    exception: str | None
    error: str | None
    trace: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    retry_at: datetime | None = Field(description="When the next attempt is due, if it is retried.")


class Count(BaseModel):
    """A count and its precision."""

    count: int
    precision: Precision


class TypeCounts(BaseModel):
    """Counts of one type."""

    live: Count = Field(description="Pending, claimed, running or waiting for a retry.")
    all: Count


class CountsOut(BaseModel):
    """Counts of jobs by status and by type."""

    by_status: dict[Status, Count]
    by_type: dict[str, TypeCounts]
