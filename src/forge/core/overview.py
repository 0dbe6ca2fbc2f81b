"""The state of the whole system at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forge.core.job_counts import BoundedCount
from forge.core.lifecycle import Status
from forge.core.pause import Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestReady:
    """The job that has been due the longest, among those that are not paused."""

    job_id: UUID
    job_type: str
    queue: str
    scheduled_at: datetime
    waiting_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotUse:
    """The slots of the live workers."""

    in_use: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersByState:
    """How many workers there are in each state; dead ones are forgotten after a while."""

    alive: int
    drained: int
    draining: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What an operator looks at first."""

    at: datetime
    jobs: Mapping[Status, BoundedCount]
    # None: no job is due.
    oldest_ready: OldestReady | None
    slots: SlotUse
    workers: WorkersByState
    dead_letters_waiting: int
    # Enabled schedules whose last run failed.
    schedules_failing: BoundedCount
    pauses: Sequence[Pause]
