"""How often to fetch: the interval that a feed asks for, within limits, longer while it fails."""

import os
from dataclasses import dataclass
from datetime import timedelta

from forge.core.duration import parse_duration

A_WEEK = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class Hints:
    """What a feed and its server say about the lifetime of a response."""

    max_age: timedelta | None = None
    ttl_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals in minutes, and the length of a minute, which is shorter in a demonstration."""

    minute: timedelta = timedelta(minutes=1)
    shortest: int = 15
    usual: int = 60
    longest: int = 24 * 60
    first_backoff: int = 5

    @classmethod
    def from_environment(cls) -> "Pace":
        """Read `FEEDS_MINUTE`, such as `20ms`."""
        return cls(parse_duration(os.environ.get("FEEDS_MINUTE", "1m"), what="FEEDS_MINUTE"))

    def after_success(self, hints: Hints) -> timedelta:
        """Return the interval that the feed asks for, within the limits."""
        asked = hints.max_age or timedelta(0)
        if hints.ttl_minutes is not None:
            asked = max(asked, hints.ttl_minutes * self.minute)
        wanted = asked or self.usual * self.minute
        return min(max(wanted, self.shortest * self.minute), self.longest * self.minute)

    def after_failure(self, failures: int, retry_after: timedelta | None) -> timedelta:
        """Double the interval after each failure in a row, but wait at least `retry_after`."""
        doubled: int = self.first_backoff * 2 ** min(failures - 1, 20)
        wait = min(doubled, self.longest) * self.minute
        if retry_after is None:
            return wait
        return min(max(wait, retry_after), max(wait, A_WEEK * timedelta(minutes=1)))
