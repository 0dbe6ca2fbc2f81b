"""Claims on their way: what they bring is neither unknown to the worker nor in its hands yet."""


class Claims:
    """The claims that were sent and whose answers are not dealt with yet; times in seconds."""

    def __init__(self, dead_after: float) -> None:
        self._dead_after = dead_after
        self._sent_at: dict[int, float] = {}
        self._count = 0
        # Whether an answer got lost, so that jobs may be the worker's without its knowledge.
        self.lost_any = False

    def send(self, now: float) -> int:
        """A claim is sent; return its number."""
        self._count += 1
        self._sent_at[self._count] = now
        return self._count

    def is_late(self, claim: int, now: float) -> bool:
        """Whether the worker may have been taken for dead, and what it claimed given to others."""
        return now - self._sent_at[claim] > self._dead_after

    def end(self, claim: int) -> None:
        """What a claim brought has its place, or its answer will never come."""
        del self._sent_at[claim]

    def any_since(self, moment: float) -> bool:
        """Whether a claim that was sent before this moment may still be answered."""
        return any(sent_at <= moment for sent_at in self._sent_at.values())
