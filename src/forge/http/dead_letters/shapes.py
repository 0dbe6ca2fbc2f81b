"""Request and response bodies of the dead letter routes."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from forge.core.bulk import HIGHEST_RATE as HIGHEST_BULK_RATE
from forge.core.dead_letter import LetterStatus
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass
from forge.dead_letters.bulk import HIGHEST_RATE, MAX_CANARIES
from forge.dead_letters.review import LONGEST_NOTES, NOTES_NEEDED, check_notes
from forge.http.fields import (
    NEXT_CURSOR,
    UNDECODABLE,
    AnyPriority,
    BigInteger,
    Duration,
    Name,
    PriorityValue,
)

Notes = Annotated[
    str,
    Field(
        max_length=LONGEST_NOTES,
        description="Reason, stored with the dead letter and in the audit log.",
    ),
    AfterValidator(lambda notes: check_notes(notes) if notes.strip() else ""),
]


def _required(notes: Any) -> Any:
    if notes is None or (isinstance(notes, str) and not notes.strip()):
        raise ValueError(NOTES_NEEDED)
    return notes


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class StatisticsOut(BaseModel):
    """Counts by status, category, type and error class; `none` counts those without."""

    total_count: int
    by_status: dict[str, int]
    by_category: dict[str, int]
    by_type: dict[str, int]
    by_error_class: dict[str, int]


class DeadLetterItem(BaseModel):
    """A dead letter without its payload."""

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
    new_job_id: UUID | None = Field(description="The job that reprocessed it.")


class DeadLetterPage(BaseModel):
    """A page of dead letters, newest first."""

    dlq_items: list[DeadLetterItem]
    total_count: int = Field(description="Number of matches on all pages.")
    next_cursor: str | None = Field(description=NEXT_CURSOR)


class DeadLetterDetail(DeadLetterItem):
    """A dead letter with its payload and attempts."""

    payload: Any
    payload_version: str
    edited_payload: Any = Field(description="The edited payload it was reprocessed with, if any.")
    attempts: Any = Field(description="Each attempt: its number, outcome, error, start and end.")
    crashes: int
    original_scheduled_at: datetime
    undecodable: list[str] = Field(description=UNDECODABLE)


class DeadLetterGroupOut(BaseModel):
    """Dead letters with the same type, category, error class, exception and place."""

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
    sample: int = Field(description="The `dlq_id` of the newest one.")
    error_message: str | None = Field(description="The error message of the sample.")
    recent: list[int] | None = Field(
        None, description="How many there are per step of the period, if `step` was given."
    )


class RecentSteps(BaseModel):
    """The steps that `recent` of the groups counts."""

    began: datetime = Field(description="When the first step began; the last one is the present.")
    step: Duration
    highest: int = Field(description="Where counting a step ends: there may be more.")


class DeadLetterGroups(BaseModel):
    """Dead letters by cause, most frequent first."""

    groups: list[DeadLetterGroupOut]
    recent_steps: RecentSteps | None = Field(
        None, description="Null without `step`, and without groups."
    )


class ReprocessIn(BaseModel):
    """Reprocesses a dead letter."""

    model_config = ConfigDict(extra="forbid")

    notes: Notes | None = None
    payload: Any = Field(
        None, description="Replaces the original payload, which is kept; validated for the type."
    )
    patch: Any = Field(
        None,
        description="Instead of `payload`: a JSON merge patch (RFC 7396) of the stored payload.",
        examples=[{"connection_id": 12}],
    )
    dry_run: bool = Field(False, description="Check everything and change nothing.")


class ReprocessOut(BaseModel):
    """The new job of a reprocessed dead letter; null after a dry run."""

    message: str
    dlq_id: int
    new_job_id: UUID | None
    new_idempotency_key: str | None


class DiscardIn(BaseModel):
    """Discards a dead letter."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"required": ["notes"]})

    # The default lets the validator explain the field when it is missing.
    notes: Annotated[Notes, Field(min_length=1, pattern=r"\S"), BeforeValidator(_required)] = Field(
        default="", validate_default=True, json_schema_extra=_without_default
    )


class DiscardOut(BaseModel):
    """A discarded dead letter."""

    message: str
    dlq_id: int


class CausesIn(BaseModel):
    """Selects dead letters under review."""

    model_config = ConfigDict(extra="forbid")

    job_type: Name | None = None
    category: Category | None = None
    error_class: ErrorClass | None = None
    fingerprint: Name | None = None
    tenant_id: BigInteger | None = Field(
        None, description="Must equal the token's tenant; operators may name any."
    )
    dry_run: bool = Field(False, description="Report what would be done and change nothing.")
    all: bool = Field(False, description="Required without a filter: selects all dead letters.")

    @model_validator(mode="after")
    def _has_filter(self) -> Self:
        named = (self.job_type, self.category, self.error_class, self.fingerprint, self.tenant_id)
        if not self.all and not self.dry_run and named == (None,) * len(named):
            raise ValueError("set a filter such as job_type or fingerprint, or set all to true")
        return self


class BulkDiscardIn(CausesIn):
    """Selects dead letters to discard."""

    notes: Notes | None = Field(None, description="Required, unless it is a dry run.")
    rate: float | None = Field(
        None,
        gt=0,
        le=HIGHEST_BULK_RATE,
        description="Dead letters per second; null goes as fast as ordinary jobs allow.",
    )

    @model_validator(mode="after")
    def _has_notes(self) -> Self:
        if not self.dry_run and not self.notes:
            raise ValueError(NOTES_NEEDED)
        return self


class BulkIn(CausesIn):
    """Selects dead letters to reprocess, with rate and stop conditions."""

    notes: Notes | None = None
    rate: float = Field(10.0, gt=0, le=HIGHEST_RATE, description="Dead letters per second.")
    canary: int = Field(
        1,
        ge=0,
        le=MAX_CANARIES,
        description="Number to reprocess first; they must complete. 0 for none.",
    )
    canary_timeout: str = Field("5m", max_length=50, examples=["5m"])
    max_failures: int = Field(
        5, ge=1, lt=2**31, description="Stop after this many have failed again."
    )
    priority: AnyPriority | None = Field(
        "low", description="Priority of the new jobs; null keeps the original one."
    )


class BulkOut(BaseModel):
    """The selected dead letters, and the built-in job that reviews them."""

    job_id: UUID | None = Field(description="Id of the built-in job; null after a dry run.")
    job_type: Literal["forge.reprocess", "forge.discard"]
    dry_run: bool
    letters: int
    groups: list[DeadLetterGroupOut] = Field(description="The twenty most frequent causes.")
