"""How often to fetch: what feeds ask for, within limits, and more seldom while they fail."""

import os
from dataclasses import dataclass
from datetime import timedelta

from forge.core.duration import parse_duration

A_WEEK = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class Hints:
    """What a feed and its server say about how long an answer holds."""

    max_age: timedelta | None = None
    ttl_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """Spans in minutes, and how long a minute lasts: a demonstration has shorter ones."""

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
        """Wait as long as the feed asks for, but neither too short nor too long."""
        asked = hints.max_age or timedelta(0)
        if hints.ttl_minutes is not None:
            asked = max(asked, hints.ttl_minutes * self.minute)
        wanted = asked or self.usual * self.minute
        return min(max(wanted, self.shortest * self.minute), self.longest * self.minute)

    def after_failure(self, failures: int, retry_after: timedelta | None) -> timedelta:
        """Wait twice as long after each failure in a row, and never less than the server asks."""
        doubled: int = self.first_backoff * 2 ** min(failures - 1, 20)
        wait = min(doubled, self.longest) * self.minute
        if retry_after is None:
            return wait
        return min(max(wait, retry_after), max(wait, A_WEEK * timedelta(minutes=1)))
