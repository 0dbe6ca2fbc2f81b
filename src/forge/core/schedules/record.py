"""A schedule as stored in the database: all columns of its row."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from forge.core.errors import InvalidValue
from forge.core.row import values_of
from forge.core.schedules.rule import Missed, Rule, following_tick, jittered, next_runs

JSON_COLUMNS = ("payload", "recent_runs", "checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """One row of forge_schedules at one moment."""

    id: UUID
    type: str
    key: str
    payload: Any
    enabled: bool
    next_run_at: datetime | None
    running_since: datetime | None
    last_run_at: datetime | None
    last_error: str | None
    consecutive_failures: int
    created_at: datetime
    updated_at: datetime
    lease: int
    worker_id: UUID | None
    last_heartbeat: datetime | None
    every: timedelta | None
    cron: str | None
    tz: str
    missed: Missed
    jitter: timedelta | None
    priority: int
    worker_capability: str | None
    timeout: timedelta | None
    tenant_id: int | None
    recent_runs: list[dict[str, Any]]
    tick_at: datetime | None
    crashes: int
    suspect: bool
    checkpoint: Any
    # What was edited by hand, which a definition in code leaves alone.
    edited: list[str]
    undecodable: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a row."""
        values = values_of(cls, row, JSON_COLUMNS)
        runs = values["recent_runs"] or []
        if not _are_runs(runs):
            runs, values["undecodable"] = [], (*values.get("undecodable", ()), "recent_runs")
        return cls(**values | {"recent_runs": runs})

    @property
    def rule(self) -> Rule:
        return Rule(self.every, self.cron, self.tz, self.missed, self.jitter)

    @property
    def name(self) -> str:
        """The type, key and tenant, for messages."""
        return schedule_name(self.type, self.key, self.tenant_id)

    def next_runs(self, now: datetime, count: int = 5) -> list[datetime]:
        """Predict its next runs; none while it is disabled or has no next run."""
        if not self.enabled or self.next_run_at is None:
            return []
        try:
            return self._predicted(self.next_run_at, now, count)
        except InvalidValue:  # its rule is invalid: the planned run will report that
            return [self.next_run_at]

    def _predicted(self, planned: datetime, now: datetime, count: int) -> list[datetime]:
        tick = self.tick_at or planned
        if self.running_since is not None and planned <= self.running_since:
            # That is the time of the run in progress, unless it was changed since.
            following = following_tick(self.rule, tick, self.running_since, now)
            if following is None:
                return []
            planned, tick = jittered(self.rule, self.name, following), following
        return next_runs(self.rule, self.name, planned, tick, now, count)


def _are_runs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(run, dict)
        and isinstance(run.get("lease"), int)
        and isinstance(run.get("outcome"), str)
        and all(isinstance(run.get(name), str | None) for name in ("error", "message"))
        and all(_is_time(run.get(name)) for name in ("due_at", "started_at", "ended_at"))
        for run in value
    )


def _is_time(value: Any) -> bool:
    if value is None:
        return True
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def schedule_name(type: str, key: str, tenant: int | None) -> str:
    """Return the name of a schedule: type, key and tenant."""
    of_tenant = "" if tenant is None else f" of tenant {tenant}"
    return f"{type} {key}".rstrip() + of_tenant
