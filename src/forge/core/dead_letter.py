"""Dead letters as the database has them, and what a review of them comes to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self, TypedDict, get_args
from uuid import UUID

from forge.core.errors import InvalidValue
from forge.core.row import values_of
from forge.core.rules import check_category

LetterStatus = Literal["pending_review", "reprocessed", "discarded"]
STATUSES: tuple[LetterStatus, ...] = get_args(LetterStatus)
UNDER_REVIEW = "pending_review"
JSON_COLUMNS = ("payload", "edited_payload", "attempts")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A job that needs a person; lists leave out `payload`, `edited_payload` and `attempts`."""

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
        """Read a row, of a list or in full."""
        return cls(**values_of(cls, row, JSON_COLUMNS))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters of one cause: type, category, error class, exception and place in the code."""

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


class Causes(TypedDict, total=False):
    """Which dead letters are meant, whatever became of them; None means any."""

    job_type: str | None
    category: str | None
    error_class: str | None
    fingerprint: str | None
    tenant_id: int | None


CAUSES = tuple(Causes.__annotations__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Which dead letters are meant, by their status too."""

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
        """Whether more is asked for than a status and a tenant."""
        causes = (self.job_type, self.category, self.error_class, self.fingerprint)
        return any(cause is not None for cause in causes)


class Page(NamedTuple):
    """Some dead letters, how many there are in all, and where the next page begins."""

    items: list[DeadLetter]
    total_count: int
    next_cursor: int | None


class Reprocessed(NamedTuple):
    """The job that a dead letter became."""

    dlq_id: int
    new_job_id: UUID
    new_idempotency_key: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """How many dead letters, or jobs, there are, by what."""

    total: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    by_category: dict[str, int] = field(default_factory=dict)
    by_type: dict[str, int] = field(default_factory=dict)
    by_error_class: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_rows(cls, found: Iterable[Mapping[str, Any]]) -> Self:
        """Add up rows of status, category, type, error class and how many; none counts as none."""
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
