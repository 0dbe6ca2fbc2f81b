"""Noticing that the event loop stood still, for everything in the worker waits for it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable

from forge.core.event import Events

INTERVAL = 0.1
LAG = 1.0
# How often a thread beside the loop shows that the process itself goes on.
TICK = 0.5


class Standstill:
    """Looks at the clock every tenth of a second, and says when it could not, and why."""

    def __init__(self, events: Events, running: Callable[[], Iterable[str]]) -> None:
        self._events = events
        self._running = running
        self._loop = asyncio.get_running_loop()
        self._looked_at = self._loop.time()
        self._used = time.process_time()
        self._ticker = Ticker()

    def look(self) -> None:
        """Say so when a handler kept the loop from turning, or the process was stopped."""
        now, used = self._loop.time(), time.process_time()
        stood_still = now - self._looked_at - INTERVAL
        if stood_still > LAG:
            self._warn(stood_still, used - self._used)
        self._looked_at, self._used = now, used

    def close(self) -> None:
        self._ticker.close()

    def _warn(self, seconds: float, used: float) -> None:
        # A handler that computes leaves the other threads running, or uses the processor.
        if self._ticker.late() > seconds / 2 and used < seconds / 2:
            self._events.notice(
                "warning",
                f"the whole process stood still for {seconds:.1f} s: it was stopped, its container "
                "was paused, or it got no processor time",
            )
            return
        self._events.notice(
            "warning",
            f"the event loop stood still for {seconds:.1f} s; a handler that computes or "
            "blocks should be a plain function, which runs in a thread",
            running=sorted(set(self._running())),
        )


class Ticker:
    """A thread that does nothing but look at the clock."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._ticked_at = time.monotonic()
        self._late = 0.0
        threading.Thread(target=self._run, name="forge-ticker", daemon=True).start()

    def late(self) -> float:
        """Return by how many seconds it was late at most since the last question."""
        late, self._late = max(self._late, time.monotonic() - self._ticked_at - TICK), 0.0
        return late

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(TICK):
            now = time.monotonic()
            self._late = max(self._late, now - self._ticked_at - TICK)
            self._ticked_at = now
