"""Waiting for asyncio events: with a timeout, or for the first of several."""

import asyncio


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
