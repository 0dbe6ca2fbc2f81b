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


def _windows(count: int) -> list[int]:
    """Look at all, a half and a quarter of them: there a line shows that speeds up or stalls."""
    return [size for size in (count, count // 2, count // 4) if size >= FEWEST]


def _rate(lately: Sequence[float]) -> float:
    """Count from the first of these starts until now, so that a line that stands still slows."""
    return len(lately) / max(lately[-1], 0.001)
