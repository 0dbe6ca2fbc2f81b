"""What the loops of a worker wait for, and what they repeat."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from forge.core.errors import DatabaseUnavailable
from forge.core.events import Events
from forge.store.connection.waiting import Signal, within


class StopSignals:
    """How far the end of a worker has come."""

    def __init__(self) -> None:
        # No new claims; what runs may finish.
        self.draining = asyncio.Event()
        # What runs is released.
        self.releasing = asyncio.Event()
        # Nothing runs: every loop ends when its work is written.
        self.stopping = asyncio.Event()

    def drain(self) -> None:
        self.draining.set()

    def release(self) -> None:
        self.draining.set()
        self.releasing.set()


class WorkSignals:
    """What wakes the loops that claim."""

    def __init__(self) -> None:
        # A slot came free, or acks were written: there may be room for more jobs.
        self.room_changed = Signal()
        # A built-in job may wait, or one that ran beside the slots has ended.
        self.builtin_jobs = asyncio.Event()


async def every(
    seconds: float, act: Callable[[], Awaitable[object]], stop: asyncio.Event, events: Events
) -> None:
    """Repeat something at about this interval until stopped; a failure does not end it."""
    while not await within(stop, seconds * random.uniform(0.9, 1.1)):
        try:
            await act()
        except DatabaseUnavailable:
            continue  # other parts report that the database is away
        except Exception as error:
            name = getattr(act, "__qualname__", repr(act))
            events.notice("error", f"{name} failed and is tried again", error=repr(error))
