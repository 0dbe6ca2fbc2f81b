"""What runs of schedules came to, written in batches, each fenced by its lease."""

import asyncio
from collections.abc import Callable
from uuid import UUID

from forge.core.errors import StatementRefused
from forge.core.event import AttemptRefused, Events
from forge.core.run import Conclusion
from forge.store import schedules
from forge.store.jobs import Note
from forge.store.link import Link
from forge.worker.insist import insist

# One statement's worth: larger ones hold locks longer and gain nothing.
MOST_AT_ONCE = 500
# How many seconds pass before a write that failed unexpectedly is tried again.
PAUSE = 1.0
# Seconds until the end of a run is sent again that the database refused for a reason of its own.
PUT_OFF = 5.0
# How the error of a run begins whose end the database refused.
UNSTORABLE = "unstorable: "


class Concluder:
    """Writes whatever came in since its last write, at once when it is idle."""

    def __init__(self, link: Link, events: Events) -> None:
        self._link = link
        self._events = events
        self._waiting: list[Conclusion] = []
        self._writing = 0
        self._put_off = 0
        # Whether a write failed in a way that was not foreseen: it may be in the database.
        self._has_failed = False
        self._work = asyncio.Event()
        self.written: Callable[[], None] = lambda: None

    @property
    def unwritten(self) -> int:
        """How many ends of runs are not in the database yet."""
        return len(self._waiting) + self._writing + self._put_off

    def conclude(self, conclusion: Conclusion, last_note: Note | None = None) -> None:
        """A run has ended; what it noted last is written with it."""
        if last_note is not None:
            conclusion = conclusion._replace(
                checkpoint=last_note.checkpoint, message=last_note.message
            )
        self._waiting.append(conclusion)
        self._work.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Write until told to stop and nothing is left."""
        while not stop.is_set() or self.unwritten:
            await self._work.wait()
            self._work.clear()
            while self._waiting:
                done, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                self._writing = len(done)
                try:
                    await self._write(done)
                except Exception as error:
                    await self._failed(error)
                    self._waiting[:0] = done
                self._writing = 0
                self.written()

    def wake(self) -> None:
        self._work.set()

    async def _failed(self, error: Exception) -> None:
        """Say that a write failed in a way that was not foreseen; what it held is written again."""
        self._events.notice("error", "ends of runs failed and are tried again", error=repr(error))
        self._has_failed = True
        await asyncio.sleep(PAUSE)

    async def _write(self, done: list[Conclusion]) -> None:
        try:
            accepted, is_again = await insist(
                self._link, self._events, lambda: schedules.conclude(done)
            )
        except StatementRefused as error:
            await self._write_apart(done, error)
            return
        if len(accepted) < len(done):
            await self._account_for(set(accepted), done, is_again or self._has_failed)

    async def _write_apart(self, done: list[Conclusion], error: StatementRefused) -> None:
        """Let one that the database cannot take not hold up the others."""
        if len(done) > 1:
            for conclusion in done:
                await self._write([conclusion])
            return
        self._events.notice(
            "error", "the end of a run was refused", job_id=str(done[0].id), error=str(error)
        )
        if not error.blames_value:
            self._send_later(done[0])
            return
        if (done[0].error or "").startswith(UNSTORABLE):
            # Dropped, the run would be given back, and its handler run for ever.
            self._send_later(done[0])
            return
        told = f"{UNSTORABLE}{error}"[:200]
        await self._write([done[0]._replace(checkpoint=None, message=None, error=told)])

    def _send_later(self, conclusion: Conclusion) -> None:
        def send() -> None:
            self._put_off -= 1
            self.conclude(conclusion)

        self._put_off += 1
        asyncio.get_running_loop().call_later(PUT_OFF, send)

    async def _account_for(
        self, accepted: set[UUID], done: list[Conclusion], is_again: bool
    ) -> None:
        """Tell ends whose first try was committed, its answer lost, from those that came late."""
        missed = [conclusion for conclusion in done if conclusion.id not in accepted]
        known: set[UUID] = set()
        if is_again:
            found, _ = await insist(self._link, self._events, lambda: schedules.standing(missed))
            known = {*found, *(end.id for end in missed if end.outcome is None)}
        for conclusion in missed:
            if conclusion.id not in known:
                self._events.emit(AttemptRefused(conclusion.id, conclusion.lease, "conclude"))
