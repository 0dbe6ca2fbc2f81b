"""Estimates when a waiting job will start, from the recent throughput of its lane."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

# The minimum number of starts for an estimate, and how many seconds back they count.
MIN_STARTS = 3
RECENT_SECONDS = 600.0
# The width of the bounds in standard deviations, and their limit.
DEVIATIONS = 2.0
MIN_CONFIDENCE = 0.1
# Seconds to which bounds are rounded for tenants: from ten seconds to a month.
STEPS = (
    0.0,
    10.0,
    30.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    14400.0,
    43200.0,
    86400.0,
    604800.0,
    2592000.0,
)


class Eta(NamedTuple):
    """Bounds in seconds on when a job starts, if its lane keeps its recent throughput."""

    low: float
    high: float | None


def estimate(
    ahead: int, due_in: float, starts: Sequence[float], *, is_capped: bool = False
) -> Eta | None:
    """Estimate when a job with `ahead` jobs before it starts; None without recent starts.

    `starts` are the latest starts of its lane, in seconds ago. With `is_capped` more jobs are
    ahead of it than were counted, so there is no upper bound.
    """
    recent = sorted(ago for ago in starts if ago <= RECENT_SECONDS)
    if len(recent) < MIN_STARTS:
        return None
    rates = [_rate(recent[:count]) for count in _windows(len(recent))]
    doubt = DEVIATIONS / sqrt(len(recent))
    quickest = max(rates) * (1 + doubt)
    slowest = min(rates) * max(1 - doubt, MIN_CONFIDENCE)
    low = max(due_in, ahead / quickest, 0.0)
    return Eta(low, None if is_capped else max(due_in, (ahead + 1) / slowest, low))


def coarse(eta: Eta) -> Eta:
    """Round outwards to a few steps, which reveal little about the load of other tenants.

    >>> coarse(Eta(31.5, 52.8)), coarse(Eta(3, None))
    (Eta(low=30.0, high=60.0), Eta(low=0.0, high=None))
    """
    low = max(step for step in STEPS if step <= max(eta.low, 0.0))
    if eta.high is None:
        return Eta(low, None)
    return Eta(low, next((step for step in STEPS if step >= eta.high and step > 0), None))


def coarse_place(place: int) -> int:
    """Return the smallest power of ten, at least ten, that is not below a place.

    >>> coarse_place(1), coarse_place(10), coarse_place(11)
    (10, 10, 100)
    """
    power = 10
    while power < place:
        power *= 10
    return power


def _windows(count: int) -> list[int]:
    """Return all, half and a quarter of the starts, to detect a lane that speeds up or stalls."""
    return [size for size in (count, count // 2, count // 4) if size >= MIN_STARTS]


def _rate(recent: Sequence[float]) -> float:
    """Return starts per second up to now, so that the rate of a stalled lane drops."""
    return len(recent) / max(recent[-1], 0.001)
