"""One try at a job, from the moment a slot takes it until its slot is free again."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.job import Job
from forge.definitions.job import JobDefinition

if TYPE_CHECKING:
    from forge.jobs.context import JobContext
    from forge.worker.work_source import WorkSource

NEVER = float("inf")
# Seconds that a handler has to clean up before it is interrupted again.
CLEANUP_TIME = 0.9


class Stop(Enum):
    """Why an attempt is asked to stop before it is done."""

    TIMEOUT = "it ran longer than its timeout"
    CANCELLED = "its job was cancelled, or another worker has it"
    RELEASED = "the worker stops"
    CUT_OFF = "the database is silent, and another worker may take its job soon"


class Attempt:
    """A running handler and what is known of it."""

    __slots__ = (
        "_asked_at",
        "_interrupt",
        "began",
        "context",
        "deadline",
        "definition",
        "is_reported",
        "job",
        "source",
        "stop",
        "takes_slot",
        "task",
    )

    def __init__(
        self,
        job: Job,
        definition: JobDefinition[Any, Any],
        context: "JobContext",
        source: "WorkSource[Any]",
        *,
        takes_slot: bool = True,
    ) -> None:
        self.job = job
        self.definition = definition
        self.context = context
        self.source = source
        self.takes_slot = takes_slot
        self.began = 0.0
        # Whether its start was reported: that of a short attempt is reported with its end.
        self.is_reported = False
        self.deadline = NEVER
        self.stop: Stop | None = None
        self._asked_at = -NEVER
        self.task: asyncio.Task[None] | None = None
        # How to stop code that the event loop cannot cancel: a thread, or a child process.
        self._interrupt: Callable[[Stop], object] | None = None

    def begin(self, now: float) -> None:
        """Start the clock: until now the attempt waited for the loop."""
        timeout = self.job.timeout
        seconds = timeout.total_seconds() if timeout else self.definition.timeout_seconds
        self.began = now
        self.deadline = now + seconds

    def ask_to_stop(self, why: Stop) -> None:
        """Ask the handler to stop; the first reason stays, asking again at once does nothing."""
        self.stop = self.stop or why
        now = time.monotonic()
        if now - self._asked_at < CLEANUP_TIME:
            return
        self._asked_at = now
        if self._interrupt is not None:
            self._interrupt(self.stop)
        elif self.task is not None:
            self.task.cancel()

    def interrupt_by(self, interrupt: Callable[[Stop], object]) -> None:
        """Stop the attempt like this, instead of by a cancellation of its task."""
        self._interrupt = interrupt

    def interrupt_by_cancelling(self) -> None:
        """Stop the attempt by a cancellation of its task again."""
        self._interrupt = None

    @property
    def is_interruptible(self) -> bool:
        """Whether it runs in a thread or a child, which any thread can interrupt."""
        return self.began > 0 and self._interrupt is not None


class LiveAttempts(dict[tuple[UUID, int], Attempt]):
    """Every attempt that has not ended, by `(id, lease)`.

    A worker may claim a job again whose former attempt still runs in it: after a rescue by another
    worker, or after the handler completed a schedule's run in its own transaction and goes on.
    """

    def __init__(self) -> None:
        super().__init__()
        # By job: the attempt whose handler runs, and the newest one that waits for its end.
        self._current: dict[UUID, Attempt] = {}
        self._next: dict[UUID, Attempt] = {}

    def has_job(self, job_id: UUID) -> bool:
        return job_id in self._current

    def add(self, attempt: Attempt, run: Callable[[Attempt], None]) -> None:
        """Run an attempt, after the former one of its job if that has not ended."""
        job = attempt.job
        self[job.id, job.lease] = attempt
        if (former := self._current.setdefault(job.id, attempt)) is attempt:
            run(attempt)
        else:
            self._wait(attempt, former, run)

    def remove(self, attempt: Attempt, run: Callable[[Attempt], None]) -> None:
        """Forget an attempt that has ended, and run the next one of its job."""
        job = attempt.job
        del self[job.id, job.lease]
        if self._current.get(job.id) is not attempt:
            return
        if (following := self._next.pop(job.id, None)) is None:
            del self._current[job.id]
            return
        self._current[job.id] = following
        following.interrupt_by_cancelling()
        run(following)

    def let_go(self, job_id: UUID, lease: int) -> None:
        """Stop an attempt whose lease has ended."""
        attempt = self.get((job_id, lease))
        if attempt is None or attempt.context.completed or attempt.context.is_committing:
            # A handler that completes its job itself may finish its own work. The next run may be
            # claimed before the answer to the commit; a commit that fails raises in the handler.
            return
        attempt.context.cancelled = True
        attempt.ask_to_stop(Stop.CANCELLED)

    def _wait(self, attempt: Attempt, former: Attempt, run: Callable[[Attempt], None]) -> None:
        superseded = self._next.get(attempt.job.id)
        for old in (former, superseded):
            if old is not None:
                self.let_go(old.job.id, old.job.lease)
        self._next[attempt.job.id] = attempt
        # Asked to stop before its turn, it ends at once, and its handler never runs.
        attempt.interrupt_by(lambda why: self._give_up(attempt, run))

    def _give_up(self, attempt: Attempt, run: Callable[[Attempt], None]) -> None:
        if self._next.get(attempt.job.id) is attempt:
            del self._next[attempt.job.id]
            attempt.interrupt_by_cancelling()
            run(attempt)


# How many seconds a row of attempts may keep the loop before other tasks have a turn.
LONGEST_ROW = 0.002


class Slots:
    """Runs attempts, the first come first, all at once as far as they wait.

    A task costs more than a small handler. So the task whose attempt ended without having let go
    of the loop takes the next one, too: to its handler that looks like a task of its own.
    """

    def __init__(self, attempt: Callable[[Attempt], Awaitable[None]]) -> None:
        self._attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._waiting: deque[Attempt] = deque()
        self._is_looking = False
        # How often the loop turned while attempts waited, and how many tasks the next turn adds.
        self._turns = 0
        self._growth = 1

    def take(self, attempt: Attempt) -> None:
        """Run an attempt as soon as the loop is free."""
        self._waiting.append(attempt)
        if not self._is_looking:
            self._is_looking = True
            self._growth = 1
            self._look()

    def _look(self) -> None:
        """Add tasks for the attempts that still wait: the running tasks wait for other things."""
        self._turns += 1
        if not self._waiting:
            self._is_looking = False
            return
        for _ in range(min(self._growth, len(self._waiting))):
            self._loop.create_task(self._row(), context=self._context.copy())
        self._growth *= 2
        self._loop.call_soon(self._look)

    async def _row(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        began, turn = self._loop.time(), self._turns
        while self._waiting:
            attempt = self._waiting.popleft()
            attempt.task = task
            await self._attempt(attempt)
            if self._turns != turn or task.cancelling() or copy_context() != self._context:
                return
            if self._loop.time() - began > LONGEST_ROW:
                self._growth = 1
                return
