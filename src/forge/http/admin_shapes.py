"""The shapes of the admin API: what goes in and comes out when jobs are looked after."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from forge.core.dead_letter import LetterStatus
from forge.core.lifecycle import State, Status
from forge.core.retry import ErrorClass
from forge.core.rules import Category as Category
from forge.dead_letters.bulk import HIGHEST_RATE, MOST_CANARIES
from forge.dead_letters.review import LONGEST_NOTES, NOTES_NEEDED, check_notes
from forge.http.shapes import (
    UNDECODABLE,
    AnyPriority,
    JobOut,
    Name,
    Precision,
    PriorityValue,
    Whole,
)

Notes = Annotated[
    str,
    Field(max_length=LONGEST_NOTES, description="Why; kept with the dead letter and its audit."),
    AfterValidator(lambda notes: check_notes(notes) if notes.strip() else ""),
]


def _needed(notes: Any) -> Any:
    if notes is None or (isinstance(notes, str) and not notes.strip()):
        raise ValueError(NOTES_NEEDED)
    return notes


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


# As Whole, from the text of a query.
Tenant = Annotated[int, Field(ge=-(2**63), lt=2**63)]
# The number of a dead letter, or of an event of the audit.
Number = Annotated[int, Field(ge=1, lt=2**63)]
Cursor = Annotated[str, Field(pattern="^[0-9]{1,18}$", description="The `next_cursor` of a page.")]
NEXT = "Pass it as `cursor` to go on; null at the end."


class QueueJob(BaseModel):
    """A job, without what it was given and what it returned."""

    job_id: UUID
    category: str | None
    job_type: str
    status: Status
    state: State
    priority: PriorityValue
    queue: str
    tenant_id: int | None
    idempotency_key: str | None
    correlation_id: UUID | None
    payload_version: str
    error_class: str | None
    error_message: str | None = Field(description="The first 500 characters.")
    attempt_count: int
    max_attempts: int
    worker_id: UUID | None
    scheduled_at: datetime
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    cancelled_at: datetime | None

    @classmethod
    def of(cls, job: JobOut) -> "QueueJob":
        """Show a job by the names of the admin API."""
        shown = {name: getattr(job, name) for name in cls.model_fields if hasattr(job, name)}
        return cls(**shown, job_id=job.id, attempt_count=job.attempts, error_message=job.last_error)


class QueuePage(BaseModel):
    """Some of the jobs that were asked for, the newest first."""

    jobs: list[QueueJob]
    total_count: int = Field(description="How many match, on all pages.")
    total_count_precision: Precision = Field(
        description="`at_least`: among the newest 20,000 that were looked at."
    )
    next_cursor: str | None = Field(description=NEXT)
    stopped_early: bool = Field(
        description="Whether so many jobs were looked at that the search paused; "
        "`next_cursor` goes on from there."
    )


class StatisticsOut(BaseModel):
    """How many there are, by what; `none` stands for those without."""

    total_count: int
    by_status: dict[str, int]
    by_category: dict[str, int]
    by_type: dict[str, int]
    by_error_class: dict[str, int]


class QueueStatistics(StatisticsOut):
    """How many jobs there are."""

    precision: Precision = Field(
        description="`exact` up to 20,000 jobs. Beyond, an `estimate` for operators; a tenant is "
        "shown its newest 20,000, which is `at_least`."
    )


class DeadLetterItem(BaseModel):
    """A dead letter, without its payload."""

    model_config = ConfigDict(from_attributes=True)

    dlq_id: int
    category: str | None
    job_type: str
    status: LetterStatus
    idempotency_key: str | None
    correlation_id: UUID | None
    error_class: str | None
    error_message: str | None
    attempt_count: int
    original_created_at: datetime
    created_at: datetime
    job_id: UUID
    tenant_id: int | None
    queue: str
    priority: PriorityValue
    fingerprint: str
    exception: str | None
    place: str | None = Field(description="Where in the code it failed: `module:function`.")
    reviewed_at: datetime | None
    reviewed_by: str | None
    notes: str | None
    new_job_id: UUID | None = Field(description="The job that it became.")


class DeadLetterPage(BaseModel):
    """Some of the dead letters that were asked for, the newest first."""

    dlq_items: list[DeadLetterItem]
    total_count: int = Field(description="How many match, on all pages.")
    next_cursor: str | None = Field(description=NEXT)


class DeadLetterDetail(DeadLetterItem):
    """A dead letter with all that was kept."""

    payload: Any
    payload_version: str
    edited_payload: Any = Field(description="The payload that it was reprocessed with, if edited.")
    attempts: Any = Field(description="Each attempt: its number, outcome, error, start and end.")
    crashes: int
    original_scheduled_at: datetime
    undecodable: list[str] = Field(description=UNDECODABLE)


class DeadLetterGroupOut(BaseModel):
    """Dead letters of one cause: type, category, error class, exception and place in the code."""

    model_config = ConfigDict(from_attributes=True)

    fingerprint: str
    job_type: str
    category: str | None
    error_class: str | None
    exception: str | None
    place: str | None
    letters: int
    first_seen: datetime
    last_seen: datetime
    sample: int = Field(description="The `dlq_id` of the newest.")
    error_message: str | None = Field(description="That of the sample.")


class DeadLetterGroups(BaseModel):
    """Dead letters by cause, the most frequent first."""

    groups: list[DeadLetterGroupOut]


class ReprocessIn(BaseModel):
    """Why a dead letter is done again, and with what."""

    model_config = ConfigDict(extra="forbid")

    notes: Notes | None = None
    payload: Any = Field(
        None, description="Instead of the original, which is kept; held to the rules of its type."
    )


class ReprocessOut(BaseModel):
    """The job that a dead letter became."""

    message: str
    dlq_id: int
    new_job_id: UUID
    new_idempotency_key: str


class DiscardIn(BaseModel):
    """Why a dead letter is not done again."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"required": ["notes"]})

    # A default, so that also where it is missing the message says what it is for.
    notes: Annotated[Notes, Field(min_length=1, pattern=r"\S"), BeforeValidator(_needed)] = Field(
        default="", validate_default=True, json_schema_extra=_without_default
    )


class DiscardOut(BaseModel):
    """A dead letter whose review is closed."""

    message: str
    dlq_id: int


class BulkIn(BaseModel):
    """Which dead letters are done again, how fast, and when to stop."""

    model_config = ConfigDict(extra="forbid")

    job_type: Name | None = None
    category: Category | None = None
    error_class: ErrorClass | None = None
    fingerprint: Name | None = None
    tenant_id: Whole | None = Field(
        None, description="Must equal the token's; an operator may name any."
    )
    notes: Notes | None = None
    rate: float = Field(10.0, gt=0, le=HIGHEST_RATE, description="How many a second.")
    canary: int = Field(
        1, ge=0, le=MOST_CANARIES, description="How many go first and must complete; 0 for none."
    )
    canary_timeout: str = Field("5m", max_length=50, examples=["5m"])
    max_failures: int = Field(
        5, ge=1, lt=2**31, description="How many may fail again before it stops."
    )
    priority: AnyPriority | None = Field(
        "low", description="Of the new jobs; null for what each had."
    )
    dry_run: bool = Field(False, description="Say what would be done, and do nothing.")
    all: bool = Field(False, description="Needed where no filter says which are meant.")

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        named = (self.job_type, self.category, self.error_class, self.fingerprint, self.tenant_id)
        if not self.all and not self.dry_run and named == (None,) * len(named):
            raise ValueError("say which are meant with job_type, fingerprint or another; or all")
        return self


class BulkOut(BaseModel):
    """What is to be done again, and the built-in job that does it."""

    job_id: UUID | None = Field(description="Of the built-in job; null after a dry run.")
    job_type: Literal["forge.reprocess"] = "forge.reprocess"
    dry_run: bool
    letters: int
    groups: list[DeadLetterGroupOut] = Field(description="By cause, the twenty most frequent.")


class AuditEvent(BaseModel):
    """Who asked for what, and why."""

    id: int
    event: str
    actor: str | None
    tenant_id: int | None
    job_id: UUID | None
    dlq_id: int | None
    schedule_id: UUID | None
    notes: str | None
    detail: Any
    created_at: datetime


class AuditPage(BaseModel):
    """Some of the events that were asked for, the latest first."""

    items: list[AuditEvent]
    next_cursor: str | None = Field(description=NEXT)
