"""Noticing that the event loop stood still, for everything in the worker waits for it."""

import asyncio
from collections.abc import Callable, Iterable

from forge.core.event import Events

INTERVAL = 0.1
LAG = 1.0


class Standstill:
    """Looks at the clock every tenth of a second, and says when it could not."""

    def __init__(self, events: Events, running: Callable[[], Iterable[str]]) -> None:
        self._events = events
        self._running = running
        self._loop = asyncio.get_running_loop()
        self._looked_at = self._loop.time()

    def look(self) -> None:
        """Say so when a handler kept the loop from turning."""
        now = self._loop.time()
        stood_still = now - self._looked_at - INTERVAL
        if stood_still > LAG:
            self._events.notice(
                "warning",
                f"the event loop stood still for {stood_still:.1f} s; a handler that computes or "
                "blocks should be a plain function, which runs in a thread",
                running=sorted(set(self._running())),
            )
        self._looked_at = now
