"""Dead letters as stored, filters on them, and the results of reviews."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Self, TypedDict, get_args
from uuid import UUID

from forge.core.errors import InvalidValue
from forge.core.payload_rules import check_category
from forge.core.row import values_of

LetterStatus = Literal["pending_review", "reprocessed", "discarded"]
STATUSES: tuple[LetterStatus, ...] = get_args(LetterStatus)
UNDER_REVIEW = "pending_review"
JSON_COLUMNS = ("payload", "edited_payload", "attempts")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A job that needs review; lists omit `payload`, `edited_payload` and `attempts`."""

    dlq_id: int
    job_id: UUID
    job_type: str
    category: str | None
    queue: str
    priority: int
    tenant_id: int | None
    correlation_id: UUID | None
    idempotency_key: str | None
    payload_version: str
    error_class: str | None
    exception: str | None
    error_message: str | None
    place: str | None
    fingerprint: str
    attempt_count: int
    crashes: int
    original_created_at: datetime
    original_scheduled_at: datetime
    created_at: datetime
    status: LetterStatus
    reviewed_at: datetime | None
    reviewed_by: str | None
    notes: str | None
    new_job_id: UUID | None
    payload: Any = None
    edited_payload: Any = None
    attempts: Any = None
    undecodable: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a row, of a list or with all columns."""
        return cls(**values_of(cls, row, JSON_COLUMNS))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters with one cause: type, category, error class, exception and code location."""

    fingerprint: str
    job_type: str
    category: str | None
    error_class: str | None
    exception: str | None
    place: str | None
    letters: int
    first_seen: datetime
    last_seen: datetime
    sample: int
    error_message: str | None


class Activity(NamedTuple):
    """How many dead letters each cause got per step of a period, by fingerprint."""

    began: datetime
    step: timedelta
    # Counting a step ended at this number.
    highest: int
    counts: dict[str, list[int]]


class Causes(TypedDict, total=False):
    """Conditions on the cause and tenant of dead letters; None means any."""

    job_type: str | None
    category: str | None
    error_class: str | None
    fingerprint: str | None
    tenant_id: int | None


CAUSES = tuple(Causes.__annotations__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Conditions on the status, cause and tenant of dead letters; None means any."""

    status: str | None = None
    job_type: str | None = None
    category: str | None = None
    error_class: str | None = None
    fingerprint: str | None = None
    tenant_id: int | None = None

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise InvalidValue(f"status must be one of {', '.join(STATUSES)}, not {self.status!r}")
        check_category(self.category)

    @property
    def names_causes(self) -> bool:
        """Whether it has conditions beyond status and tenant."""
        causes = (self.job_type, self.category, self.error_class, self.fingerprint)
        return any(cause is not None for cause in causes)


class Page(NamedTuple):
    """A page of dead letters, the total count, and the cursor of the next page."""

    items: list[DeadLetter]
    total_count: int
    next_cursor: int | None


class Reprocessed(NamedTuple):
    """The job that reprocesses a dead letter."""

    dlq_id: int
    new_job_id: UUID
    new_idempotency_key: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of dead letters or jobs."""

    total: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    by_category: dict[str, int] = field(default_factory=dict)
    by_type: dict[str, int] = field(default_factory=dict)
    by_error_class: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_rows(cls, found: Iterable[Mapping[str, Any]]) -> Self:
        """Sum rows of status, category, type, error class and count; null is counted as "none"."""
        by: dict[str, dict[str, int]] = {name: {} for name in _COLUMNS}
        total = 0
        for row in found:
            total += row["letters"]
            for column, counts in by.items():
                name = row[column] or "none"
                counts[name] = counts.get(name, 0) + row["letters"]
        shown = {place: dict(sorted(by[column].items())) for column, place in _COLUMNS.items()}
        return cls(total, **shown)


_COLUMNS = {
    "status": "by_status",
    "category": "by_category",
    "job_type": "by_type",
    "error_class": "by_error_class",
}
