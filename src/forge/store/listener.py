"""A connection that hears notifications, comes back when it is lost, and knows if it hears."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import asyncpg

from forge.store.database import Database
from forge.store.fault import DRIVER_ERRORS
from forge.store.link import close_quietly
from forge.store.waiting import first_of, within

Hear = Callable[[str], None]


class Listener:
    """Calls back for each notification on its channels until it is closed."""

    def __init__(self, database: Database, channels: Mapping[str, Hear]) -> None:
        self._database = database
        self._channels = channels
        self._connection: asyncpg.Connection[Any] | None = None
        self._lost = asyncio.Event()
        self.hears = False

    async def run(self, stop: asyncio.Event) -> None:
        """Listen; open the connection anew, with growing patience, whenever it ends."""
        pause = 0.1
        while not stop.is_set():
            try:
                # A connection that dies while it is being set up would be waited for in vain.
                async with asyncio.timeout(self._database.connect_timeout):
                    await self._listen()
                pause = 0.1
                await first_of(stop, self._lost)
            except DRIVER_ERRORS:
                pause = min(pause * 2, 5)
            finally:
                await self._hang_up()
            await within(stop, pause)

    def reconnect(self) -> None:
        """Give this connection up: it was knocked at and did not hear."""
        self.hears = False
        self._lost.set()

    async def _listen(self) -> None:
        self._lost.clear()
        self._connection = await self._database.connect()
        self._connection.add_termination_listener(self._on_termination)
        for channel, hear in self._channels.items():
            await self._connection.add_listener(channel, self._heard(hear))
        # Whatever was sent while nobody listened is lost: everyone looks once.
        self.hears = True
        for hear in self._channels.values():
            hear("")

    def _heard(self, hear: Hear) -> Callable[..., None]:
        return lambda _connection, _pid, _channel, payload: hear(payload)

    def _on_termination(self, _connection: Any) -> None:
        self.reconnect()

    async def _hang_up(self) -> None:
        self.hears = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.remove_termination_listener(self._on_termination)
            await close_quietly(connection)
