"""A listener that knows whether it still hears: it is called by name, and must answer."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

from forge.store.database import Database
from forge.store.listener import Listener
from forge.store.notify import send

# How long a call may be under way before the connection counts as dead.
PATIENCE = 1.0


class Ear:
    """Hears one channel, except behind a pooler, where nothing can be heard."""

    def __init__(self, database: Database, channel: str, heard: Callable[[str], None]) -> None:
        self._database = database
        self._name = f"forge_ear_{uuid4().hex}"
        self._listener = Listener(database, {channel: heard, self._name: self._answered})
        self._is_answered = True
        self._called_at = 0.0

    def hears(self) -> bool:
        is_late = not self._is_answered and _now() > self._called_at + PATIENCE
        return self._listener.hears and not is_late

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until told to stop."""
        if not self._database.pooler:
            await self._listener.run(stop)

    async def test(self, interval: float) -> None:
        """Call once in an interval, and listen anew where the last call was not heard."""
        if not self._listener.hears or _now() < self._called_at + interval:
            return
        if not self._is_answered:
            self._listener.reconnect()
            return
        self._called_at, self._is_answered = _now(), False
        await self._database.run(send(self._name))

    def _answered(self, _payload: str) -> None:
        self._is_answered = True


def _now() -> float:
    return asyncio.get_running_loop().time()
