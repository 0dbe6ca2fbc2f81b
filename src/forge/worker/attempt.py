"""One try at a job, from the moment a slot takes it until its slot is free again."""

import asyncio
import time
from enum import Enum
from typing import TYPE_CHECKING, Any

from forge.core.job import Job
from forge.registry import JobDefinition

if TYPE_CHECKING:
    from forge.worker.context import JobContext


NEVER = float("inf")
# Seconds that a handler has to clean up before it is interrupted again.
PATIENCE = 0.9


class Stop(Enum):
    """Why an attempt is asked to stop before it is done."""

    TIMEOUT = "it ran longer than its timeout"
    CANCELLED = "its job was cancelled, or is another's by now"
    RELEASED = "the worker stops"
    CUT_OFF = "the database is silent, and another worker may take its job before long"


class Attempt:
    """A running handler and what is known of it."""

    __slots__ = (
        "_asked_at",
        "began",
        "context",
        "deadline",
        "definition",
        "interrupt",
        "is_told",
        "job",
        "stop",
        "takes_slot",
        "task",
    )

    def __init__(
        self, job: Job, definition: JobDefinition[Any, Any], *, takes_slot: bool = True
    ) -> None:
        self.job = job
        self.definition = definition
        self.takes_slot = takes_slot
        self.began = 0.0
        # Whether its beginning was told: of a short one it is told with its end.
        self.is_told = False
        self.deadline = NEVER
        self.stop: Stop | None = None
        self._asked_at = -NEVER
        self.task: asyncio.Task[None] | None = None
        self.context: JobContext
        # How to stop code that the event loop cannot cancel: a thread, or a child process.
        self.interrupt: Any = None

    def begin(self, now: float) -> None:
        """Start the clock: what waited for the loop until now has not run yet."""
        timeout = self.job.timeout
        seconds = timeout.total_seconds() if timeout else self.definition.timeout_seconds
        self.began = now
        self.deadline = now + seconds

    def ask_to_stop(self, why: Stop) -> None:
        """Ask the handler to stop; the first reason stays, asking again at once does nothing."""
        self.stop = self.stop or why
        now = time.monotonic()
        if now - self._asked_at < PATIENCE:
            return
        self._asked_at = now
        if self.interrupt is not None:
            self.interrupt(self.stop)
        elif self.task is not None:
            self.task.cancel()

    @property
    def is_interruptible(self) -> bool:
        """Whether it runs in a thread or a child, which any thread can interrupt."""
        return self.began > 0 and self.interrupt is not None
