"""Schedules for the fault tests: each run is recorded under the name of its tick."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from forge import ScheduleContext, schedule
from tests.faults.apps.handlers import GATE_TIMEOUT, open_for
from tests.faults.apps.reporting import WORKER_PID, history
from tests.faults.kit.process import until

NEVER = datetime(2100, 1, 1, tzinfo=UTC)


@schedule("ticking")
async def ticking(ctx: ScheduleContext, payload: dict[str, Any]) -> datetime | None:
    """Run each tick up to the last one."""
    with _recorded(ctx):
        return NEVER if _tick(ctx) >= datetime.fromisoformat(payload["last"]) else None


@schedule("gated_run")
async def gated_run(ctx: ScheduleContext, payload: dict[str, Any]) -> timedelta:
    """Run until a gate opens."""
    with _recorded(ctx):
        await until(open_for(ctx, payload), GATE_TIMEOUT, "the gate opens")
    return timedelta(days=1)


SCHEDULES = (ticking, gated_run)


def tick_name(schedule: object, tick: datetime) -> str:
    """The name of a run in the history."""
    return f"{schedule}@{tick.astimezone(UTC).isoformat()}"


@contextmanager
def _recorded(ctx: ScheduleContext) -> Iterator[None]:
    worker, name = os.environ[WORKER_PID], tick_name(ctx.job_id, _tick(ctx))
    history().started(name, ctx.lease, worker)
    try:
        yield
    finally:
        history().finished(name, ctx.lease, worker)


def _tick(ctx: ScheduleContext) -> datetime:
    assert ctx.schedule.next_run_at is not None
    return ctx.schedule.next_run_at
