"""What a scenario reports: the figures of its row in the table."""

from dataclasses import dataclass, field
from enum import StrEnum

# The limit, with default settings, for rescuing a dead worker's jobs and for work after an outage.
RECOVERY = 10.0


class Verdict(StrEnum):
    """Whether the promise held."""

    HELD = "held"
    FAILED = "failed"
    NOT_RUN = "not run"


class CannotRun(Exception):
    """This machine lacks something that the scenario needs; the message names it."""


class PromiseBroken(Exception):
    """A promise did not hold; the message says what was observed instead."""


@dataclass
class Outcome:
    """The figures of one row, over all its runs."""

    runs: int = 0
    # None: the scenario has no jobs, or does not measure this.
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
        """Add another run of the same row."""
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
