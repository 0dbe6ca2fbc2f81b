"""A worker as its row and its jobs show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

WorkerState = Literal["alive", "drained", "draining", "dead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentWork:
    """A job, or a run of a schedule, that a worker holds."""

    kind: Literal["job", "run"]
    # Of the job or the schedule.
    id: UUID
    type: str
    # None for runs: schedules have no queue.
    queue: str | None
    # `running`, or `claimed` while it waits in the worker for a slot.
    status: str
    attempt: int
    since: datetime
    progress_percent: int | None
    tenant_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """One row of forge_workers at one moment, and what the worker runs."""

    id: UUID
    incarnation: UUID
    hostname: str
    pid: int
    version: str
    capabilities: list[str]
    # None: every queue.
    queues: list[str] | None
    job_types: list[str]
    schedule_types: list[str]
    max_concurrent: int
    # How many slots were taken at its last heartbeat.
    running: int
    # Whether it shuts down.
    draining: bool
    started_at: datetime
    last_heartbeat: datetime
    silent_for: float
    is_alive: bool
    # Since when an operator has it claim nothing, by whom and why; None: it claims.
    drained_at: datetime | None
    drained_by: str | None
    drain_reason: str | None
    # The longest running first.
    current: Sequence[CurrentWork] = ()

    @property
    def state(self) -> WorkerState:
        if not self.is_alive:
            return "dead"
        if self.draining:
            return "draining"
        return "alive" if self.drained_at is None else "drained"
