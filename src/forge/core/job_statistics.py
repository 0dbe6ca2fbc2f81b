"""Statistics of jobs over time: outcomes and percentiles, in steps of a window."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

from forge.core.duration import format_duration, parse_duration
from forge.core.errors import InvalidValue
from forge.core.histogram import Mark, percentile

# What is counted, in the order of the columns. The first four are those of a series.
OUTCOMES = (
    "completed",
    "failed",
    "retried",
    "crashed",
    "cancelled",
    "released",
    "snoozed",
    "reprocessed",
)
K = TypeVar("K")
# How totals are added up.
Group = Literal["type_and_queue", "type", "queue", "all"]
GROUPS: tuple[str, ...] = get_args(Group)
MAX_POINTS = 1500
DEFAULT_RANGE = timedelta(hours=1)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
# The rows of tenants cover five minutes each.
TENANT_STEP = timedelta(minutes=5)
# Rows older than this cover an hour each.
MINUTES_KEPT = timedelta(hours=48)
# A step that is not given is the first of these with at most this many points.
_STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
)
_FEW_POINTS = 200
# How far in the future a range may end: it may be rounded up to whole steps.
LATEST = timedelta(days=1)
# Steps begin at multiples of their length after this.
ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


class Tally:
    """What a worker counted of one job type and queue in one minute."""

    __slots__ = ("outcomes", "runs", "waits")

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        # Waiting and running times, by their marks.
        self.waits: Counter[Mark] = Counter()
        self.runs: Counter[Mark] = Counter()

    def copy(self) -> "Tally":
        return Tally().add(self)

    def add(self, other: "Tally") -> Self:
        self.outcomes.update(other.outcomes)
        self.waits.update(other.waits)
        self.runs.update(other.runs)
        return self

    def subtract(self, other: "Tally") -> Self:
        self.outcomes -= other.outcomes
        self.waits -= other.waits
        self.runs -= other.runs
        return self

    @property
    def size(self) -> int:
        """How much was counted; it grows with each event."""
        return self.outcomes.total() + self.waits.total()


class StatisticsWindow(NamedTuple):
    """From when, until when, and in which steps statistics are read."""

    since: datetime
    until: datetime
    step: timedelta
    # How much of it has passed.
    minutes: float

    @classmethod
    def of(
        cls,
        now: datetime,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta | str | None = None,
        of_tenant: bool = False,
        is_series: bool = True,
    ) -> Self:
        """Return a window of whole steps; without a step, one with at most 200 points.

        Before the last 48 hours a step is at least an hour, and for a tenant five minutes.
        """
        until = now if until is None else until
        since = until - DEFAULT_RANGE if since is None else since
        for moment in (since, until):
            if moment.tzinfo is None:
                raise InvalidValue(f"{moment} has no time zone; end it with Z or +01:00")
            if not ORIGIN <= moment <= now + LATEST:
                raise InvalidValue(
                    f"statistics are from {ORIGIN:%Y-%m-%d} until tomorrow, not of {moment}"
                )
        if since >= until:
            raise InvalidValue(
                f"the range begins at {since.isoformat()} and ends at {until.isoformat()}; let it "
                "end later"
            )
        finest = TENANT_STEP if of_tenant else MINUTE
        if since < now - MINUTES_KEPT:
            finest = HOUR
        length = finest
        if step is not None:
            length = _step(step, finest)
        elif is_series:
            length = _default_step(until - since, finest)
        begin = _floor(since, length)
        minutes = (min(until, now) - begin) / MINUTE
        window = cls(begin, _ceiling(until, length), length, max(minutes, 1.0))
        if is_series and window.points > MAX_POINTS:
            raise InvalidValue(
                f"step {format_duration(length)} gives {window.points:,} points; at most "
                f"{MAX_POINTS:,} are allowed, so make the step longer or the range shorter"
            )
        return window

    @property
    def points(self) -> int:
        return (self.until - self.since) // self.step

    def times(self) -> Iterable[datetime]:
        """Yield the beginning of each step."""
        return (self.since + place * self.step for place in range(self.points))


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of durations in milliseconds; None where nothing was measured."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None

    @classmethod
    def of(cls, histogram: Mapping[int, int]) -> Self:
        shares = (0.5, 0.95, 0.99)
        return cls(*(_milliseconds(percentile(histogram, share)) for share in shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPoint:
    """One step of a series."""

    at: datetime
    completed: int = 0
    failed: int = 0
    retried: int = 0
    crashed: int = 0
    wait_ms: Percentiles = field(default_factory=Percentiles)
    run_ms: Percentiles = field(default_factory=Percentiles)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatistics:
    """Statistics in steps; `series` has every step, also those without jobs."""

    since: datetime
    until: datetime
    step: timedelta
    series: list[StatisticsPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStatistics:
    """The totals of one job type and queue; what they are added up over is None."""

    job_type: str | None
    queue: str | None
    # Jobs that ended as completed or failed, per minute.
    per_minute: float
    # The percentage of these that failed; None if none ended.
    failed_percent: float | None
    completed: int
    failed: int
    retried: int
    crashed: int
    cancelled: int
    released: int
    snoozed: int
    reprocessed: int
    wait_ms: Percentiles
    run_ms: Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsByType:
    """The totals of each job type and queue that had jobs, the most frequent first."""

    since: datetime
    until: datetime
    items: list[TypeStatistics]


class Sums(NamedTuple):
    """What the database added up for one step, or for one type and queue."""

    key: Any
    outcomes: Mapping[str, int]
    waits: Mapping[int, int]
    runs: Mapping[int, int]


def series(window: StatisticsWindow, found: Iterable[Sums]) -> JobStatistics:
    """Return a point for each step of a window."""
    known = {sums.key: sums for sums in found}
    points = [
        _point(sums) if (sums := known.get(at)) else StatisticsPoint(at=at) for at in window.times()
    ]
    return JobStatistics(since=window.since, until=window.until, step=window.step, series=points)


def by_type(
    window: StatisticsWindow, found: Iterable[Sums], group: Group = "type_and_queue"
) -> StatisticsByType:
    """Return the totals of a window by type and queue, or added up by one of them."""
    sums = _added_up(found, group)
    items = sorted((_totals(window, one) for one in sums), key=lambda item: -item.per_minute)
    return StatisticsByType(since=window.since, until=window.until, items=items)


def _added_up(found: Iterable[Sums], group: Group) -> Iterable[Sums]:
    if group == "type_and_queue":
        return found
    groups: dict[Any, list[Sums]] = {}
    for sums in found:
        job_type, queue = sums.key
        key = (job_type if group == "type" else None, queue if group == "queue" else None)
        groups.setdefault(key, []).append(sums)
    return [
        Sums(
            key,
            _sum(part.outcomes for part in parts),
            _sum(part.waits for part in parts),
            _sum(part.runs for part in parts),
        )
        for key, parts in groups.items()
    ]


def _sum(parts: Iterable[Mapping[K, int]]) -> Counter[K]:
    total: Counter[K] = Counter()
    for part in parts:
        total.update(part)  # keeps zeros
    return total


def _point(sums: Sums) -> StatisticsPoint:
    return StatisticsPoint(
        at=sums.key,
        **{name: sums.outcomes[name] for name in OUTCOMES[:4]},
        wait_ms=Percentiles.of(sums.waits),
        run_ms=Percentiles.of(sums.runs),
    )


def _totals(window: StatisticsWindow, sums: Sums) -> TypeStatistics:
    job_type, queue = sums.key
    failed = sums.outcomes["failed"]
    ended = sums.outcomes["completed"] + failed
    return TypeStatistics(
        job_type=job_type,
        queue=queue,
        per_minute=round(ended / window.minutes, 3),
        failed_percent=round(100 * failed / ended, 3) if ended else None,
        **sums.outcomes,
        wait_ms=Percentiles.of(sums.waits),
        run_ms=Percentiles.of(sums.runs),
    )


def _step(given: timedelta | str, finest: timedelta) -> timedelta:
    step = parse_duration(given, what="step")
    if step % MINUTE:
        raise InvalidValue(f"step must be whole minutes, not {format_duration(step)}")
    if step < finest or step % finest:
        raise InvalidValue(
            f"step must be a multiple of {format_duration(finest)} here, not "
            f"{format_duration(step)}: statistics are kept per minute for "
            f"{format_duration(MINUTES_KEPT)}, then per hour, and per five minutes for a tenant"
        )
    return step


def _default_step(length: timedelta, finest: timedelta) -> timedelta:
    for step in _STEPS:
        if step >= finest and length / step <= _FEW_POINTS:
            return step
    return timedelta(days=-(-length // (timedelta(days=1) * _FEW_POINTS)))


def _floor(moment: datetime, step: timedelta) -> datetime:
    return ORIGIN + (moment - ORIGIN) // step * step


def _ceiling(moment: datetime, step: timedelta) -> datetime:
    return ORIGIN - (ORIGIN - moment) // step * step


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds * 1000:.3g}")
