"""Telling those who watch: one notification for all that changed in a moment."""

from collections.abc import Sequence
from uuid import UUID

from forge.core.herd import EVERYONE
from forge.store.link import Link
from forge.store.notify import CHANGES, MOST_IDS, WAKE, changes_payload, send

INTERVAL = 0.05


class Teller:
    """Gathers the ids of changed jobs and sends them together."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._changed: set[UUID] = set()
        self._calls_everyone = False

    def changed(self, job_ids: Sequence[UUID]) -> None:
        """Remember that these jobs changed; past a few hundred it matters no more which."""
        if len(self._changed) <= MOST_IDS:
            self._changed.update(job_ids)

    def call_everyone(self) -> None:
        """Have every idle worker look for work that this one has no slot for."""
        self._calls_everyone = True

    async def tell(self) -> None:
        """Send what has gathered."""
        if self._calls_everyone:
            self._calls_everyone = False
            await self._link.run(send(WAKE, EVERYONE))
        if self._changed:
            changed, self._changed = self._changed, set()
            await self._link.run(send(CHANGES, changes_payload(changed)))
