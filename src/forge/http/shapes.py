"""The shapes of what goes in and comes out: checked on the way in, described in openapi.json."""

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    computed_field,
)
from pydantic.dataclasses import dataclass

from forge.core.duration import format_duration, parse_duration
from forge.core.lifecycle import State, Status
from forge.core.record import JobRecord
from forge.core.wish import LONGEST_VERSION, check_name

T = TypeVar("T")
MOST_AT_ONCE = 10_000
UNDECODABLE = "Names of fields whose stored value cannot be read; they are null here."

# Durations are written as everywhere in Forge: "30s", "5m", "2h".
Duration = Annotated[
    timedelta,
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": r"^-?[0-9]+(us|ms|s|m|h|d)$", "examples": ["30m"]}
    ),
]
Delay = Annotated[
    timedelta,
    PlainValidator(lambda value: parse_duration(value, what="delay", allow_zero=True)),
    WithJsonSchema(
        {"type": "string", "pattern": r"^[0-9]+(us|ms|s|m|h|d)$", "examples": ["30s", "5m", "2h"]}
    ),
]
PriorityValue = Literal[100, 75, 50, 25, 0]
# One list of both, so that a fault lies at `$.priority` and not at a branch of it.
AnyPriority = Literal["critical", "high", "normal", "low", "background", 100, 75, 50, 25, 0]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Moment = Annotated[AwareDatetime, Field(strict=True)]
Id = Annotated[UUID, Field(strict=True)]
Version = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_VERSION),
    AfterValidator(lambda value: check_name(value, what="it")),
]
Name = Annotated[
    str,
    Field(min_length=1, max_length=255),
    AfterValidator(lambda value: check_name(value, what="it")),
]


class DispatchOptions(BaseModel):
    """What may be asked of a job beside its input."""

    model_config = ConfigDict(extra="forbid")

    priority: AnyPriority | None = None
    scheduled_at: Moment | None = Field(None, description="Not before this time.")
    delay: Delay | None = Field(
        None, description="Not before so long from now; instead of `scheduled_at`."
    )
    tenant_id: Whole | None = Field(
        None, description="Must equal the token's; an operator may name any."
    )
    correlation_id: Id | None = None
    payload_version: Version | None = Field(
        None, description="Of the input's shape; `1.0` unless it is given here or in the input."
    )
    queue: Name | None = None
    tags: list[Name] | None = Field(None, max_length=100)
    expires_at: Moment | None = Field(None, description="A job that was not started by then fails.")


class DispatchIn(DispatchOptions):
    """One job that is wanted."""

    args: Any = Field(
        default_factory=dict,
        description="The input, as the type's schema in `GET /_api/job_types` wants it.",
        examples=[{"format": "csv"}],
    )
    idempotency_key: Name | None = Field(
        None, description="A second dispatch with the same key returns the first job."
    )


class DispatchManyIn(DispatchOptions):
    """Many jobs of one type that share their options; all are made, or none."""

    inputs: list[Any] = Field(max_length=MOST_AT_ONCE, description="One input a job.")


class DispatchOut(BaseModel):
    """The job that stands for a wish."""

    job_id: UUID
    status: Status | None = Field(
        description="Where it stands; null if a job that was deduplicated has been pruned since."
    )
    deduplicated: bool = Field(description="Whether an earlier dispatch had the same key.")
    watch_token: str = Field(description="Lets its bearer follow this one job for an hour at most.")


class DispatchManyOut(BaseModel):
    """How many jobs were made."""

    count: int = Field(description="How many are new; inputs whose key was known make none.")


class RequestIn(BaseModel):
    """Why a job is to be moved."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(None, max_length=1000)


class RequestOut(BaseModel):
    """The built-in job that will carry a request out."""

    job_id: UUID = Field(description="The id of the built-in job; follow it like any other.")
    job_type: str = Field(examples=["forge.cancel"])
    target_id: UUID = Field(description="The job that is to be moved.")


@dataclass(frozen=True, kw_only=True)
class JobOut(JobRecord):
    """One row of forge_jobs at one moment, and its state."""

    priority: PriorityValue
    timeout: Duration | None
    undecodable: tuple[str, ...] = Field((), description=UNDECODABLE)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def state(self) -> State:
        return self.status.state

    @classmethod
    def of(cls, job: JobRecord) -> "JobOut":
        """Take what is to be shown of a job."""
        return cls(**{field.name: getattr(job, field.name) for field in fields(job)})


class JobPage(BaseModel):
    """Some of the jobs that were asked for, the newest first."""

    items: list[JobOut]
    next_cursor: str | None = Field(description="Pass it as `cursor` to go on; null at the end.")
    stopped_early: bool = Field(
        description="Whether so many jobs were looked at that the search paused; "
        "`next_cursor` goes on from there."
    )


class AttemptOut(BaseModel):
    """An attempt that did not succeed."""

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
    started_at: datetime | None
    ended_at: datetime


class Items(BaseModel, Generic[T]):
    """All there are."""

    items: list[T]


Precision = Literal["exact", "at_least", "estimate"]


class Count(BaseModel):
    """How many, and how well that is known."""

    count: int
    precision: Precision


class TypeCounts(BaseModel):
    """The jobs of one type."""

    live: Count = Field(description="Waiting or being processed.")
    all: Count


class CountsOut(BaseModel):
    """How many jobs there are, by status and by type."""

    by_status: dict[Status, Count]
    by_type: dict[str, TypeCounts]


class WorkerOut(BaseModel):
    """A worker that lives, or lately did."""

    id: UUID
    incarnation: UUID
    hostname: str
    pid: int
    version: str
    capabilities: list[str]
    queues: list[str] | None = Field(description="Null: every queue.")
    job_types: list[str]
    max_concurrent: int
    running: int
    draining: bool
    started_at: datetime
    last_heartbeat: datetime
    silent_for: float = Field(description="Seconds since its last heartbeat.")
    is_alive: bool


class JobTypeOut(BaseModel):
    """A registered function: what its jobs are like when nothing else is said."""

    name: str
    queue: str
    priority: PriorityValue
    max_attempts: int
    timeout: Duration
    worker_capability: str | None
    category: str | None
    requires: list[str] | None = Field(
        description="Fields that each payload has; null: one of the references of its category."
    )
    idempotent: str | None = Field(
        description="Where keys come from: `input`, `input.…`, or `function` for the type's code."
    )
    dead_letter: bool
    isolation: str
    retry: dict[str, Any] | None
    input_schema: dict[str, Any] | None = Field(description="JSON Schema of `args`; null: any.")
    output_schema: dict[str, Any] | None


class FaultOut(BaseModel):
    """What is wrong with one value, and where it lies in the request."""

    path: str = Field(examples=["$.args.format"])
    message: str


class ProblemOut(BaseModel):
    """What went wrong and what to do: RFC 9457."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable: branch on it.")
    detail: str
    errors: list[FaultOut] = Field([], description="With code `invalid`: each fault.")
