"""The pace of built-in jobs that act on many rows: how many are due, and when to continue."""

from datetime import timedelta
from typing import NamedTuple

PAUSE = 1.0
SHORTEST_PAUSE = 0.05
# A slice that is late by at most this many seconds catches up. A later one does not: the rate
# protects what the jobs call, also after all workers were down for an hour.
MAX_CATCH_UP = 0.25


class Pace(NamedTuple):
    """A wanted rate per second, and until when the rows that were due at it have been taken."""

    rate: float
    taken_until: float

    @property
    def pause(self) -> float:
        """Seconds between two slices."""
        return max(PAUSE, 1 / self.rate)

    def caught_up(self, now: float) -> "Pace":
        """Return the pace of a slice that begins now, which may be late."""
        earliest = now - self.pause - MAX_CATCH_UP
        # Another worker's clock may be ahead, by which the last slice was taken.
        return self._replace(taken_until=min(max(self.taken_until, earliest), now))

    def due(self, now: float) -> int:
        """How many rows are due by now.

        >>> Pace(10, 100.0).due(101.5)
        15
        """
        return round((now - self.taken_until) * self.rate)

    def after(self, count: int) -> "Pace":
        """Return the pace after rows were taken."""
        return self._replace(taken_until=self.taken_until + count / self.rate)

    def delay(self, now: float) -> timedelta:
        """Return how long to wait: not a whole pause, or the time of this slice would be lost."""
        left = self.taken_until + self.pause - now
        return timedelta(seconds=min(self.pause, max(SHORTEST_PAUSE, left)))
