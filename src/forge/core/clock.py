"""What time it is in the database, told from a clock that nobody sets."""

# How long the best reading is good for: no two clocks run alike.
GOOD_FOR = 60.0


class DatabaseClock:
    """How far the database's time lies ahead of a monotonic clock here.

    A reading is sent and answered; the database looked at its clock somewhere in between, so that
    the quicker the answer, the better the reading: it is wrong by half of the trip at most.
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
