"""How long a worker may go on without being heard before another may take its jobs."""

# How long before that its handlers are asked to stop: a part of dead_after, at most a second.
PART = 1 / 6
LONGEST_MARGIN = 1.0


class Hearing:
    """When a worker was last heard; times are seconds of its own monotonic clock.

    A heartbeat counts from when it was sent: the database wrote it later, and counts from then. A
    server that refuses everybody counts like a heartbeat: no worker may judge another before it was
    heard itself for `dead_after` again.
    """

    def __init__(self, dead_after: float) -> None:
        self.dead_after = dead_after
        self.margin = min(dead_after * PART, LONGEST_MARGIN)
        self._heard_at = 0.0
        self._safe_since = 0.0

    def heard(self, sent_at: float) -> None:
        """A heartbeat that was sent then has been accepted."""
        self._heard_at = sent_at
        self._safe_since = max(self._safe_since, sent_at)

    def refused(self, asked_at: float) -> None:
        """Every host that was asked then refused, so that nobody was heard."""
        self._safe_since = max(self._safe_since, asked_at)

    def is_heard(self, now: float) -> bool:
        """Whether the last heartbeat is young enough to begin something new."""
        return now - self._heard_at < self.dead_after - self.margin

    def until_stop(self, now: float) -> float:
        """How many seconds from now handlers have to be asked to stop."""
        return self._safe_since + self.dead_after - self.margin - now

    def until_taken(self, now: float) -> float:
        """How many seconds from now another worker may take this one's jobs."""
        return self._safe_since + self.dead_after - now
