"""Connections that LISTEN for notifications, reconnect when lost, and know whether they work."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import asyncpg

from forge.store.connection.database import Database
from forge.store.connection.driver_errors import DRIVER_ERRORS
from forge.store.connection.link import close_quietly
from forge.store.connection.waiting import first_of, within
from forge.store.notify import send

# Called with the payload of a notification; "" after each reconnect.
OnNotification = Callable[[str], None]
# Seconds between two attempts to connect: doubled after each failure.
FIRST_RETRY_DELAY = 0.1
MAX_RETRY_DELAY = 5.0
# Seconds until a test notification that did not come back marks the connection as dead.
ECHO_TIMEOUT = 1.0


class Listener:
    """Calls back for each notification on its channels until it is stopped."""

    def __init__(self, database: Database, channels: Mapping[str, OnNotification]) -> None:
        self._database = database
        self._channels = channels
        self._connection: asyncpg.Connection[Any] | None = None
        self._lost = asyncio.Event()
        self.hears = False

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop` is set; reconnect with backoff whenever the connection ends."""
        delay = FIRST_RETRY_DELAY
        while not stop.is_set():
            try:
                # Without a timeout a connection that dies during setup would block forever.
                async with asyncio.timeout(self._database.connect_timeout):
                    await self._listen()
                delay = FIRST_RETRY_DELAY
                await first_of(stop, self._lost)
            except DRIVER_ERRORS:
                delay = min(delay * 2, MAX_RETRY_DELAY)
            finally:
                await self._close()
            await within(stop, delay)

    def reconnect(self) -> None:
        """Replace the connection: it missed a test notification."""
        self.hears = False
        self._lost.set()

    async def _listen(self) -> None:
        self._lost.clear()
        self._connection = await self._database.connect()
        self._connection.add_termination_listener(self._on_termination)
        for channel, notify in self._channels.items():
            await self._connection.add_listener(channel, _payload_only(notify))
        # Notifications sent while disconnected are lost, so every subscriber checks once.
        self.hears = True
        for notify in self._channels.values():
            notify("")

    def _on_termination(self, _connection: Any) -> None:
        self.reconnect()

    async def _close(self) -> None:
        self.hears = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.remove_termination_listener(self._on_termination)
            await close_quietly(connection)


class CheckedListener:
    """Listens on one channel and tests the connection with notifications to itself.

    Behind a transaction pooler LISTEN has no effect, so there it never hears anything.
    """

    def __init__(self, database: Database, channel: str, heard: OnNotification) -> None:
        self._database = database
        self._echo_channel = f"forge_ear_{uuid4().hex}"
        self._listener = Listener(database, {channel: heard, self._echo_channel: self._echoed})
        self._has_echoed = True
        self._tested_at = 0.0

    def hears(self) -> bool:
        is_late = not self._has_echoed and _now() > self._tested_at + ECHO_TIMEOUT
        return self._listener.hears and not is_late

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop` is set."""
        if not self._database.pooler:
            await self._listener.run(stop)

    async def test(self, interval: float) -> None:
        """Send a test notification once per interval; reconnect if the last one did not arrive."""
        if not self._listener.hears or _now() < self._tested_at + interval:
            return
        if not self._has_echoed:
            self._listener.reconnect()
            return
        self._tested_at, self._has_echoed = _now(), False
        await self._database.run(send(self._echo_channel))

    def _echoed(self, _payload: str) -> None:
        self._has_echoed = True


def _payload_only(notify: OnNotification) -> Callable[..., None]:
    return lambda _connection, _pid, _channel, payload: notify(payload)


def _now() -> float:
    return asyncio.get_running_loop().time()
