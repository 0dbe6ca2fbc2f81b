"""What `forge top` shows: one reading of the statistics, the overview and the findings."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forge.core.finding import Finding
from forge.core.job_statistics import JobStatistics, Percentiles, TypeStatistics
from forge.core.overview import Overview

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.backlog import BacklogItem

# The checks of `forge doctor` send many statements.
FINDINGS_EVERY = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeLine:
    """One job type: how it did in the window, and what waits and runs now."""

    job_type: str
    per_minute: float = 0.0
    completed: int = 0
    failed: int = 0
    failed_percent: float | None = None
    retried: int = 0
    crashed: int = 0
    wait_ms: Percentiles = field(default_factory=Percentiles)
    run_ms: Percentiles = field(default_factory=Percentiles)
    waiting: int = 0
    # Whether no more wait than were counted.
    is_exact: bool = True
    oldest_seconds: float | None = None
    running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state at one moment, and the statistics of the window before it."""

    at: datetime
    last: str
    overview: Overview
    findings: Sequence[Finding]
    statistics: JobStatistics
    types: Sequence[TypeLine]

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        plain = asdict(self)
        statistics = plain.pop("statistics")
        return plain | {"from": statistics["since"], "to": statistics["until"], **statistics}


class SnapshotReader:
    """Reads snapshots, and the findings less often."""

    def __init__(self, app: "Forge") -> None:
        self._app = app
        self._findings: Sequence[Finding] = ()
        self._checked_at = float("-inf")

    async def read(self, last: str) -> Snapshot:
        """Return the present state, with statistics of this time before now."""
        app = self._app
        if time.monotonic() - self._checked_at >= FINDINGS_EVERY:
            self._findings = await app.findings()
            self._checked_at = time.monotonic()
        overview = await app.overview()
        totals = await app.statistics_by_type("type", last=last)
        return Snapshot(
            at=overview.at,
            last=last,
            overview=overview,
            findings=self._findings,
            statistics=await app.statistics(last=last),
            types=type_lines(totals.items, await app.backlog()),
        )


def type_lines(
    totals: Sequence[TypeStatistics], backlog: "Sequence[BacklogItem]"
) -> list[TypeLine]:
    """Join the totals and the backlog of each type; Forge's own types are left out."""
    known: dict[str, dict[str, Any]] = defaultdict(dict)
    same = ("per_minute", "completed", "failed", "failed_percent", "retried", "crashed")
    for total in totals:
        if total.job_type is not None:
            figures = {name: getattr(total, name) for name in (*same, "wait_ms", "run_ms")}
            known[total.job_type] |= figures
    for item in backlog:
        line = known[item.job_type]
        line["waiting"] = line.get("waiting", 0) + item.ready
        line["is_exact"] = line.get("is_exact", True) and item.is_exact
        line["running"] = line.get("running", 0) + item.running
        ages = (line.get("oldest_seconds"), item.oldest_seconds)
        line["oldest_seconds"] = max((age for age in ages if age is not None), default=None)
    return [
        TypeLine(job_type=name, **figures)
        for name, figures in sorted(known.items())
        if not name.startswith("forge.")
    ]
