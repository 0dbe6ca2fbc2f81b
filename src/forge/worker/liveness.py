"""What a worker knows about its own heartbeats, shared by its event loop and its heart's thread."""

import time
from typing import NamedTuple, Self

from forge.config.settings import Config
from forge.core.workers.clock import DatabaseClock, SilenceClock


class HeartbeatTiming(NamedTuple):
    """How often a worker sends heartbeats, and when it counts as dead, in seconds."""

    interval: float
    dead_after: float
    # How long a job, or a run, whose owner has no row shows no sign of life before it is rescued.
    job_stale_after: float
    run_stale_after: float

    @classmethod
    def of(cls, config: Config) -> Self:
        settings = config.worker
        return cls(
            settings.heartbeat_interval.total_seconds(),
            settings.dead_after.total_seconds(),
            config.job_stale_threshold.total_seconds(),
            settings.stale_threshold.total_seconds(),
        )

    @property
    def statement_timeout(self) -> float:
        """How long a heartbeat may take: after that there is time for a second connection."""
        return max((self.dead_after - self.interval) / 2, 0.5)


class Liveness:
    """Whether other workers consider this one alive, and whether it may judge others."""

    def __init__(self, timing: HeartbeatTiming) -> None:
        self.timing = timing
        self.silence = SilenceClock(timing.dead_after)
        self.clock = DatabaseClock(time.time() - time.monotonic())
        self._steady_since: float | None = None
        self._last_beat = 0.0
        self._full_at = float("-inf")

    def beat(self, sent_at: float, now: float, database_time: float, full_at: float) -> bool:
        """Record a heartbeat; return whether the worker was silent for too long before it.

        `full_at` is when the server was last known to have no connection left.
        """
        self.clock.read(sent_at, now, database_time)
        if self._steady_since is None or now - self._last_beat > self.timing.dead_after / 2:
            self._steady_since = now
        self._last_beat = now
        self._full_at = max(self._full_at, full_at)
        was_silent = not self.is_heard()
        self.silence.heard(sent_at)
        return was_silent

    def lost(self) -> None:
        """Record a heartbeat that did not get through."""
        self._steady_since = None

    def is_heard(self) -> bool:
        """Whether the last heartbeat is recent enough to start something new."""
        return self.silence.is_heard(time.monotonic())

    def is_cut_off(self) -> bool:
        """Whether the database has been silent for so long that handlers have to stop."""
        return self.silence.until_stop(time.monotonic()) <= 0

    def may_judge(self) -> bool:
        """Whether this worker was heard long enough to declare a silent one dead.

        While the server has no connection left, and for `dead_after` from then on, a living worker
        may be silent only because it cannot connect.
        """
        since = self._steady_since
        if since is None:
            return False
        return self._last_beat - max(since, self._full_at) >= self.timing.dead_after
