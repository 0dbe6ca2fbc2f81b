"""Limits the jobs that wait for an insert: further callers wait in line, in order."""

import asyncio
from collections import deque

from forge.core.errors import DatabaseUnavailable

# Jobs that wait for an insert. Further callers wait before their input is encoded.
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 32_000_000
# The size that a job is expected to have at most when callers enter: the default of `[payload]
# max_input`.
LARGE_JOB = 256_000


class Admission:
    """Counts what waits, and lets callers enter one after the other where there is room."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.waiting = 0
        self.waiting_bytes = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False
        self._closed: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether a caller has to wait in line: newcomers do not overtake those who wait."""
        return bool(self._line) or not self._room()

    async def enter(self) -> None:
        """Wait for room; raise if the app is closed meanwhile."""
        turn = self._loop.create_future()
        self._line.append(turn)
        self._schedule()
        await turn

    def check_open(self) -> None:
        """Raise if the app was closed."""
        if self._closed is not None:
            raise DatabaseUnavailable(self._closed)

    def add(self, size: int) -> None:
        """Count a job that waits."""
        self.waiting += 1
        self.waiting_bytes += size

    def remove(self, size: int) -> None:
        """Count a job that no longer waits."""
        self.waiting -= 1
        self.waiting_bytes -= size
        if self._line:
            self._schedule()

    def close(self, reason: str) -> None:
        """Reject everyone in line, and everyone who comes later."""
        self._closed = reason
        line, self._line = self._line, deque()
        for turn in line:
            if not turn.done():
                turn.set_exception(DatabaseUnavailable(reason))

    def _room(self) -> int:
        """Return how many callers may enter now, by the rows and bytes that are left."""
        rows, size = MAX_WAITING - self.waiting, MAX_WAITING_BYTES - self.waiting_bytes
        return 0 if rows <= 0 or size <= 0 else min(rows, size // LARGE_JOB + 1)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._let_in)

    def _let_in(self) -> None:
        """Let the first callers enter, and look again after they have added their jobs."""
        self._is_scheduled = False
        room = self._room()
        entered = 0
        while self._line and entered < room:
            turn = self._line.popleft()
            if not turn.done():  # else its caller was cancelled
                turn.set_result(None)
                entered += 1
        if self._line and entered:
            self._schedule()
