"""When a waiting job will start: from how quickly its line moved lately, with honest bounds."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

# Fewer starts than this say nothing, and neither do those of longer ago.
FEWEST = 3
LATELY = 600.0
# How many standard deviations the bounds lie away, and the widest they get.
DEVIATIONS = 2.0
LEAST_CONFIDENCE = 0.1
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
    """Seconds until a start: not before the one, and by the other if the line moves as it did."""

    low: float
    high: float | None


def estimate(
    ahead: int, due_in: float, starts: Sequence[float], *, is_capped: bool = False
) -> Eta | None:
    """Say when a job starts that has so many before it; None where the line did not move lately.

    `starts` are the latest starts of its line, in seconds ago. With `is_capped` there are more
    before it than were counted, so that nothing bounds the time from above.
    """
    lately = sorted(ago for ago in starts if ago <= LATELY)
    if len(lately) < FEWEST:
        return None
    rates = [_rate(lately[:count]) for count in _windows(len(lately))]
    doubt = DEVIATIONS / sqrt(len(lately))
    quickest = max(rates) * (1 + doubt)
    slowest = min(rates) * max(1 - doubt, LEAST_CONFIDENCE)
    low = max(due_in, ahead / quickest, 0.0)
    return Eta(low, None if is_capped else max(due_in, (ahead + 1) / slowest, low))


def coarse(eta: Eta) -> Eta:
    """Round outwards to a few steps, which say when and hardly how busy others are.

    >>> coarse(Eta(31.5, 52.8)), coarse(Eta(3, None))
    (Eta(low=30.0, high=60.0), Eta(low=0.0, high=None))
    """
    low = max(step for step in STEPS if step <= max(eta.low, 0.0))
    if eta.high is None:
        return Eta(low, None)
    return Eta(low, next((step for step in STEPS if step >= eta.high and step > 0), None))


def coarse_place(place: int) -> int:
    """Return the power of ten, from ten on, that a place does not exceed.

    >>> coarse_place(1), coarse_place(10), coarse_place(11)
    (10, 10, 100)
    """
    power = 10
    while power < place:
        power *= 10
    return power


def _windows(count: int) -> list[int]:
    """Look at all, a half and a quarter of them: there a line shows that speeds up or stalls."""
    return [size for size in (count, count // 2, count // 4) if size >= FEWEST]


def _rate(lately: Sequence[float]) -> float:
    """Count from the first of these starts until now, so that a line that stands still slows."""
    return len(lately) / max(lately[-1], 0.001)
