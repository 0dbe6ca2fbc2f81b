"""What a scenario reports: the figures of its row in the table."""

from dataclasses import dataclass, field
from enum import StrEnum

# With the default settings a dead worker's jobs, and all work after an outage, go on within this.
RECOVERY = 10.0


class Verdict(StrEnum):
    """Whether the promise held."""

    HELD = "held"
    FAILED = "failed"
    NOT_RUN = "not run"


class CannotRun(Exception):
    """What the scenario needs is missing on this machine; the message says what."""


class PromiseBroken(Exception):
    """What must hold did not; the message says what was seen instead."""


@dataclass
class Outcome:
    """The figures of one row, over all its runs."""

    runs: int = 0
    # None: the scenario has no jobs of its own, or does not measure this.
    jobs: int | None = None
    lost: int | None = None
    duplicated: int | None = None
    overlap: float | None = None
    stopped: int | None = None
    recovery: float | None = None
    verdict: Verdict = Verdict.HELD
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: "Outcome") -> None:
        """Take in another run of the same row."""
        self.runs += other.runs
        for name in ("jobs", "lost", "duplicated", "overlap", "stopped"):
            if getattr(other, name) is not None:
                setattr(self, name, (getattr(self, name) or 0) + getattr(other, name))
        if other.recovery is not None:
            self.recovery = max(self.recovery or 0.0, other.recovery)
        self.notes += [note for note in other.notes if note not in self.notes]
        self.seconds += other.seconds
        if other.verdict is not Verdict.HELD and self.verdict is not Verdict.FAILED:
            self.verdict = other.verdict
