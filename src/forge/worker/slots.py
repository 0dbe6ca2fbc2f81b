"""The tasks that attempts run in: one each, but for a row of those that never wait for anything."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context

from forge.worker.attempt import Attempt

# So long may a row of attempts keep the loop before everybody else has a turn.
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
        """Add tasks for what waits still: those that should have run it wait for something else."""
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
