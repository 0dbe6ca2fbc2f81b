"""Response bodies of the schedule routes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from forge.core.new_job import LONGEST_REASON
from forge.core.schedules.edit import REQUIRED, ScheduleChanges, check_required
from forge.core.schedules.rule import Missed
from forge.http.fields import (
    NEXT_CURSOR,
    UNDECODABLE,
    AnyPriority,
    Delay,
    Duration,
    Name,
    PriorityValue,
    WrittenTime,
)

# The default of fields that may be left out, but not be null.
LEFT_OUT: Any = None


class RunOut(BaseModel):
    """A recent run of a schedule."""

    lease: int
    outcome: str = Field(examples=["completed", "failed", "skipped"])
    due_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    message: str | None = Field(None, description="The last progress message of the handler.")


class ScheduleOut(BaseModel):
    """A row of forge_schedules, and its rule in words."""

    id: UUID
    type: str
    key: str
    payload: Any
    enabled: bool
    next_run_at: datetime | None = Field(description="Null: no run is scheduled.")
    running_since: datetime | None = Field(description="Null: it is not running.")
    last_run_at: datetime | None
    last_error: str | None
    consecutive_failures: int
    created_at: datetime
    updated_at: datetime
    lease: int
    worker_id: UUID | None
    last_heartbeat: datetime | None
    every: Duration | None
    cron: str | None
    tz: str
    missed: Missed
    jitter: Duration | None
    priority: PriorityValue
    worker_capability: str | None
    timeout: Duration | None
    tenant_id: int | None
    recent_runs: list[RunOut] = Field(description="The last runs, newest first.")
    tick_at: datetime | None
    crashes: int = Field(description="How often the current run was interrupted.")
    suspect: bool = Field(description="Whether a worker died during this run; it then runs alone.")
    checkpoint: Any
    edited: list[str] = Field(
        description="What was edited by hand, such as `rule`: a `cron` in code leaves it alone."
    )
    undecodable: list[str] = Field(description=UNDECODABLE)
    in_words: str = Field(
        description="The rule in words.", examples=["at 03:00 every day, Europe/Paris time"]
    )


class ScheduleDetail(ScheduleOut):
    """A schedule and its next runs."""

    next_runs: list[datetime] = Field(
        description="The next five runs, if each succeeds and does not set another time."
    )


class ScheduleChangesIn(BaseModel):
    """What changes; a field that is left out stays, null removes a value that may be absent."""

    model_config = ConfigDict(extra="forbid")

    every: Delay | None = Field(None, description="The interval; it replaces `cron`.")
    cron: str | None = Field(None, description="The cron expression; it replaces `every`.")
    tz: str = Field(LEFT_OUT, description="The time zone of `cron`.")
    missed: Missed = Field(LEFT_OUT)
    jitter: Delay | None = None
    priority: AnyPriority = Field(LEFT_OUT)
    worker_capability: Name | None = None
    timeout: Delay | None = None
    next_run_at: WrittenTime = Field(LEFT_OUT, description="When it runs next.")
    payload: Any = Field(None, description="A new payload.")
    patch: Any = Field(
        None,
        description="A JSON merge patch (RFC 7396) of the stored payload; instead of `payload`.",
    )
    reset: bool = Field(
        False, description="Whether its `cron` in code applies again, instead of earlier edits."
    )

    @field_validator(*REQUIRED, mode="before")
    @classmethod
    def _is_given(cls, value: Any, info: ValidationInfo) -> Any:
        check_required(str(info.field_name), value)
        return value

    @property
    def changes(self) -> ScheduleChanges:
        """Return the fields that were sent."""
        names = self.model_fields_set & ScheduleChanges.__annotations__.keys()
        changes: Any = {name: getattr(self, name) for name in names}
        return changes  # type: ignore[no-any-return]


class ScheduleEditIn(ScheduleChangesIn):
    """An edit of a schedule, and why."""

    reason: str | None = Field(None, max_length=LONGEST_REASON)


class SchedulePreviewOut(BaseModel):
    """What an edit would change."""

    changed: list[str] = Field(description="The columns that would differ.")
    in_words: str = Field(description="The rule in words.")
    next_runs: list[datetime] = Field(
        description="The next runs, if each succeeds and does not set another time; of a disabled "
        "schedule, if it were enabled."
    )


class SchedulePage(BaseModel):
    """A page of schedules, newest first."""

    items: list[ScheduleOut]
    next_cursor: str | None = Field(description=NEXT_CURSOR)
