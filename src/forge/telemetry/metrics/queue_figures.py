"""Metrics of the queue, refreshed from the database at intervals."""

from collections import Counter
from collections.abc import Awaitable, Mapping
from time import monotonic
from typing import Protocol, TypeVar

from forge.core.lifecycle import WAITING
from forge.core.workers.lanes import worker_group_name
from forge.store import listing, queue_statistics
from forge.store.statement import Row, Rows, Statement
from forge.telemetry.metrics.instruments import Gauge, Labels
from forge.telemetry.metrics.registries import QueueGauges

T = TypeVar("T")
# Up to this many jobs of a lane are counted exactly; longer lanes are estimated from a sample.
CAP = 10_000
SAMPLE_BLOCKS = 500
# Seconds between refreshes; more if they would take more than a fiftieth of the time.
INTERVAL = 5.0
COST_SHARE = 50


class StatementRunner(Protocol):
    """Runs a statement."""

    def __call__(self, statement: Statement[T], /) -> Awaitable[T]: ...


class QueueWatch:
    """Refreshes the gauges of the queue."""

    def __init__(self, gauges: QueueGauges, dead_after: float, depth: Gauge | None = None) -> None:
        self._gauges = gauges
        self._depth = depth
        self._dead_after = dead_after
        self._next = 0.0
        self._types: set[str] = set()

    @property
    def is_due(self) -> bool:
        return monotonic() >= self._next

    async def refresh(self, run: StatementRunner) -> None:
        """Read the state of the queue from the database."""
        began = monotonic()
        self._next = began + INTERVAL  # concurrent callers do not refresh too
        lanes = await run(queue_statistics.depth(CAP))
        self._types |= {lane["job_type"] for lane in lanes}
        if self._depth is not None:
            show(self._depth, self._known(await _due(lanes, run)))
        gauges = self._gauges
        show(gauges.oldest_due, self._known(_oldest(lanes)))
        show(gauges.dead_letters, _letters(await run(queue_statistics.dead_letters())))
        groups = await run(queue_statistics.worker_groups(self._dead_after))
        show(
            gauges.workers_alive,
            {
                (worker_group_name(group.capabilities, group.queues),): group.workers
                for group in groups
            },
        )
        snapshots = await run(queue_statistics.oldest_snapshots())
        show(gauges.snapshot_seconds, _column(snapshots, "seconds"))
        show(gauges.snapshot_transactions, _column(snapshots, "transactions"))
        took = monotonic() - began
        self._next = monotonic() + max(INTERVAL, took * COST_SHARE)

    def rest(self) -> None:
        """Clear the gauges, because another process reports them."""
        self._next = monotonic() + INTERVAL
        for gauge in vars(self._gauges).values():
            show(gauge, {})
        if self._depth is not None:
            show(self._depth, {})

    def _known(self, found: Mapping[str, float]) -> dict[Labels, float]:
        """Include types that had jobs before, with 0."""
        return {(job_type,): found.get(job_type, 0) for job_type in self._types}


def show(gauge: Gauge, amounts: Mapping[Labels, float]) -> None:
    gauge.read = lambda: amounts


async def _due(lanes: Rows, run: StatementRunner) -> dict[str, float]:
    """Count due jobs by type; estimate types with a lane that exceeds the cap."""
    due: Counter[str] = Counter()
    for lane in lanes:
        due[lane["job_type"]] += lane["count"]
    long = {lane["job_type"] for lane in lanes if lane["count"] >= CAP}
    if long:
        estimated: Counter[str] = Counter()
        for row in await run(listing.count_sample(SAMPLE_BLOCKS)):
            if row["status"] in WAITING:
                estimated[row["job_type"]] += row["count"]
        for job_type in long:
            due[job_type] = max(due[job_type], estimated[job_type])
    return dict(due)


def _oldest(lanes: Rows) -> dict[str, float]:
    oldest: dict[str, float] = {}
    for lane in lanes:
        oldest[lane["job_type"]] = max(oldest.get(lane["job_type"], 0), lane["oldest"])
    return oldest


def _letters(found: Rows) -> dict[Labels, float]:
    return {(row["job_type"],): row["letters"] for row in found}


def _column(found: Rows, name: str) -> dict[Labels, float]:
    return {(row["kind"],): _number(row, name) for row in found}


def _number(row: Row, name: str) -> float:
    value = row[name]
    return 0.0 if value is None else max(float(value), 0.0)
