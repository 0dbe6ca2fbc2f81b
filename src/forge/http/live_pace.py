"""How fast a client may speak: who is faster is not read from until it has waited."""

import asyncio

BURST = 2000
A_SECOND = 100


class Pace:
    """Lets a burst through, and then so many a second."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._filled_at = asyncio.get_running_loop().time()

    async def step(self) -> None:
        """Wait until the next message may be answered."""
        now = asyncio.get_running_loop().time()
        self._left = min(BURST, self._left + (now - self._filled_at) * A_SECOND) - 1
        self._filled_at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / A_SECOND)
