"""The interface of what a worker claims: jobs, and the runs of schedules."""

from collections.abc import Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from forge.core.attempt_log import LogLine
from forge.core.events import AttemptEnded
from forge.core.job import Job
from forge.core.outcome import Ack, Outcome
from forge.store.jobs import AttemptUpdate, Lane, LaneCursor
from forge.store.statement import Rows, Statement
from forge.worker.attempts import Attempt
from forge.worker.batch_acker import BatchAcker

J = TypeVar("J", bound=Job)


class WorkSource(Protocol[J]):
    """A table to claim from: how its work starts, settles, is released and is reported.

    A schedule run is a `Job`, too: the parts of a worker that need no statement treat both alike.
    """

    @property
    def acker(self) -> BatchAcker:
        """Writes the ends of its attempts."""

    def owns(self, lane: Lane) -> bool:
        """Whether a lane is one of this table."""

    def survey(self) -> Statement[list[Lane]]:
        """Return the lanes that have work."""

    def claim(
        self, cursors: list[LaneCursor], limit: int, *, start: bool, lanes: Sequence[Lane]
    ) -> Statement[list[J]]:
        """Claim what is due and not paused; `lanes` describes them, unless they are built-in."""

    def claimed(self, jobs: Sequence[J]) -> None:
        """Report what was claimed."""

    def attempt(self, job: J, *, takes_slot: bool = True) -> Attempt | None:
        """Return an attempt with its definition and context; None for an unknown type."""

    def begin(self, job: J) -> None:
        """Write that a job has begun which was claimed before there was a slot for it."""

    def settle(
        self,
        job: J,
        outcome: Outcome,
        last_update: AttemptUpdate | None,
        seconds: float,
        began: float | None,
    ) -> Ack:
        """Decide what an outcome means, have it written, and return it.

        `began` is when a successful attempt began whose start was not reported; otherwise None.
        """

    def write_log(self, job: J, lines: Sequence[LogLine]) -> None:
        """Have the last lines of an attempt written before its end."""

    def release(self, job: J, *, has_begun: bool = False) -> None:
        """Make a job claimable again, with its attempt given back."""

    def report_end(self, ended: AttemptEnded) -> None:
        """Report an attempt that was settled just now."""

    def report_stopped(self, job: J, seconds: float) -> None:
        """Report an attempt that was stopped because it no longer owns its job."""

    def report_completed(self, job: J, seconds: float, began: float | None) -> None:
        """Report a job that its handler completed in a transaction of its own."""

    async def add_output(self, job: J, output: str | None) -> None:
        """Write what a handler returned after it completed its job itself."""

    def schedule_json(self, job: J) -> str | None:
        """Return the schedule of a run, for a child process; None for a job."""

    def reconcile(self, held: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
        """Compare what this worker holds with what the database says."""

    def give_back(self, job_id: UUID, lease: int) -> Statement[list[UUID]]:
        """Release what the database says is this worker's, and this worker does not know."""
