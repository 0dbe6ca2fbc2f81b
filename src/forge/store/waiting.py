"""Waiting for events, with an end."""

import asyncio


async def within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event at most this long; say whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of these events has come."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
