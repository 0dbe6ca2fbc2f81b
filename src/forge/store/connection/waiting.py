"""Waiting for asyncio events: with a timeout, for the first of several, or between tries."""

import asyncio
import random

# Pauses of a loop whose statement failed, in seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


async def within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event at most this long; return whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of these events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


class Backoff:
    """Pauses between tries: each twice as long as the one before, with jitter."""

    def __init__(self, first: float = FIRST_PAUSE) -> None:
        self._first = self._pause = first

    def reset(self) -> None:
        """Start from the first pause: a try succeeded."""
        self._pause = self._first

    def next(self) -> float:
        """Return how long to wait before the next try, in seconds."""
        pause = self._pause * random.uniform(0.5, 1.5)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return pause


class Signal:
    """Wakes every loop that waits for it, each by an event of its own."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def event(self) -> asyncio.Event:
        """Return an event that each call of `set` sets; its loop clears it."""
        self._events.append(event := asyncio.Event())
        return event

    def set(self) -> None:
        for event in self._events:
            event.set()
