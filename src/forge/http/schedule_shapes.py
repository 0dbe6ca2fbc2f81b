"""The shapes of schedules: the row, its rule in words, and what it will do."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from forge.core.schedule import Missed
from forge.http.shapes import UNDECODABLE, Duration, PriorityValue


class RunOut(BaseModel):
    """One of the last runs of a schedule."""

    lease: int
    outcome: str = Field(examples=["completed", "failed", "skipped"])
    due_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    message: str | None = Field(None, description="What the handler said last.")


class ScheduleOut(BaseModel):
    """One row of forge_schedules at one moment, and its rule in words."""

    id: UUID
    type: str
    key: str
    payload: Any
    enabled: bool
    next_run_at: datetime | None = Field(description="Null: nothing is planned.")
    running_since: datetime | None = Field(description="Null: it does not run.")
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
    recent_runs: list[RunOut] = Field(description="The last runs, the newest first.")
    tick_at: datetime | None
    crashes: int = Field(description="How often the run at hand was ended by us.")
    suspect: bool = Field(description="Whether a worker died during it: it runs alone.")
    checkpoint: Any
    undecodable: list[str] = Field(description=UNDECODABLE)
    in_words: str = Field(
        description="When it runs, for people.", examples=["at 03:00 every day, Europe/Paris time"]
    )


class ScheduleDetail(ScheduleOut):
    """A schedule, and when it will run."""

    next_runs: list[datetime] = Field(
        description="The next five, if each succeeds and leaves it to the rule."
    )


class SchedulePage(BaseModel):
    """Some of the schedules that were asked for, the newest first."""

    items: list[ScheduleOut]
    next_cursor: str | None = Field(description="Pass it as `cursor` to go on; null at the end.")
