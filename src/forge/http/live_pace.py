"""How fast a client may speak: who is faster is not read from until it has waited."""

import asyncio

BURST = 2000
A_SECOND = 100
# A longer message counts as several: reading it, and saying what is wrong with it, takes as long.
LONG = 1024


class Pace:
    """Lets a burst through, and then so many a second."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._filled_at = asyncio.get_running_loop().time()

    async def step(self, length: int) -> None:
        """Wait until a message of this length may be answered."""
        now = asyncio.get_running_loop().time()
        self._left = min(BURST, self._left + (now - self._filled_at) * A_SECOND)
        self._left -= 1 + length // LONG
        self._filled_at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / A_SECOND)
