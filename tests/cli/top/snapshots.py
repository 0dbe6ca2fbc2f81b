"""Snapshots of a system, without a database."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from forge.cli.top.snapshot import Snapshot, TypeLine
from forge.core.finding import Finding
from forge.core.job_counts import BoundedCount
from forge.core.job_statistics import JobStatistics, Percentiles, StatisticsPoint
from forge.core.lifecycle import Status
from forge.core.overview import OldestReady, Overview, SlotUse, WorkersByState

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def line(name: str, **figures: Any) -> TypeLine:
    """Return a type; `wait` and `run` are its p95 in milliseconds."""
    for what in ("wait", "run"):
        if (value := figures.pop(what, None)) is not None:
            figures[f"{what}_ms"] = Percentiles(value / 2, value, value * 2)
    return TypeLine(job_type=name, **figures)


def snapshot(*types: TypeLine, findings: tuple[Finding, ...] = ()) -> Snapshot:
    """Return a snapshot with these types."""
    points = [
        StatisticsPoint(at=NOW + timedelta(minutes=n), completed=n, wait_ms=Percentiles(1, n, n))
        for n in range(16)
    ]
    return Snapshot(
        at=NOW,
        last="15m",
        overview=Overview(
            at=NOW,
            jobs={
                Status.PENDING: BoundedCount(1200, "at_least"),
                Status.RETRY: BoundedCount(4, "exact"),
                Status.RUNNING: BoundedCount(37, "exact"),
            },
            oldest_ready=OldestReady(
                job_id=UUID(int=1),
                job_type="export_users",
                queue="default",
                scheduled_at=NOW,
                waiting_seconds=250,
            ),
            slots=SlotUse(in_use=37, total=80),
            workers=WorkersByState(alive=4, drained=1, draining=0, dead=0),
            dead_letters_waiting=12,
            schedules_failing=BoundedCount(1, "exact"),
            pauses=(),
        ),
        findings=findings,
        statistics=JobStatistics(
            since=NOW, until=NOW + timedelta(minutes=16), step=timedelta(minutes=1), series=points
        ),
        types=types,
    )
