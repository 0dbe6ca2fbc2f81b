"""Every loop is this loop."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from forge.core.errors import DatabaseUnavailable
from forge.core.event import Events
from forge.store.waiting import within


async def every(
    seconds: float, act: Callable[[], Awaitable[object]], stop: asyncio.Event, events: Events
) -> None:
    """Do something again and again, spread a little, until told to stop; outlive its failures."""
    while not await within(stop, seconds * random.uniform(0.9, 1.1)):
        try:
            await act()
        except DatabaseUnavailable:
            continue  # whoever needs the database says so; this comes round again
        except Exception as error:
            events.notice(
                "error", f"{act.__qualname__} failed and is tried again", error=repr(error)
            )
