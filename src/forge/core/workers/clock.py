"""The database's time by a monotonic clock, and when a worker's heartbeats were last accepted."""

# Seconds for which the best reading is valid: two clocks drift apart.
GOOD_FOR = 60.0


class DatabaseClock:
    """How far the database's time lies ahead of a monotonic clock here.

    The database reads its clock somewhere between the request and the answer, so that a reading is
    wrong by at most half of the round trip.
    """

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.error = float("inf")
        self._read_at = float("-inf")

    def read(self, sent_at: float, answered_at: float, database_time: float) -> None:
        """Take a reading into account; times in seconds."""
        error = (answered_at - sent_at) / 2
        if error <= self.error or answered_at - self._read_at > GOOD_FOR:
            self.ahead = database_time - (sent_at + answered_at) / 2
            self.error = error
            self._read_at = answered_at


# How long before that its handlers are asked to stop: a part of dead_after, at most a second.
PART = 1 / 6
LONGEST_MARGIN = 1.0


class SilenceClock:
    """When a worker was last heard; times are seconds of its own monotonic clock.

    A heartbeat counts from when it was sent: the database wrote it later, and counts from then. A
    server that refuses every worker counts like a heartbeat: no worker may judge another before it
    was heard itself for `dead_after` again.
    """

    def __init__(self, dead_after: float) -> None:
        self.dead_after = dead_after
        self.margin = min(dead_after * PART, LONGEST_MARGIN)
        self._heard_at = 0.0
        self._safe_since = 0.0

    def heard(self, sent_at: float) -> None:
        """Record that a heartbeat which was sent at this time was accepted."""
        self._heard_at = sent_at
        self._safe_since = max(self._safe_since, sent_at)

    def refused(self, asked_at: float) -> None:
        """Record that every host refused at this time, so that no worker was heard."""
        self._safe_since = max(self._safe_since, asked_at)

    def is_heard(self, now: float) -> bool:
        """Whether the last heartbeat is recent enough to start something new."""
        return now - self._heard_at < self.dead_after - self.margin

    def until_stop(self, now: float) -> float:
        """How many seconds from now handlers have to be asked to stop."""
        return self._safe_since + self.dead_after - self.margin - now
