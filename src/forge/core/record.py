"""A job as the database has it: all columns of its row, and its state."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from forge.core.lifecycle import State, Status
from forge.core.row import values_of

JSON_COLUMNS = ("input", "output", "auth", "meta", "checkpoint")


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
    concurrency_key: str | None
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
        values = values_of(cls, row, JSON_COLUMNS)
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
