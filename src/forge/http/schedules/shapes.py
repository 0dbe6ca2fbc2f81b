"""Response bodies of the schedule routes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from forge.core.schedules.rule import Missed
from forge.http.fields import NEXT_CURSOR, UNDECODABLE, Duration, PriorityValue


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
    undecodable: list[str] = Field(description=UNDECODABLE)
    in_words: str = Field(
        description="The rule in words.", examples=["at 03:00 every day, Europe/Paris time"]
    )


class ScheduleDetail(ScheduleOut):
    """A schedule and its next runs."""

    next_runs: list[datetime] = Field(
        description="The next five runs, if each succeeds and does not set another time."
    )


class SchedulePage(BaseModel):
    """A page of schedules, newest first."""

    items: list[ScheduleOut]
    next_cursor: str | None = Field(description=NEXT_CURSOR)
